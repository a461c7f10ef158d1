//! The text patterns of schemas, as regular expressions. The patterns of classes and UUIDs are
//! matched by hand, as the expressions took longer than parsing the body.

use placement_model::types::is_upper_byte;
use regex_lite::Regex;
use serde::Deserialize;

/// A regular expression that text must match, prepared for fast checks.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Pattern {
    /// The regular expression as the reference spells it.
    pub(super) text: String,
    /// Literal prefix of all matching texts.
    beginning: String,
    regex: Regex,
    by_hand: Option<fn(&str) -> bool>,
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        // In Python, `$` also matches before a trailing newline.
        let regex = Regex::new(&text.replace('$', r"\n?\z"));
        Self {
            by_hand: match text.as_str() {
                "^[A-Z0-9_]+$" => Some(is_upper),
                "^[0-9a-fA-F-]{36}$" => Some(is_uuid),
                _ => None,
            },
            beginning: beginning(&text).to_owned(),
            regex: regex.expect("the expressions of the API's description are valid"),
            text,
        }
    }
}

impl Pattern {
    /// Whether the text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        match self.by_hand {
            Some(matches) => matches(text),
            None => text.starts_with(&self.beginning) && self.regex.is_match(text),
        }
    }

    /// The text that the pattern's group in parentheses matches, empty if the group is absent;
    /// `None` if the pattern does not match.
    pub(crate) fn suffix<'t>(&self, text: &'t str) -> Option<&'t str> {
        let begins = text.starts_with(&self.beginning);
        let found = begins.then(|| self.regex.captures(text)).flatten()?;
        Some(found.get(1).map_or("", |suffix| suffix.as_str()))
    }
}

/// The literal prefix of a pattern, which tells most parameter names apart.
fn beginning(form: &str) -> &str {
    let before_group = form.split_once('(').map_or("", |(before, _)| before);
    let literal = before_group.strip_prefix('^').unwrap_or_default();
    let is_literal = !form.contains('|')
        && literal
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_lowercase());
    if is_literal { literal } else { "" }
}

/// The pattern of resource classes and consumer types.
fn is_upper(text: &str) -> bool {
    let name = text.strip_suffix('\n').unwrap_or(text);
    !name.is_empty() && name.bytes().all(is_upper_byte)
}

/// The pattern of UUIDs: 36 hexadecimal digits or hyphens, in any order.
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
    fn a_beginning_decides_only_where_it_stands_for_itself() {
        for (form, literal) in [
            ("^member_of([a-zA-Z0-9_-]{1,64})?$", "member_of"),
            ("^resources([1-9][0-9]*)?$", "resources"),
            ("^a?(b)$", ""),
            ("^a(b)|^c(d)$", ""),
            ("^[A-Z0-9_]+$", ""),
        ] {
            assert_eq!(pattern(form).beginning, literal, "{form}");
        }
        let group = pattern("^resources([1-9][0-9]*)?$");
        assert_eq!(group.suffix("resources12"), Some("12"));
        assert_eq!(group.suffix("required12"), None);
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
        // Each alternative has its own anchors.
        let consumer_type = pattern("^[A-Z0-9_]+$|^all|^unknown$");
        for fits in ["INSTANCE", "unknown", "unknown\n", "all", "allocation"] {
            assert!(consumer_type.matches(fits), "{fits:?}");
        }
        for misfit in ["instance", "unknowns", "an all"] {
            assert!(!consumer_type.matches(misfit), "{misfit:?}");
        }
    }
}
