//! Spells a request for candidates as a query of `/allocation_candidates`: the inverse of
//! [`super::parse_candidates`].

use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use placement_model::query::candidates::{CandidateRequest, GroupPolicy, RequestGroup};
use placement_model::types::{AggregateUuid, Given, TraitName};

/// Characters that need no escape in a value, besides letters and digits.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'_')
    .remove(b'-')
    .remove(b':')
    .remove(b',')
    .remove(b'!');

/// The query, without `limit`.
pub(crate) fn spell_candidates(request: &CandidateRequest) -> String {
    let mut query = Vec::new();
    let mut put = |name: &str, suffix: &str, value: String| {
        query.push(format!(
            "{name}{suffix}={}",
            utf8_percent_encode(&value, PLAIN)
        ));
    };
    for group in &request.groups {
        spell_group(request, group, |name, value| {
            put(name, &group.suffix, value)
        });
    }
    let root = traits(&request.root_required, &request.root_forbidden);
    if !root.is_empty() {
        put("root_required", "", root);
    }
    for suffixes in &request.same_subtree {
        put("same_subtree", "", joined(suffixes));
    }
    if let Some(policy) = request.group_policy {
        let policy = match policy {
            GroupPolicy::Isolate => "isolate",
            GroupPolicy::None => "none",
        };
        put("group_policy", "", policy.to_owned());
    }
    query.join("&")
}

fn spell_group(
    request: &CandidateRequest,
    group: &RequestGroup,
    mut put: impl FnMut(&str, String),
) {
    if !group.resources.is_empty() {
        let resources = request.in_order(group).into_iter();
        put(
            "resources",
            joined(resources.map(|(class, amount)| format!("{class}:{amount}"))),
        );
    }
    let (single, several): (Vec<_>, Vec<_>) = group.required.iter().partition(|any| any.len() == 1);
    let required = traits(single.into_iter().flatten(), &group.forbidden);
    if !required.is_empty() {
        put("required", required);
    }
    for any in several {
        put("required", format!("in:{}", joined(any)));
    }
    let aggregates = |all| joined::<&AggregateUuid>(all);
    for any in &group.member_of {
        put("member_of", format!("in:{}", aggregates(any)));
    }
    if !group.not_member_of.is_empty() {
        put(
            "member_of",
            format!("!in:{}", aggregates(&group.not_member_of)),
        );
    }
    if let Some(provider) = &group.in_tree {
        put("in_tree", provider.to_string());
    }
}

fn traits<'a>(
    required: impl IntoIterator<Item = &'a Given<TraitName>>,
    forbidden: impl IntoIterator<Item = &'a Given<TraitName>>,
) -> String {
    let required = required.into_iter().map(ToString::to_string);
    let forbidden = forbidden.into_iter().map(|name| format!("!{name}"));
    joined(required.chain(forbidden))
}

fn joined<T: Display>(all: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = all.into_iter().map(|one| one.to_string()).collect();
    all.join(",")
}
