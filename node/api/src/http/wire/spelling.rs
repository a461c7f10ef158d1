//! Integers and UUIDs in every spelling that the reference accepts.

use uuid::Uuid;

/// Parses an integer in ASCII digits, with an optional sign and surrounding white space; clamped to
/// the range of `i128`.
pub(crate) fn integer(text: &str) -> Option<i128> {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let beyond = if text.starts_with('-') {
        i128::MIN
    } else {
        i128::MAX
    };
    Some(text.parse().unwrap_or(beyond))
}

/// Maximum length of a text that is parsed as a UUID. The reference accepts any number of `urn:`
/// and hyphens, and an aggregate is stored as it is spelled, so the length must be limited.
const UUID_MAX_BYTES: usize = 128;

/// Parses a UUID: with or without hyphens, in braces, as a URN, in either case.
pub(crate) fn uuid(text: &str) -> Option<Uuid> {
    if text.len() > UUID_MAX_BYTES {
        return None;
    }
    let plain = text
        .replace("urn:", "")
        .replace("uuid:", "")
        .trim_matches(['{', '}'])
        .replace('-', "");
    if plain.len() != 32 || !plain.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&plain, 16).ok().map(Uuid::from_u128)
}

/// Whether the text is a UUID with hyphens in the usual places.
pub(crate) fn is_hyphenated_uuid(text: &str) -> bool {
    uuid(text).is_some()
        && [8, 13, 18, 23]
            .iter()
            .all(|position| text.chars().nth(*position) == Some('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_ascii_digits_and_perhaps_a_sign() {
        for (text, value) in [("1", 1), (" +1\n", 1), ("00001", 1), ("-2", -2), ("-0", 0)] {
            assert_eq!(integer(text), Some(value), "{text:?}");
        }
        for text in [
            "",
            " ",
            "+",
            "1_0",
            "1.0",
            "0x1",
            "1 2",
            "fred",
            "+-1",
            "- 1",
            "\u{661}\u{662}",
        ] {
            assert_eq!(integer(text), None, "{text:?}");
        }
        assert_eq!(integer(&"9".repeat(5000)), Some(i128::MAX));
        assert_eq!(integer(&format!("-{}", "9".repeat(100))), Some(i128::MIN));
    }

    #[test]
    fn a_uuid_has_many_spellings() {
        let plain = "7d0b8a2c5c0f4b0e9d0c3b1f2a4e6d8c";
        for text in [
            plain.to_owned(),
            plain.to_uppercase(),
            "7d0b8a2c-5c0f-4b0e-9d0c-3b1f2a4e6d8c".to_owned(),
            format!("{{{plain}}}"),
            format!("urn:uuid:{plain}"),
        ] {
            assert!(uuid(&text).is_some(), "{text}");
        }
        for text in [
            "",
            "abc",
            "7d0b8a2c5c0f4b0e9d0c3b1f2a4e6d8",
            "0x0b8a2c5c0f4b0e9d0c3b1f2a4e6d8c",
        ] {
            assert!(uuid(text).is_none(), "{text}");
        }
        assert!(is_hyphenated_uuid("7D0B8A2C-5C0F-4B0E-9D0C-3B1F2A4E6D8C"));
        assert!(!is_hyphenated_uuid(plain));
    }
}
