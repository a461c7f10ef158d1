//! The forms of text that schemas ask for. Where the reference's expression ends in `$`, a
//! newline at the very end is let through, as it is there.

use std::borrow::Cow;

/// A form of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Resource classes and consumer types.
    Upper,
    /// Custom resource classes and traits.
    Custom,
    /// 36 characters out of hexadecimal digits and hyphens.
    Uuid,
    /// Keys of mappings: anything with one legal character.
    MappingKey,
    /// Positive integers without leading zeros.
    Positive,
    /// Consumer types in queries.
    ConsumerTypeQuery,
    /// Query keys of numbered groups.
    NumberedKey(&'static str),
    /// Query keys of named groups, from 1.33.
    NamedKey(&'static str),
}

impl Pattern {
    /// The form as a regular expression.
    pub(super) fn text(self) -> Cow<'static, str> {
        match self {
            Self::Upper => "^[A-Z0-9_]+$".into(),
            Self::Custom => "^CUSTOM_[A-Z0-9_]+$".into(),
            Self::Uuid => "^[0-9a-fA-F-]{36}$".into(),
            Self::MappingKey => "[a-zA-Z0-9_-]{1,64}".into(),
            Self::Positive => "^[1-9][0-9]*$".into(),
            Self::ConsumerTypeQuery => "^[A-Z0-9_]+$|^all|^unknown$".into(),
            Self::NumberedKey(prefix) => format!("^{prefix}([1-9][0-9]*)?$").into(),
            Self::NamedKey(prefix) => format!("^{prefix}([a-zA-Z0-9_-]{{1,64}})?$").into(),
        }
    }

    /// Whether the text has this form.
    pub(super) fn matches(self, text: &str) -> bool {
        let line = text.strip_suffix('\n').unwrap_or(text);
        match self {
            Self::Upper => is_upper(line),
            Self::Custom => line.strip_prefix("CUSTOM_").is_some_and(is_upper),
            Self::Uuid => {
                line.len() == 36
                    && line
                        .bytes()
                        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
            }
            Self::MappingKey => text.bytes().any(is_suffix_byte),
            Self::Positive => is_positive(line),
            Self::ConsumerTypeQuery => {
                is_upper(line) || text.starts_with("all") || line == "unknown"
            }
            Self::NumberedKey(prefix) => text
                .strip_prefix(prefix)
                .is_some_and(|suffix| suffix.is_empty() || is_positive(suffix)),
            Self::NamedKey(prefix) => text
                .strip_prefix(prefix)
                .is_some_and(|suffix| suffix.len() <= 64 && suffix.bytes().all(is_suffix_byte)),
        }
    }
}

fn is_upper(text: &str) -> bool {
    let upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    !text.is_empty() && text.bytes().all(upper)
}

fn is_positive(text: &str) -> bool {
    text.starts_with(|c: char| ('1'..='9').contains(&c))
        && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_suffix_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}
