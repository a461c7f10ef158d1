//! The forms of text that schemas ask for, as regular expressions. Those of classes and UUIDs are matched by hand: the
//! expressions took longer than reading the body.

use placement_model::types::is_upper_byte;
use regex_lite::Regex;
use serde::Deserialize;

/// A form of text.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Pattern {
    /// The form as the reference writes it.
    pub(super) text: String,
    regex: Regex,
    by_hand: Option<fn(&str) -> bool>,
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        // Where the reference's expression ends in `$`, Python lets a newline through.
        let regex = Regex::new(&text.replace('$', r"\n?\z"));
        Self {
            by_hand: match text.as_str() {
                "^[A-Z0-9_]+$" => Some(is_upper),
                "^[0-9a-fA-F-]{36}$" => Some(is_uuid),
                _ => None,
            },
            regex: regex.expect("the expressions of the API's description are valid"),
            text,
        }
    }
}

impl Pattern {
    /// Whether the text has this form.
    pub(super) fn matches(&self, text: &str) -> bool {
        match self.by_hand {
            Some(matches) => matches(text),
            None => self.regex.is_match(text),
        }
    }

    /// What stands in the form's parentheses, of a text that has it; empty if it is left out.
    pub(crate) fn suffix<'t>(&self, text: &'t str) -> Option<&'t str> {
        let found = self.regex.captures(text)?;
        Some(found.get(1).map_or("", |suffix| suffix.as_str()))
    }
}

/// Resource classes and consumer types.
fn is_upper(text: &str) -> bool {
    let name = text.strip_suffix('\n').unwrap_or(text);
    !name.is_empty() && name.bytes().all(is_upper_byte)
}

/// 36 characters out of hexadecimal digits and hyphens.
fn is_uuid(text: &str) -> bool {
    let uuid = text.strip_suffix('\n').unwrap_or(text);
    let may_stand = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    uuid.len() == 36 && uuid.bytes().all(may_stand)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::from(text.to_owned())
    }

    proptest! {
        #[test]
        fn hand_written_matchers_agree_with_their_expressions(
            text in "[A-Z0-9_a\n]{0,4}|[0-9a-fA-F-]{35,37}[\ng]{0,2}|.{0,3}",
        ) {
            for form in ["^[A-Z0-9_]+$", "^[0-9a-fA-F-]{36}$"].map(pattern) {
                prop_assert!(form.by_hand.is_some());
                prop_assert_eq!(form.matches(&text), form.regex.is_match(&text));
            }
        }
    }

    #[test]
    fn one_newline_is_allowed_at_the_end() {
        let upper = pattern("^[A-Z0-9_]+$");
        for fits in ["VCPU", "CUSTOM_1", "VCPU\n"] {
            assert!(upper.matches(fits), "{fits:?}");
        }
        for misfit in ["", "\n", "VCPU\n\n", "VCPU\r", " VCPU", "a\nVCPU", "VCPÜ"] {
            assert!(!upper.matches(misfit), "{misfit:?}");
        }
        assert!(pattern("^[1-9][0-9]*$").matches("10\n"));
        // Each choice has its own ends.
        let consumer_type = pattern("^[A-Z0-9_]+$|^all|^unknown$");
        for fits in ["INSTANCE", "unknown", "unknown\n", "all", "allocation"] {
            assert!(consumer_type.matches(fits), "{fits:?}");
        }
        for misfit in ["instance", "unknowns", "an all"] {
            assert!(!consumer_type.matches(misfit), "{misfit:?}");
        }
    }
}
