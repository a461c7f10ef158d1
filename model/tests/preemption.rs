//! Consumers whose end makes room: plans that the naive model confirms, and an exhaustive search in
//! small flat clouds.
#![allow(clippy::unwrap_used)] // A panic fails the test.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use placement_model::query::candidates::CandidateRequest;
use placement_model::query::consumers::ConsumerFilter;
use placement_model::query::preemption::{Preemptible, Preemption};
use placement_model::state::tree_set::TreeSet;
use placement_model::{State, mutant};
use placement_naive::cases::cases;
use placement_naive::holding::{Allocations, accepts, claim};
use placement_naive::sample_cloud::{SampleCloud, group, provider, request, sample_cloud};
use placement_naive::{Naive, config, named};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

/// The type of consumers that may end.
const BATCH: &str = "BATCH";

fn preemption(state: &State, request: &CandidateRequest) -> Preemption {
    let who = Preemptible {
        types: [BATCH.parse().unwrap()].into(),
        projects: BTreeSet::new(),
    };
    let watch = Box::new(|_steps| ControlFlow::Continue(()));
    state.preemption(request, &who, watch).unwrap()
}

/// The state after these consumers have ended.
fn without<'a>(state: &State, consumers: impl IntoIterator<Item = &'a str>) -> Naive {
    let mut naive = Naive::load(state.rows());
    for consumer in consumers {
        assert!(accepts(&mut naive, consumer, &Allocations::new()));
    }
    naive
}

/// Processors and memory of a host or a consumer.
type Size = (u32, u32);

fn resources((cpus, memory): Size) -> BTreeMap<String, u64> {
    [("VCPU", cpus), ("MEMORY_MB", memory)]
        .into_iter()
        .filter(|(_, units)| *units > 0)
        .map(|(class, units)| (class.to_owned(), u64::from(units)))
        .collect()
}

/// A consumer of a flat cloud: name, host, and type.
type Resident = (String, usize, &'static str);

/// Hosts without children, with consumers on each of them.
fn flat_clouds() -> impl Strategy<Value = (SampleCloud, State, Vec<Resident>)> {
    let hosts = vec((1..=6_u32, 1..=6_u32), 1..=3);
    let consumers = vec(
        (
            0..3_usize,
            (1..=3_u32, 0..=3_u32),
            select(vec![BATCH, "INSTANCE"]),
        ),
        0..=8,
    );
    (hosts, consumers).prop_map(|(hosts, consumers)| flat_cloud(&hosts, consumers))
}

/// A cloud of hosts with these sizes, with the consumers that have room: host, size and type.
fn flat_cloud(
    hosts: &[Size],
    consumers: Vec<(usize, Size, &'static str)>,
) -> (SampleCloud, State, Vec<Resident>) {
    let name = |number: usize| format!("host-{number}");
    let providers = hosts.iter().enumerate().map(|(number, (cpus, memory))| {
        provider(&name(number))
            .has("VCPU", *cpus)
            .has("MEMORY_MB", *memory)
    });
    let cloud = sample_cloud(providers);
    let mut state = cloud.state();
    let mut residents = Vec::new();
    for (number, (host, size, of)) in consumers.into_iter().enumerate() {
        let (server, host) = (format!("server-{number}"), host % hosts.len());
        let allocations = [(cloud.uuid(&name(host)), resources(size))].into();
        if claim(&mut state, &server, Some(of), &allocations) {
            residents.push((server, host, of));
        }
    }
    (cloud, state, residents)
}

/// The smallest number of consumers of one host whose end makes room for this size.
fn fewest(cloud: &SampleCloud, state: &State, residents: &[Resident], size: Size) -> Option<usize> {
    let hosts = (0..cloud.providers.len()).filter_map(|host| {
        let here = residents
            .iter()
            .filter(|(_, on, of)| *on == host && *of == BATCH);
        let here: Vec<&str> = here.map(|(name, ..)| name.as_str()).collect();
        let uuid = cloud.uuid(&format!("host-{host}"));
        let sizes = (0..1_u32 << here.len()).filter_map(|set| {
            let ended = (0..here.len()).filter(|at| set & (1 << at) != 0);
            let mut after = without(state, ended.map(|at| here[at]));
            let allocations = [(uuid, resources(size))].into();
            accepts(&mut after, "new", &allocations).then(|| set.count_ones() as usize)
        });
        sizes.min()
    });
    hosts.min()
}

fn check_flat(
    cloud: &SampleCloud,
    state: &State,
    residents: &[Resident],
    size: Size,
) -> Result<(), TestCaseError> {
    let sizes = resources(size);
    let sizes: Vec<_> = sizes
        .iter()
        .map(|(class, units)| (class.as_str(), *units))
        .collect();
    let found = preemption(state, &request([group("", &sizes)]));
    prop_assert!(found.complete);
    let best = fewest(cloud, state, residents, size);
    let Some(plan) = found.plan else {
        prop_assert_eq!(best, None);
        return Ok(());
    };
    prop_assert_eq!(plan.root.is_none(), plan.consumers.is_empty());
    let count = plan.consumers.len();
    prop_assert!(best.is_some_and(|best| best <= count), "{plan:?}");
    if plan.exact {
        prop_assert_eq!(best, Some(count), "{:?}", plan);
    }
    let Some(root) = &plan.root else {
        return Ok(());
    };
    let ended: Vec<String> = plan
        .consumers
        .iter()
        .map(|one| one.uuid.to_string())
        .collect();
    for name in &ended {
        let mut all = residents.iter();
        let is_batch = all.any(|(one, _, of)| one == name && *of == BATCH);
        prop_assert!(is_batch, "{plan:?}");
    }
    let makes_room = |kept: Option<&String>| {
        let ended = ended.iter().filter(|one| Some(*one) != kept);
        let mut after = without(state, ended.map(String::as_str));
        let allocations = [(root.uuid, resources(size))].into();
        accepts(&mut after, "new", &allocations)
    };
    prop_assert!(makes_room(None), "{plan:?}");
    for one in &ended {
        prop_assert!(!makes_room(Some(one)), "{one} need not end: {plan:?}");
    }
    Ok(())
}

/// Clouds in which some consumers have allocations on several providers, and the request that they
/// met.
fn used_clouds() -> impl Strategy<Value = (SampleCloud, State, CandidateRequest)> {
    cases(false).prop_map(|(cloud, mut request)| {
        (request.nested, request.limit) = (true, None);
        let mut state = cloud.state();
        let mut number = 0;
        // Each consumer takes the first candidate.
        while let Some(answer) = named::answers(&state, &request).unwrap().first() {
            let mut allocations = Allocations::new();
            for one in &answer.allocations {
                let resources = one.resources.iter();
                let resources = resources.map(|(class, units)| (class.as_str().to_owned(), *units));
                allocations.insert(one.provider, resources.collect());
            }
            number += 1;
            let server = format!("server-{number}");
            if number > 20 || !claim(&mut state, &server, Some(BATCH), &allocations) {
                break;
            }
        }
        (cloud, state, request)
    })
}

/// The state after these consumers have ended.
fn ended(state: &State, consumers: impl IntoIterator<Item = String>) -> State {
    let mut after = state.clone();
    for one in consumers {
        assert!(claim(&mut after, &one, None, &Allocations::new()));
    }
    after
}

fn check_nested(
    cloud: &SampleCloud,
    state: &State,
    request: &CandidateRequest,
) -> Result<(), TestCaseError> {
    let found = preemption(state, request);
    prop_assert!(found.complete);
    if let Some(plan) = found.plan {
        let all = plan.consumers.iter().map(|one| one.uuid.to_string());
        let candidates = named::answers(&ended(state, all), request).unwrap();
        prop_assert!(!candidates.is_empty(), "{plan:?}");
        return Ok(());
    }
    // Not even the end of all consumers of a tree makes room in this tree.
    for root in cloud.providers.iter().filter(|one| one.parent.is_none()) {
        let tree = state.place(&cloud.uuid(&root.name)).unwrap().tree;
        let filter = ConsumerFilter {
            consumer_type: Some(Some(BATCH.parse().unwrap())),
            ..ConsumerFilter::default()
        };
        let all = state.consumers(&filter, None, 1_000, 100_000).consumers;
        let here = all.into_iter().filter(|one| {
            let mut allocations = one.allocations.iter();
            allocations.any(|held| cloud.name(held.root.uuid) == root.name)
        });
        let after = ended(state, here.map(|one| one.uuid.to_string()));
        let only = CandidateRequest {
            only_trees: Some(TreeSet::from_iter([tree.0])),
            ..request.clone()
        };
        let candidates = named::answers(&after, &only).unwrap();
        prop_assert!(candidates.is_empty(), "{}: {candidates:?}", root.name);
    }
    Ok(())
}

fn size() -> impl Strategy<Value = Size> {
    (1..=6_u32, 0..=6_u32)
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn plans_in_flat_clouds_make_room_with_few(
        (cloud, state, residents) in flat_clouds(),
        size in size(),
    ) {
        check_flat(&cloud, &state, &residents, size)?;
    }

    #[test]
    fn plans_in_trees_make_room((cloud, state, request) in used_clouds()) {
        check_nested(&cloud, &state, &request)?;
    }
}

/// The largest consumer frees memory, which the request does not want.
fn check_decoy() -> Result<(), TestCaseError> {
    let consumers = vec![
        (0, (1, 3), BATCH),
        (0, (2, 0), BATCH),
        (0, (2, 0), BATCH),
        (0, (1, 0), "INSTANCE"),
    ];
    let (cloud, state, residents) = flat_cloud(&[(6, 6)], consumers);
    check_flat(&cloud, &state, &residents, (4, 0))
}

#[test]
fn large_consumer_that_frees_nothing_wanted_stays() {
    check_decoy().unwrap();
}

/// The checks find each injected bug.
#[test]
fn injected_bugs_are_found() {
    for bug in ["preempts-any-type", "preempts-too-many"] {
        let _bug = mutant::inject(bug);
        let mut runner = TestRunner::new(config(1500));
        let checked = runner.run(
            &(flat_clouds(), size()),
            |((cloud, state, residents), size)| check_flat(&cloud, &state, &residents, size),
        );
        let is_found = checked.is_err() || check_decoy().is_err();
        assert!(is_found, "no check finds {bug}");
    }
}
