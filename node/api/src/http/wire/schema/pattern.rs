//! The forms of text that schemas ask for, as regular expressions. Those that each class and each UUID
//! of a body is held against are matched by hand: the expressions took longer than reading the body.

use std::borrow::Cow;

use placement_model::types::is_upper_byte;
use regex_lite::Regex;

const UPPER: &str = "^[A-Z0-9_]+$";
const UUID: &str = "^[0-9a-fA-F-]{36}$";

/// A form of text.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: Cow<'static, str>,
    matcher: Matcher,
}

#[derive(Debug, Clone)]
enum Matcher {
    Regex(Regex),
    Hand(fn(&str) -> bool),
}

impl Pattern {
    fn new(text: impl Into<Cow<'static, str>>) -> Self {
        let text = text.into();
        let matcher = Matcher::Regex(regex(&text));
        Self { text, matcher }
    }

    /// The form that a regular expression of the API's description stands for.
    pub(super) fn of(text: &'static str) -> Self {
        match text {
            UPPER => Self::upper(),
            UUID => Self::uuid(),
            text => Self::new(text),
        }
    }

    /// A form whose texts are known without its expression.
    fn by_hand(text: &'static str, matches: fn(&str) -> bool) -> Self {
        Self {
            text: text.into(),
            matcher: Matcher::Hand(matches),
        }
    }

    /// Resource classes and consumer types.
    fn upper() -> Self {
        Self::by_hand(UPPER, |text| {
            let name = without_newline(text);
            !name.is_empty() && name.bytes().all(is_upper_byte)
        })
    }

    /// 36 characters out of hexadecimal digits and hyphens.
    fn uuid() -> Self {
        Self::by_hand(UUID, |text| {
            let uuid = without_newline(text);
            let may_stand = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
            uuid.len() == 36 && uuid.bytes().all(may_stand)
        })
    }

    /// Positive integers without leading zeros.
    pub(super) fn positive() -> Self {
        Self::new("^[1-9][0-9]*$")
    }

    /// Consumer types in queries.
    pub(super) fn consumer_type_query() -> Self {
        Self::new("^[A-Z0-9_]+$|^all|^unknown$")
    }

    /// Query keys of numbered groups.
    pub(super) fn numbered_key(prefix: &str) -> Self {
        Self::new(format!("^{prefix}([1-9][0-9]*)?$"))
    }

    /// Query keys of named groups.
    pub(super) fn named_key(prefix: &str) -> Self {
        Self::new(format!("^{prefix}([a-zA-Z0-9_-]{{1,64}})?$"))
    }

    /// The form as the reference writes it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text has this form.
    pub(super) fn matches(&self, text: &str) -> bool {
        match &self.matcher {
            Matcher::Regex(regex) => regex.is_match(text),
            Matcher::Hand(matches) => matches(text),
        }
    }

    /// What stands in the form's parentheses, of a text that has it; empty if it is left out.
    pub(crate) fn suffix<'t>(&self, text: &'t str) -> Option<&'t str> {
        let Matcher::Regex(regex) = &self.matcher else {
            return None;
        };
        let found = regex.captures(text)?;
        Some(found.get(1).map_or("", |suffix| suffix.as_str()))
    }
}

/// Where the reference's expression ends in `$`, Python lets a newline through.
fn regex(text: &str) -> Regex {
    Regex::new(&text.replace('$', r"\n?\z")).expect("the expressions here are valid")
}

/// The same for what is matched by hand.
fn without_newline(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_matched_by_hand_is_what_its_expression_says(
            text in "[A-Z0-9_a\n]{0,4}|[0-9a-fA-F-]{35,37}[\ng]{0,2}|.{0,3}",
        ) {
            for form in [Pattern::upper(), Pattern::uuid()] {
                prop_assert_eq!(form.matches(&text), regex(form.text()).is_match(&text));
            }
        }
    }

    #[test]
    fn one_newline_may_stand_at_the_end() {
        for fits in ["VCPU", "CUSTOM_1", "VCPU\n"] {
            assert!(Pattern::upper().matches(fits), "{fits:?}");
        }
        for misfit in [
            "", "\n", "vcpu", "VCPU\n\n", "VCPU\r", " VCPU", "a\nVCPU", "VCPÜ",
        ] {
            assert!(!Pattern::upper().matches(misfit), "{misfit:?}");
        }
        assert!(Pattern::uuid().matches("b14d2d5c-9e5a-4f4f-8d1f-6d3c1f0b2a11\n"));
        assert!(!Pattern::uuid().matches("b14d2d5c-9e5a-4f4f-8d1f-6d3c1f0b2a1"));
        assert!(Pattern::positive().matches("10\n"));
        assert!(!Pattern::positive().matches("01"));
    }

    #[test]
    fn each_choice_has_its_own_ends() {
        let form = Pattern::consumer_type_query();
        for fits in ["INSTANCE", "unknown", "unknown\n", "all", "allocation"] {
            assert!(form.matches(fits), "{fits:?}");
        }
        for misfit in ["instance", "unknowns", "an all"] {
            assert!(!form.matches(misfit), "{misfit:?}");
        }
        // The keys of mappings: anything with one legal character.
        let form = Pattern::of("[a-zA-Z0-9_-]{1,64}");
        assert!(form.matches("*a*"));
        assert!(!form.matches("*"));
    }

    #[test]
    fn a_group_s_key_ends_in_its_suffix() {
        let numbered = Pattern::numbered_key("resources");
        assert_eq!(numbered.suffix("resources"), Some(""));
        assert_eq!(numbered.suffix("resources12"), Some("12"));
        for misfit in ["resources0", "resources1a", "resource", "Xresources1"] {
            assert_eq!(numbered.suffix(misfit), None, "{misfit}");
        }
        let named = Pattern::named_key("in_tree");
        assert_eq!(named.suffix("in_tree_A-1"), Some("_A-1"));
        assert_eq!(named.suffix(&format!("in_tree{}", "a".repeat(65))), None);
    }
}
