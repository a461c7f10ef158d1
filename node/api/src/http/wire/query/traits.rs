//! `required=HW_CPU_X86_VMX,!CUSTOM_SLOW` and `required=in:CUSTOM_RED,CUSTOM_BLUE`.

use std::collections::BTreeSet;

use placement_model::types::{Given, TraitName};

use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;

/// What a group requires and forbids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Required {
    /// At least one trait of each set.
    pub(crate) any_of: Vec<BTreeSet<Given<TraitName>>>,
    /// None of these.
    pub(crate) forbidden: BTreeSet<Given<TraitName>>,
}

/// Reads all values of one parameter `required`. Below 1.39 only the last of several counts.
///
/// # Errors
/// 400 for text of a form that this version does not have.
pub(crate) fn parse_required(values: &[&str], version: Microversion) -> Result<Required, ApiError> {
    let skipped = if version.from(39) {
        0
    } else {
        values.len().saturating_sub(1)
    };
    let forms = Forms {
        forbidden: version.from(22),
        any_of: version.from(39),
    };
    let mut required = Required::default();
    for value in &values[skipped..] {
        forms.read(value, &mut required)?;
    }
    Ok(required)
}

/// Reads `root_required`, which may forbid but not ask for one of several.
pub(super) fn parse_root_required(value: &str) -> Result<Required, ApiError> {
    let mut required = Required::default();
    Forms {
        forbidden: true,
        any_of: false,
    }
    .read(value, &mut required)?;
    Ok(required)
}

#[derive(Clone, Copy)]
struct Forms {
    forbidden: bool,
    any_of: bool,
}

impl Forms {
    fn read(self, value: &str, into: &mut Required) -> Result<(), ApiError> {
        if let Some(list) = value.strip_prefix("in:") {
            return self.read_any_of(value, list, into);
        }
        let expected = if self.forbidden {
            "HW_CPU_X86_VMX,!CUSTOM_MAGIC"
        } else {
            "HW_CPU_X86_VMX,CUSTOM_MAGIC"
        };
        let traits: Vec<&str> = value.split(',').map(str::trim).collect();
        if traits
            .iter()
            .any(|name| name.trim_start_matches('!').is_empty())
        {
            return Err(invalid(format!(
                "Expected 'required' parameter value of the form: {expected}. Got an empty trait \
                 in: {value}"
            )));
        }
        if !self.forbidden && traits.iter().any(|name| name.starts_with('!')) {
            return Err(invalid(format!(
                "Expected 'required' parameter value of the form: {expected}. Got: {value}"
            )));
        }
        for name in traits {
            // Any number of exclamation marks counts as one.
            if name.starts_with('!') {
                into.forbidden
                    .insert(Given::from(name.trim_start_matches('!')));
            } else {
                into.any_of.push(BTreeSet::from([Given::from(name)]));
            }
        }
        Ok(())
    }

    fn read_any_of(self, value: &str, list: &str, into: &mut Required) -> Result<(), ApiError> {
        const FORM: &str = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC";
        if !self.any_of {
            return Err(invalid(format!(
                "The format '{FORM}' only supported since microversion 1.39. Got: {value}"
            )));
        }
        let traits: Vec<&str> = list.split(',').map(str::trim).collect();
        if traits.iter().any(|name| name.is_empty()) {
            return Err(invalid(format!(
                "Expected 'required' parameter value of the form: {FORM}. Got an empty trait in: \
                 {value}"
            )));
        }
        if traits.iter().any(|name| name.starts_with('!')) {
            return Err(invalid(format!(
                "The format '{FORM}' does not support forbidden traits. Got: {value}"
            )));
        }
        into.any_of
            .push(traits.into_iter().map(Given::from).collect());
        Ok(())
    }
}

fn invalid(reason: String) -> ApiError {
    ApiError::bad_request(format!("Invalid query string parameters: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::wire::query::Query;
    use proptest::prelude::*;

    fn parse(query: &str, minor: u8) -> Option<(Vec<Vec<String>>, Vec<String>)> {
        let query = Query::parse(query).ok()?;
        let version = Microversion::new(minor);
        let values: Vec<_> = query.all("required").collect();
        let found = parse_required(&values, version).ok()?;
        let texts = |set: &BTreeSet<Given<TraitName>>| {
            set.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        Some((
            found.any_of.iter().map(texts).collect(),
            texts(&found.forbidden),
        ))
    }

    fn some(any_of: &[&[&str]], forbidden: &[&str]) -> Option<(Vec<Vec<String>>, Vec<String>)> {
        let own = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        Some((any_of.iter().map(|set| own(set)).collect(), own(forbidden)))
    }

    #[test]
    fn versions_add_forms() {
        assert_eq!(parse("required=A, B", 17), some(&[&["A"], &["B"]], &[]));
        assert_eq!(parse("required=A,!B", 21), None);
        assert_eq!(parse("required=A,!!B", 22), some(&[&["A"]], &["B"]));
        assert_eq!(parse("required=in:A,B", 38), None);
        assert_eq!(
            parse("required=in:A,B&required=C", 39),
            some(&[&["A", "B"], &["C"]], &[])
        );
        assert_eq!(parse("required=A&required=C", 38), some(&[&["C"]], &[]));
    }

    #[test]
    fn empty_names_are_refused() {
        for value in [
            "", ",", "A,", "!", "A,!", "in:", "in:A,", "in:!A", "in:A,!B",
        ] {
            assert_eq!(parse(&format!("required={value}"), 39), None, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in ".{0,40}") {
            let _ = parse(&format!("required={text}"), 39);
        }
    }
}
