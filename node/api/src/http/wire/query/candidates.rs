//! The query string of `GET /allocation_candidates`.

use std::collections::{BTreeSet, HashMap};

use indexmap::{IndexMap, IndexSet};
use placement_model::query::candidates::{CandidateRequest, GroupPolicy, RequestGroup};
use placement_model::types::{Given, ProviderUuid, ResourceClassName};

use super::member_of::parse_member_of;
use super::resources::parse_resources;
use super::string::Query;
use super::traits::{parse_required, parse_root_required};
use crate::http::errors::{ApiError, code, joined};
use crate::http::wire::microversion::Microversion;
use crate::http::wire::{schema, spelling};

/// Parses the whole query string.
///
/// # Errors
/// 400 for parameters that this version does not have, and for contradictions.
pub(crate) fn parse_candidates(
    query: &Query,
    version: Microversion,
) -> Result<CandidateRequest, ApiError> {
    query.check("/allocation_candidates", version)?;
    let mut request = parse_wide(query)?;
    request.groups = parse_groups(query, version)?;
    request.class_order = class_order(query, version);
    if version.from(36) {
        check_resourceless(&request)?
    } else {
        check_orphans(&request.groups)?
    }
    if version.from(22) {
        check_contradictions(&request.groups)?;
    }
    let groups = request.groups.iter();
    let named = groups.filter(|group| !group.suffix.is_empty()).count();
    if request.group_policy.is_none() && named > 1 {
        return Err(ApiError::bad_request(
            "The \"group_policy\" parameter is required when specifying more than one \
             \"resources{N}\" parameter.",
        ));
    }
    request.nested = version.from(29);
    request.mappings = version.from(34);
    Ok(request)
}

/// Parses the parameters that concern the request as a whole.
fn parse_wide(query: &Query) -> Result<CandidateRequest, ApiError> {
    let mut request = CandidateRequest {
        limit: query.first("limit").map(parse_limit).transpose()?,
        group_policy: query.first("group_policy").and_then(parse_policy),
        ..CandidateRequest::default()
    };
    if let Some(value) = query.first("root_required") {
        if query.all("root_required").count() > 1 {
            let message = "Query parameter 'root_required' may be specified only once.";
            return Err(ApiError::bad_request(message).with_code(code::DUPLICATE_KEY));
        }
        let required = parse_root_required(value)?;
        request.root_required = required.any_of.into_iter().flatten().collect();
        request.root_forbidden = required.forbidden;
        let both: Vec<_> = request
            .root_required
            .intersection(&request.root_forbidden)
            .collect();
        if !both.is_empty() {
            return Err(bad_value(format!(
                "Conflicting required and forbidden traits found in root_required: {}",
                joined(&both)
            )));
        }
    }
    for value in query.all("same_subtree") {
        let suffixes: BTreeSet<String> = value
            .split(',')
            .map(|suffix| suffix.trim().to_owned())
            .collect();
        if suffixes.contains("") {
            return Err(bad_value(
                "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
            ));
        }
        request.same_subtree.push(suffixes);
    }
    Ok(request)
}

fn bad_value(message: impl Into<String>) -> ApiError {
    ApiError::bad_request(message).with_code(code::BAD_VALUE)
}

/// Parses `limit`. If it is repeated, the first value is used, although the schema checks the last.
fn parse_limit(text: &str) -> Result<usize, ApiError> {
    match spelling::integer(text) {
        Some(limit @ 1..) => Ok(usize::try_from(limit).unwrap_or(usize::MAX)),
        _ => Err(ApiError::bad_request(format!(
            "Invalid query string parameters: limit is '{text}'; give a positive integer"
        ))),
    }
}

/// Parses `group_policy`. If it is repeated, the first value is used, although the schema checks
/// the last; an unknown value does not isolate.
fn parse_policy(text: &str) -> Option<GroupPolicy> {
    match text {
        "" => None,
        "isolate" => Some(GroupPolicy::Isolate),
        _ => Some(GroupPolicy::None),
    }
}

/// Parses the groups, in the order of their first occurrence.
fn parse_groups(query: &Query, version: Microversion) -> Result<Vec<RequestGroup>, ApiError> {
    let mut groups: IndexMap<&str, RequestGroup> = IndexMap::new();
    // All values of a key are parsed together, at its first occurrence.
    let mut unread: HashMap<&str, Vec<&str>> = HashMap::new();
    for (key, value) in query.iter() {
        unread.entry(key).or_default().push(value);
    }
    for (key, value) in query.iter() {
        let Some((prefix, suffix)) = split_key(key, version) else {
            continue;
        };
        let group = groups.entry(suffix).or_insert_with(|| RequestGroup {
            suffix: suffix.to_owned(),
            ..RequestGroup::default()
        });
        match prefix {
            "resources" => group.resources = parse_resources(value)?,
            "required" => {
                if let Some(values) = unread.remove(key) {
                    let required = parse_required(&values, version)?;
                    group.required = required.any_of;
                    group.forbidden = required.forbidden;
                }
            }
            "member_of" => {
                if let Some(values) = unread.remove(key) {
                    let member_of = parse_member_of(&values, suffix, version)?;
                    group.member_of = member_of.any_of;
                    group.not_member_of = member_of.forbidden;
                }
            }
            _ => group.in_tree = Some(parse_in_tree(value)?),
        }
    }
    Ok(groups.into_values().collect())
}

/// The classes of a valid query in the order of their first occurrence.
fn class_order(query: &Query, version: Microversion) -> Vec<Given<ResourceClassName>> {
    let mut order = IndexSet::new();
    for (key, value) in query.iter() {
        if split_key(key, version).is_some_and(|(prefix, _)| prefix == "resources") {
            let classes = value.split(',').filter_map(|item| item.split(':').next());
            order.extend(classes.map(Given::from));
        }
    }
    order.into_iter().collect()
}

/// Parses `in_tree`. Any spelling of a UUID is accepted, but only the canonical spelling can match
/// a provider.
fn parse_in_tree(value: &str) -> Result<Given<ProviderUuid>, ApiError> {
    let text = value.trim();
    if spelling::uuid(text).is_none() {
        return Err(ApiError::bad_request(format!(
            "Invalid query string parameters: Expected 'in_tree' parameter to be a format of \
             uuid. Got: {value}"
        )));
    }
    Ok(Given::from(text))
}

/// Splits the key of a group's parameter into prefix and suffix.
fn split_key(key: &str, version: Microversion) -> Option<(&'static str, &str)> {
    let mut keys = schema::group_keys(version).iter();
    keys.find_map(|(prefix, form)| Some((*prefix, form.suffix(key)?)))
}

/// From 1.36 on a group may lack resources if it is in a subtree.
fn check_resourceless(request: &CandidateRequest) -> Result<(), ApiError> {
    let groups = &request.groups;
    if groups.iter().all(|group| group.resources.is_empty()) {
        let message = "There must be at least one resources or resources[$S] parameter.";
        return Err(ApiError::bad_request(message).with_code(code::MISSING_VALUE));
    }
    let subtrees = request.same_subtree.iter().flatten();
    let subtree: BTreeSet<&str> = subtrees.map(String::as_str).collect();
    let known: Vec<&str> = groups.iter().map(|group| group.suffix.as_str()).collect();
    let resourceless = groups.iter().filter(|group| group.resources.is_empty());
    let loose: Vec<&str> = resourceless
        .map(|group| group.suffix.as_str())
        .filter(|name| !subtree.contains(name))
        .collect();
    if !loose.is_empty() {
        return Err(bad_value(format!(
            "Resourceless suffixed group request should be specified in `same_subtree` query \
             param: bad group(s) - [{}].",
            loose.join(", ")
        )));
    }
    let unknown: Vec<&str> = subtree
        .into_iter()
        .filter(|suffix| !known.contains(suffix))
        .collect();
    if !unknown.is_empty() {
        return Err(bad_value(format!(
            "Real suffixes should be specified in `same_subtree`: [{}] not found in [{}].",
            unknown.join(", "),
            known.join(", "),
        )));
    }
    Ok(())
}

/// Before 1.36 every group must request resources.
fn check_orphans(groups: &[RequestGroup]) -> Result<(), ApiError> {
    let orphans = || groups.iter().filter(|group| group.resources.is_empty());
    let keys = |prefix: &str, has: fn(&RequestGroup) -> bool| {
        let found = orphans().filter(|group| has(group));
        let keys: Vec<String> = found
            .map(|group| format!("{prefix}{}", group.suffix))
            .collect();
        keys.join(", ")
    };
    let traits = keys("required", |group| !group.required.is_empty());
    let aggregates = keys("member_of", |group| {
        !group.member_of.is_empty() || !group.not_member_of.is_empty()
    });
    Err(ApiError::bad_request(if !traits.is_empty() {
        format!(
            "All traits parameters must be associated with resources.  Found the following \
             orphaned traits keys: {traits}"
        )
    } else if !aggregates.is_empty() {
        format!(
            "All member_of parameters must be associated with resources. Found the following \
             orphaned member_of keys: {aggregates}"
        )
    } else if orphans().next().is_some() {
        "All request groups must specify resources.".to_owned()
    } else if groups.is_empty() {
        "At least one request group (`resources` or `resources{$S}`) is required.".to_owned()
    } else {
        return Ok(());
    }))
}

/// Rejects a set of required traits if all of its traits are forbidden.
fn check_contradictions(groups: &[RequestGroup]) -> Result<(), ApiError> {
    let mut contradictions = Vec::new();
    for group in groups {
        let sets = group.required.iter();
        for any_of in sets.filter(|any_of| any_of.is_subset(&group.forbidden)) {
            let shown = joined(&Vec::from_iter(any_of));
            contradictions.push(format!("required{}: ({shown})", group.suffix));
        }
    }
    if contradictions.is_empty() {
        return Ok(());
    }
    contradictions.sort_unstable();
    Err(ApiError::bad_request(format!(
        "Conflicting required and forbidden traits found in the following traits keys: {}",
        contradictions.join(", ")
    )))
}

#[cfg(test)]
mod tests;
