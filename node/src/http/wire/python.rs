//! Text as Python, the reference implementation's language, reads and shows it. Clients rely on what it accepts, so
//! the API accepts the same: integers with signs, underscores and any script's digits, several
//! spellings of a UUID, and values shown in messages as Python's `repr` shows them.

use uuid::Uuid;

/// The zero of every run of ten decimal digits in Unicode (general category Nd).
const ZEROS: [u32; 65] = [
    0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66,
    0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90,
    0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
    0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650,
    0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50,
    0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950,
];

/// The longest run of digits that is read as a number.
const DIGITS_MAX: usize = 4300;

fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// The text without the white space around it.
pub(in crate::http) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// The text split at its first run of white space: what is before and what is after.
pub(in crate::http) fn split_once_at_space(text: &str) -> Option<(&str, &str)> {
    let text = strip(text);
    let end = text.find(is_space)?;
    Some((&text[..end], strip(&text[end..])))
}

fn digit(c: char) -> Option<u32> {
    let code = c as u32;
    let run = ZEROS.partition_point(|zero| *zero <= code).checked_sub(1)?;
    let value = code - ZEROS[run];
    (value < 10).then_some(value)
}

/// The integer that the text spells, clipped to the range of `i128`.
pub(in crate::http) fn integer(text: &str) -> Option<i128> {
    let text = strip(text);
    let (negative, digits) = match text.chars().next()? {
        '-' => (true, &text[1..]),
        '+' => (false, &text[1..]),
        _ => (false, text),
    };
    let mut value: i128 = 0;
    let mut count = 0;
    let mut after_digit = false;
    for c in digits.chars() {
        match digit(c) {
            Some(digit) => {
                value = value.saturating_mul(10).saturating_add(i128::from(digit));
                count += 1;
                after_digit = true;
            }
            None if c == '_' && after_digit => after_digit = false,
            None => return None,
        }
    }
    if !after_digit || count > DIGITS_MAX {
        return None;
    }
    Some(if negative { -value } else { value })
}

/// Longest text that is taken for a UUID. Python takes off any number of `urn:` and hyphens, but what
/// spells an aggregate is kept as it was spelled.
const UUID_MAX_BYTES: usize = 128;

/// The UUID that the text spells: with or without hyphens, in braces, as a URN, in either case.
pub(in crate::http) fn uuid(text: &str) -> Option<Uuid> {
    if text.len() > UUID_MAX_BYTES {
        return None;
    }
    let plain = text.replace("urn:", "").replace("uuid:", "");
    let plain = plain.trim_matches(['{', '}']).replace('-', "");
    if plain.len() != 32 || !plain.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&plain, 16).ok().map(Uuid::from_u128)
}

/// Whether the text spells a UUID with its hyphens in their places.
pub(in crate::http) fn is_hyphenated_uuid(text: &str) -> bool {
    uuid(text).is_some()
        && [8, 13, 18, 23]
            .iter()
            .all(|position| text.chars().nth(*position) == Some('-'))
}

/// A string as `repr` shows it.
pub(in crate::http) fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut shown = String::with_capacity(text.len() + 2);
    shown.push(quote);
    for c in text.chars() {
        match c {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c == quote => {
                shown.push('\\');
                shown.push(c);
            }
            c if is_printable(c) => shown.push(c),
            c => shown.push_str(&match c as u32 {
                code @ ..=0xff => format!("\\x{code:02x}"),
                code @ ..=0xffff => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    shown.push(quote);
    shown
}

/// Whether `repr` shows the character as it is. Rust's `Debug` draws the same line, but for marks
/// that combine with the character before them: those it escapes unless there is one.
fn is_printable(c: char) -> bool {
    let mut text = [b'a', 0, 0, 0, 0];
    let length = c.encode_utf8(&mut text[1..]).len();
    let text = std::str::from_utf8(&text[..=length]).expect("a letter and a character");
    text.escape_debug().count() == 2 || matches!(c, '"' | '\'')
}

/// Whether a float is shown without an exponent. Then JSON's writer shows it alike.
pub(in crate::http) fn is_plain(value: f64) -> bool {
    value == 0.0 || (1e-4..1e16).contains(&value.abs())
}

/// A float as `repr` shows it: the fewest digits that read back as the same float, with an exponent
/// where it is small or large, of at least two digits and with its sign.
pub(in crate::http) fn float(value: f64) -> String {
    if !value.is_finite() {
        return format!("{value:?}");
    }
    // Of two texts that are equally near it has the even one, as Python has and Rust's `Debug` has not.
    let shown = serde_json::Value::from(value).to_string();
    if let Some((digits, exponent)) = shown.split_once('e') {
        let digits = digits.strip_suffix(".0").unwrap_or(digits);
        return match exponent.strip_prefix('-') {
            Some(small) => format!("{digits}e-{small:0>2}"),
            None => format!("{digits}e+{:0>2}", exponent.trim_start_matches('+')),
        };
    }
    if is_plain(value) {
        return shown;
    }
    // JSON's writer needs no exponent for a digit or two more.
    let digits = shown.trim_start_matches(['-', '0', '.']);
    let (first, more) = digits.split_at(digits.len().min(1));
    let places = shown.len() - digits.len() - usize::from(value < 0.0) - ".".len();
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if more.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{more}e-{places:0>2}")
}

/// The lines of a text with what ends them, as `splitlines` finds them.
pub(in crate::http) fn lines(text: &str) -> Vec<&str> {
    let ends = |c| {
        matches!(
            c,
            '\n' | '\x0b' | '\x0c' | '\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(position) = rest.find(ends) {
        let crlf = rest[position..].starts_with("\r\n");
        let end = rest[position..].chars().next().map_or(0, char::len_utf8);
        let (line, after) = rest.split_at(position + end + usize::from(crlf));
        lines.push(line);
        rest = after;
    }
    lines.extend(Some(rest).filter(|rest| !rest.is_empty()));
    lines
}

/// The words of a text, each with the white space behind it.
pub(in crate::http) fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let space = rest.find(is_space).unwrap_or(rest.len());
        let end = rest[space..].find(|c| !is_space(c));
        let (word, after) = rest.split_at(end.map_or(rest.len(), |end| space + end));
        words.push(word);
        rest = after;
    }
    words
}

/// Several strings as `repr` shows them, with commas between.
pub(in crate::http) fn repr_list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(repr).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_python_reads_them() {
        for (text, value) in [
            ("1", 1),
            (" +1\n", 1),
            ("1_0", 10),
            ("00001", 1),
            ("-2", -2),
            ("\u{661}\u{662}", 12),
            ("-0", 0),
        ] {
            assert_eq!(integer(text), Some(value), "{text:?}");
        }
        for text in [
            "", " ", "+", "1__0", "_1", "1_", "1.0", "0x1", "1 2", "fred", "+-1",
        ] {
            assert_eq!(integer(text), None, "{text:?}");
        }
        assert_eq!(integer(&"9".repeat(100)), Some(i128::MAX));
        assert_eq!(integer(&"9".repeat(5000)), None);
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

    /// Facts from Python 3.11: `repr(float(text))`.
    #[test]
    fn floats_are_shown_as_python_shows_them() {
        for (text, shown) in [
            ("0", "0.0"),
            ("-0.0", "-0.0"),
            ("1", "1.0"),
            ("0.1", "0.1"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("100", "100.0"),
            ("16777217", "16777217.0"),
            ("1e15", "1000000000000000.0"),
            ("9007199254740993", "9007199254740992.0"),
            ("1669910139879641.25", "1669910139879641.2"),
            ("-184295098257216.125", "-184295098257216.12"),
            ("-0.00004", "-4e-05"),
            ("9999999999999998", "9999999999999998.0"),
            ("1e16", "1e+16"),
            ("1.5e16", "1.5e+16"),
            ("123456789012345680", "1.2345678901234568e+17"),
            ("1e22", "1e+22"),
            ("1e23", "1e+23"),
            ("3.40282e38", "3.40282e+38"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("0.0001", "0.0001"),
            ("0.00012345", "0.00012345"),
            ("0.00009999", "9.999e-05"),
            ("1e-7", "1e-07"),
            ("2.2250738585072014e-308", "2.2250738585072014e-308"),
            ("5e-324", "5e-324"),
        ] {
            assert_eq!(float(text.parse().unwrap()), shown);
        }
        assert_eq!(float(0.1 + 0.2), "0.30000000000000004");
    }

    #[test]
    fn strings_are_shown_with_quotes() {
        assert_eq!(repr("a"), "'a'");
        assert_eq!(repr("it's"), "\"it's\"");
        assert_eq!(repr("'\""), "'\\'\"'");
        assert_eq!(repr("a\nb\x01"), "'a\\nb\\x01'");
        assert_eq!(
            repr("\u{a0}\u{200b}\u{e000}\u{f0000} é\u{301}"),
            "'\\xa0\\u200b\\ue000\\U000f0000 é\u{301}'"
        );
    }

    #[test]
    fn numbers_are_shown_with_two_digits_of_exponent() {
        for (value, shown) in [
            (5.0, "5.0"),
            (0.0001, "0.0001"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (3.40282e38, "3.40282e+38"),
            (-1e300, "-1e+300"),
        ] {
            assert_eq!(float(value), shown);
        }
    }

    #[test]
    fn texts_are_divided_into_lines_and_words() {
        assert_eq!(
            lines("a\r\nb\u{2028}\nc"),
            ["a\r\n", "b\u{2028}", "\n", "c"]
        );
        assert!(lines("").is_empty());
        assert_eq!(words(" a  b c"), [" ", "a  ", "b ", "c"]);
    }
}
