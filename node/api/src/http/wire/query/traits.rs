//! `required=HW_CPU_X86_VMX,!CUSTOM_SLOW` and `required=in:CUSTOM_RED,CUSTOM_BLUE`.

use std::collections::BTreeSet;

use placement_model::types::{Given, TraitName};

use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;

/// The traits that a group requires and forbids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Required {
    /// The provider must have at least one trait of each set.
    pub(crate) any_of: Vec<BTreeSet<Given<TraitName>>>,
    /// The provider must have none of these.
    pub(crate) forbidden: BTreeSet<Given<TraitName>>,
}

/// Parses all values of one parameter `required`. Below 1.39 only the last value is used.
///
/// # Errors
/// 400 for a form that this version does not have.
pub(crate) fn parse_required(values: &[&str], version: Microversion) -> Result<Required, ApiError> {
    let skipped = if version.from(39) {
        0
    } else {
        values.len().saturating_sub(1)
    };
    let mut required = Required::default();
    for value in &values[skipped..] {
        read(value, version.from(22), version.from(39), &mut required)?;
    }
    Ok(required)
}

/// Parses `root_required`, which supports forbidden traits but not `in:`.
pub(crate) fn parse_root_required(value: &str) -> Result<Required, ApiError> {
    let mut required = Required::default();
    read(value, true, false, &mut required)?;
    Ok(required)
}

fn read(
    value: &str,
    may_forbid: bool,
    may_be_any_of: bool,
    into: &mut Required,
) -> Result<(), ApiError> {
    const ANY_OF: &str = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC";
    let list = value.strip_prefix("in:");
    let form = match list {
        Some(_) => ANY_OF,
        None if may_forbid => "HW_CPU_X86_VMX,!CUSTOM_MAGIC",
        None => "HW_CPU_X86_VMX,CUSTOM_MAGIC",
    };
    let traits: Vec<&str> = list.unwrap_or(value).split(',').map(str::trim).collect();
    let is_empty = |name: &&str| match list {
        Some(_) => name.is_empty(),
        // Several exclamation marks count as one.
        None => name.trim_start_matches('!').is_empty(),
    };
    let forbids = traits.iter().any(|name| name.starts_with('!'));
    let wrong = if list.is_some() && !may_be_any_of {
        format!("The format '{ANY_OF}' only supported since microversion 1.39. Got:")
    } else if traits.iter().any(is_empty) {
        format!("Expected 'required' parameter value of the form: {form}. Got an empty trait in:")
    } else if list.is_some() && forbids {
        format!("The format '{ANY_OF}' does not support forbidden traits. Got:")
    } else if forbids && !may_forbid {
        format!("Expected 'required' parameter value of the form: {form}. Got:")
    } else {
        String::new()
    };
    if !wrong.is_empty() {
        let message = format!("Invalid query string parameters: {wrong} {value}");
        return Err(ApiError::bad_request(message));
    }
    if list.is_some() {
        let any_of = traits.into_iter().map(Given::from);
        into.any_of.push(any_of.collect());
        return Ok(());
    }
    for name in traits {
        match name.trim_start_matches('!') {
            plain if plain == name => into.any_of.push(BTreeSet::from([Given::from(name)])),
            forbidden => _ = into.forbidden.insert(Given::from(forbidden)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::wire::query::Query;

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
}
