//! `member_of=UUID`, `member_of=in:UUID,UUID`, `member_of=!UUID`, `member_of=!in:UUID,UUID`.

use std::collections::BTreeSet;

use placement_model::types::AggregateUuid;

use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::spelling;

/// The aggregates that a group requires and forbids.
#[derive(Default)]
pub(crate) struct MemberOf {
    /// The provider must be in at least one aggregate of each set.
    pub(crate) any_of: Vec<BTreeSet<AggregateUuid>>,
    /// The provider must be in none of these.
    pub(crate) forbidden: BTreeSet<AggregateUuid>,
}

/// Parses all values of the parameter `member_of{suffix}`: several from 1.24, negative ones from
/// 1.32.
///
/// # Errors
/// 400 for a form that this version does not have.
pub(crate) fn parse_member_of(
    values: &[&str],
    suffix: &str,
    version: Microversion,
) -> Result<MemberOf, ApiError> {
    if !version.from(24) && values.len() > 1 {
        return Err(ApiError::bad_request(format!(
            "Multiple member_of{suffix} parameters are not supported in this microversion; they \
             require 1.24"
        )));
    }
    let mut member_of = MemberOf::default();
    for value in values {
        let negative = value.strip_prefix('!');
        let aggregates = parse_one(value, negative.unwrap_or(value))?;
        if negative.is_none() {
            member_of.any_of.push(aggregates);
        } else if version.from(32) {
            member_of.forbidden.extend(aggregates);
        } else {
            return Err(ApiError::bad_request(format!(
                "Forbidden member_of{suffix} parameters are not supported in the specified \
                 microversion"
            )));
        }
    }
    Ok(member_of)
}

fn parse_one(value: &str, rest: &str) -> Result<BTreeSet<AggregateUuid>, ApiError> {
    let uuids: Vec<&str> = match rest.strip_prefix("in:") {
        Some(list) => list.split(',').collect(),
        None if value.contains(',') => {
            return Err(ApiError::bad_request(format!(
                "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' \
                 keyword using the valid microversion. Got: {value}"
            )));
        }
        None => vec![rest],
    };
    if let Some(wrong) = uuids.iter().find(|uuid| spelling::uuid(uuid).is_none()) {
        return Err(ApiError::bad_request(format!(
            "Invalid query string parameters: Expected 'member_of' parameter to contain valid \
             UUID(s). Got: {wrong}"
        )));
    }
    Ok(uuids.into_iter().map(AggregateUuid::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::wire::query::Query;

    const A: &str = "aaaaaaaa-0000-0000-0000-000000000001";
    const B: &str = "bbbbbbbb-0000-0000-0000-000000000002";

    fn parse(query: &str, minor: u8) -> Option<(usize, usize)> {
        let query = Query::parse(query).ok()?;
        let values: Vec<_> = query.all("member_of").collect();
        let found = parse_member_of(&values, "", Microversion::new(minor)).ok()?;
        Some((found.any_of.len(), found.forbidden.len()))
    }

    #[test]
    fn versions_add_forms() {
        assert_eq!(parse(&format!("member_of={A}"), 3), Some((1, 0)));
        assert_eq!(parse(&format!("member_of=in:{A},{B}"), 3), Some((1, 0)));
        assert_eq!(parse(&format!("member_of={A}&member_of={B}"), 23), None);
        assert_eq!(
            parse(&format!("member_of={A}&member_of={B}"), 24),
            Some((2, 0))
        );
        assert_eq!(parse(&format!("member_of=!{A}"), 31), None);
        assert_eq!(
            parse(&format!("member_of=!in:{A},{B}&member_of=!{A}"), 32),
            Some((0, 2))
        );
    }

    #[test]
    fn only_uuids_name_aggregates() {
        for value in [
            "",
            "x",
            "in:",
            "!",
            "!in:",
            "!!x",
            &format!(" {A}"),
            &format!("{A},{B}"),
            &format!("in:{A},"),
        ] {
            assert_eq!(parse(&format!("member_of={value}"), 39), None, "{value:?}");
        }
    }
}
