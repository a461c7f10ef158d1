//! Checks answers of searches for allocation candidates. Answers are compared as sets, since the
//! order is unspecified; with a limit they may be any subset of that size.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::query::candidates::CandidateRequest;
use placement_model::types::Given;
use placement_naive::candidates::{NaiveCandidate, Verdict, judge, summarized};
use placement_naive::sample_cloud::{SampleCloud, Stock};
use serde_json::{Map, Value, json};

use super::{Expected, UNDEFINED};
use crate::history::Answer;

/// Describes the error in an answer, if there is one.
pub(super) fn wrong(
    sample_cloud: &SampleCloud,
    request: &CandidateRequest,
    minor: u8,
    answer: &Answer,
) -> Option<String> {
    let Verdict::Answers(mut all) = judge(sample_cloud, request) else {
        return Expected::error(400, UNDEFINED, minor).wrong(answer);
    };
    if answer.status != 200 {
        return Some("expected status 200".to_owned());
    }
    let body = answer.json();
    // Before 1.34 candidates that differ only in mappings look identical, but all are returned.
    let count = all.len().min(request.limit.unwrap_or(usize::MAX));
    let mut right: BTreeMap<NaiveCandidate, usize> = BTreeMap::new();
    for way in std::mem::take(&mut all) {
        let way = if minor >= 34 { way } else { unmapped(way) };
        *right.entry(way.clone()).or_default() += 1;
        all.insert(way);
    }
    let list = body["allocation_requests"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if list.len() != count {
        return Some(format!("expected {count} of these candidates: {all:?}"));
    }
    let mut given = BTreeSet::new();
    for one in list {
        let way = read(one, minor);
        let left = way.as_ref().and_then(|way| right.get_mut(way));
        match left.and_then(|left| left.checked_sub(1).map(|less| *left = less)) {
            Some(()) => given.extend(way),
            None => return Some(format!("{one} is not among these candidates: {all:?}")),
        }
    }
    let summaries = summaries(sample_cloud, request, minor, &given, &all);
    let shown = sorted(body["provider_summaries"].clone());
    (shown != summaries).then(|| format!("expected these summaries: {summaries}"))
}

fn unmapped(way: NaiveCandidate) -> NaiveCandidate {
    NaiveCandidate {
        mappings: BTreeMap::new(),
        ..way
    }
}

/// Parses a candidate: a list below 1.12, mappings from 1.34.
fn read(one: &Value, minor: u8) -> Option<NaiveCandidate> {
    let amounts = |item: &Value| -> Option<BTreeMap<String, u64>> {
        let resources = item["resources"].as_object()?.iter();
        resources
            .map(|(class, amount)| Some((class.clone(), amount.as_u64()?)))
            .collect()
    };
    let allocations = if minor >= 12 {
        let dict = one["allocations"].as_object()?.iter();
        dict.map(|(provider, item)| Some((provider.clone(), amounts(item)?)))
            .collect::<Option<_>>()?
    } else {
        let list = one["allocations"].as_array()?.iter();
        list.map(|item| {
            let provider = item["resource_provider"]["uuid"].as_str()?;
            Some((provider.to_owned(), amounts(item)?))
        })
        .collect::<Option<_>>()?
    };
    let mappings = match one.get("mappings") {
        None if minor < 34 => BTreeMap::new(),
        mappings => mappings?
            .as_object()?
            .iter()
            .map(|(suffix, providers)| {
                let names = providers
                    .as_array()?
                    .iter()
                    .map(|name| Some(name.as_str()?.to_owned()));
                Some((suffix.clone(), names.collect::<Option<BTreeSet<_>>>()?))
            })
            .collect::<Option<_>>()?,
    };
    Some(NaiveCandidate {
        allocations,
        mappings,
    })
}

/// Sorts the traits in summaries, as their order is unspecified.
fn sorted(mut summaries: Value) -> Value {
    for (_, summary) in summaries.as_object_mut().into_iter().flatten() {
        if let Some(traits) = summary.get_mut("traits").and_then(Value::as_array_mut) {
            traits.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        }
    }
    summaries
}

/// The expected summaries: only requested classes below 1.27, traits from 1.17, the tree from 1.29.
fn summaries(
    sample_cloud: &SampleCloud,
    request: &CandidateRequest,
    minor: u8,
    given: &BTreeSet<NaiveCandidate>,
    all: &BTreeSet<NaiveCandidate>,
) -> Value {
    let groups = request
        .groups
        .iter()
        .flat_map(|group| group.resources.keys());
    let asked: BTreeSet<&str> = groups.map(Given::as_str).collect();
    let one = |name: String| {
        let provider = sample_cloud.get(&name);
        let resources: Map<String, Value> = provider
            .stocks
            .iter()
            .filter(|(class, _)| minor >= 27 || asked.contains(class.as_str()))
            .map(|(class, stock)| (class.clone(), stock_body(stock)))
            .collect();
        let mut body = json!({ "resources": resources });
        if minor >= 17 {
            body["traits"] = json!(provider.traits);
        }
        if minor >= 29 {
            body["parent_provider_uuid"] = json!(provider.parent);
            body["root_provider_uuid"] = json!(sample_cloud.root(&name));
        }
        (name, body)
    };
    let names = summarized(sample_cloud, request, given, all);
    Value::Object(names.into_iter().map(one).collect())
}

fn stock_body(stock: &Stock) -> Value {
    let inventory = &stock.inventory;
    let left = f64::from(inventory.total) - f64::from(inventory.reserved);
    let capacity = (left * inventory.allocation_ratio) as i64;
    json!({ "capacity": capacity, "used": stock.used })
}
