use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use placement_model::query::candidates::{CandidateRequest, RequestGroup};
use placement_model::types::{Capacity, ProviderUuid, TraitName};
use placement_naive::cases::cases;
use placement_naive::named::{self, AllocationRequest, Candidates, ProviderSummary};
use placement_naive::sample_cloud::{CLASSES, group, provider, request, sample_cloud};
use proptest::prelude::*;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::super::template::SHAPES_MAX;
use super::*;
use crate::http::wire::values::Members;

/// A capacity with all its digits, which may exceed 64 bits.
struct Whole(Capacity);

impl Serialize for Whole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.small() {
            Some(units) => serializer.serialize_i64(units),
            None => RawValue::from_string(self.0.to_string())
                .map_err(serde::ser::Error::custom)?
                .serialize(serializer),
        }
    }
}

#[derive(Serialize)]
struct AnswerBody<R: Serialize, S: Serialize> {
    allocation_requests: Vec<R>,
    provider_summaries: S,
}

#[derive(Serialize)]
struct DictBody<A: Serialize, M: Serialize> {
    allocations: A,
    #[serde(skip_serializing_if = "Option::is_none")]
    mappings: Option<M>,
}

#[derive(Serialize)]
struct ListBody<A: Serialize> {
    allocations: Vec<A>,
}

#[derive(Serialize)]
struct ListItem<R: Serialize> {
    resource_provider: ProviderRef,
    resources: R,
}

#[derive(Serialize)]
struct ProviderRef {
    uuid: ProviderUuid,
}

#[derive(Serialize)]
struct ResourcesBody<R: Serialize> {
    resources: R,
}

#[derive(Serialize)]
struct SummaryBody<'a, R: Serialize> {
    resources: R,
    #[serde(skip_serializing_if = "Option::is_none")]
    traits: Option<&'a [TraitName]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_provider_uuid: Option<Option<ProviderUuid>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_provider_uuid: Option<ProviderUuid>,
}

#[derive(Serialize)]
struct ResourceBody {
    capacity: Whole,
    used: u64,
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn request_json(one: &AllocationRequest, version: Microversion) -> String {
    let placed = one.allocations.iter();
    if !version.from(12) {
        let items = placed.map(|placed| ListItem {
            resource_provider: ProviderRef {
                uuid: placed.provider,
            },
            resources: Members(&placed.resources),
        });
        return json(&ListBody {
            allocations: items.collect(),
        });
    }
    let resources = |resources| ResourcesBody {
        resources: Members(resources),
    };
    json(&DictBody {
        allocations: Members(placed.map(|placed| (placed.provider, resources(&placed.resources)))),
        mappings: version.from(34).then_some(Members(&one.mappings)),
    })
}

fn summary_json(
    one: &ProviderSummary,
    version: Microversion,
    requested: &BTreeSet<&str>,
) -> String {
    let shown = one
        .resources
        .iter()
        .filter(|(class, _)| version.from(27) || requested.contains(class.as_str()));
    let resources = shown.map(|(class, resource)| {
        let body = ResourceBody {
            capacity: Whole(resource.capacity),
            used: resource.used,
        };
        (class.as_str(), body)
    });
    let nested = version.from(29);
    json(&SummaryBody {
        resources: Members(resources),
        traits: version.from(17).then_some(&one.traits),
        parent_provider_uuid: nested.then_some(one.parent),
        root_provider_uuid: nested.then_some(one.root),
    })
}

/// The answer as serde_json writes it.
fn by_serde(found: &Candidates, request: &CandidateRequest, version: Microversion) -> String {
    let requested: BTreeSet<&str> = (request.groups.iter())
        .flat_map(|group| group.resources.keys())
        .map(|class| class.as_str())
        .collect();
    let raw = |text: String| serde_json::value::RawValue::from_string(text).unwrap();
    let requests = found.allocation_requests.iter();
    let summaries = found.provider_summaries.iter().map(|one| {
        let body = summary_json(one, version, &requested);
        (one.provider, raw(body))
    });
    json(&AnswerBody {
        allocation_requests: requests
            .map(|one| raw(request_json(one, version)))
            .collect(),
        provider_summaries: Members(summaries),
    })
}

fn written(state: &State, request: &CandidateRequest, version: Microversion) -> String {
    let mut search = state.candidates(request, None).unwrap();
    let summaries = Summaries::new(request);
    let mut writer = AnswerWriter::new(state, &search, summaries, version);
    while let Some(candidate) = search.advance() {
        writer.write(candidate);
    }
    search.complete(&mut writer.summaries);
    let Ok(pieces) = writer.finish(|_| Ok::<(), Infallible>(()));
    String::from_utf8(pieces.concat()).unwrap()
}

/// Amounts taken from one provider.
type Taken = BTreeMap<ResourceClassName, u64>;

/// Checks the answer for a cloud of two trees with `devices` devices each. Returns how often
/// each list of amounts, provider by provider, occurs.
fn shapes(devices: u64, groups: &[RequestGroup]) -> BTreeMap<Vec<Taken>, usize> {
    let providers = ["here", "there"].into_iter().flat_map(|host| {
        let device = move |nth| {
            let device = provider(&format!("{host} {nth}")).under(host);
            device.has(CLASSES[0], 16).has(CLASSES[1], 16)
        };
        std::iter::once(provider(host)).chain((0..devices).map(device))
    });
    let state = sample_cloud(providers).state();
    let request = request(groups.iter().cloned());
    let version = Microversion::new(39);
    let found = named::candidates(&state, &request).unwrap();
    let expected = by_serde(&found, &request, version);
    assert_eq!(written(&state, &request, version), expected);
    let mut shapes = BTreeMap::new();
    for one in &found.allocation_requests {
        let placed = one.allocations.iter();
        let taken = placed.map(|placed| placed.resources.clone()).collect();
        *shapes.entry(taken).or_default() += 1;
    }
    shapes
}

#[test]
fn candidates_of_many_shapes_are_written_as_serde_json_writes_them() {
    let [one, other] = [CLASSES[0], CLASSES[1]];
    // On one or two devices, in the order of their creation or not.
    let apart = group("", &[(one, 1), (other, 1)]);
    let shapes_of_two = shapes(2, &[apart, group("_A", &[(one, 2)])]);
    assert_eq!(shapes_of_two.len(), 7, "{shapes_of_two:?}");
    assert_eq!(shapes_of_two.values().sum::<usize>(), 2 * 8);
    // More shapes than are cached, and groups that can swap their providers.
    let suffixes = ["_A", "_B", "_C", "_D", "_E"].into_iter();
    let groups = suffixes
        .zip([1, 1, 2, 4, 8])
        .map(|(suffix, amount)| group(suffix, &[(one, amount)]));
    let shapes_of_four = shapes(4, &groups.collect::<Vec<_>>());
    assert!(shapes_of_four.len() > SHAPES_MAX, "{shapes_of_four:?}");
    assert_eq!(shapes_of_four.values().sum::<usize>(), 2 * 4_usize.pow(5));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn written_bytes_equal_those_of_serde_json((cloud, mut request) in cases(false)) {
        let state = cloud.state();
        for minor in [10, 12, 17, 27, 29, 34, 39] {
            request.nested = minor >= 29;
            request.mappings = minor >= 34;
            let version = Microversion::new(minor);
            let found = named::candidates(&state, &request).unwrap();
            let expected = by_serde(&found, &request, version);
            prop_assert_eq!(written(&state, &request, version), expected, "1.{}", minor);
        }
    }
}
