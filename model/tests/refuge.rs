//! Where consumers could go if a tree had to be emptied: moves that the naive model accepts, and an
//! exhaustive search in small flat clouds.
#![allow(clippy::unwrap_used)] // A panic fails the test.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use placement_model::query::CONSUMERS_MAX;
use placement_model::query::refuge::{ElsewhereRequest, Order, Refuge, RefugeError, RefugeRequest};
use placement_model::types::ProviderUuid;
use placement_model::{State, mutant};
use placement_naive::cases::cases;
use placement_naive::holding::{Allocations, accepts, claim, held};
use placement_naive::sample_cloud::{SHARES, SampleCloud, provider, sample_cloud};
use placement_naive::{Naive, config, named};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

fn elsewhere(order: Order) -> ElsewhereRequest {
    ElsewhereRequest {
        required: [].into(),
        forbidden: [].into(),
        member_of: Vec::new(),
        order,
    }
}

fn emptying(uuid: ProviderUuid, order: Order) -> RefugeRequest {
    RefugeRequest {
        providers: [uuid].into(),
        elsewhere: elsewhere(order),
    }
}

fn refuge(state: &State, request: &RefugeRequest) -> Refuge {
    let watch = Box::new(|_steps| ControlFlow::Continue(()));
    state.refuge(request, watch).unwrap()
}

/// Clouds in which some consumers have allocations on several providers.
fn used_clouds() -> impl Strategy<Value = (SampleCloud, State)> {
    cases(false).prop_map(|(cloud, mut request)| {
        (request.nested, request.limit) = (true, Some(3));
        let mut state = cloud.state();
        for (number, answer) in named::answers(&cloud.state(), &request)
            .unwrap()
            .iter()
            .enumerate()
        {
            let mut allocations = Allocations::new();
            for one in &answer.allocations {
                let resources = one.resources.iter();
                let resources = resources.map(|(class, units)| (class.as_str().to_owned(), *units));
                allocations.insert(one.provider, resources.collect());
            }
            claim(&mut state, &format!("server-{number}"), None, &allocations);
        }
        (cloud, state)
    })
}

/// Clouds of hosts without children; only the first host has consumers.
fn flat_clouds() -> impl Strategy<Value = (SampleCloud, State)> {
    let hosts = vec((1..=5_u32, 1..=5_u32), 1..=3);
    let consumers = vec((1..=3_u64, 0..=3_u64), 1..=4);
    (hosts, consumers).prop_map(|(hosts, consumers)| {
        let mut providers = vec![provider("tree0-0").has("VCPU", 100).has("MEMORY_MB", 100)];
        for (number, (cpus, memory)) in hosts.into_iter().enumerate() {
            let host = provider(&format!("host-{number}"));
            providers.push(host.has("VCPU", cpus).has("MEMORY_MB", memory));
        }
        let cloud = sample_cloud(providers);
        let mut state = cloud.state();
        for (number, (cpus, memory)) in consumers.into_iter().enumerate() {
            let mut resources = BTreeMap::from([("VCPU".to_owned(), cpus)]);
            if memory > 0 {
                resources.insert("MEMORY_MB".to_owned(), memory);
            }
            let allocations = [(cloud.uuid("tree0-0"), resources)].into();
            assert!(claim(
                &mut state,
                &format!("server-{number}"),
                None,
                &allocations
            ));
        }
        (cloud, state)
    })
}

/// The largest number of these consumers that find room on the hosts.
fn most(naive: &Naive, hosts: &[ProviderUuid], consumers: &[(String, Allocations)]) -> usize {
    let Some(((consumer, allocations), others)) = consumers.split_first() else {
        return 0;
    };
    let stays = most(naive, hosts, others);
    let moves = hosts.iter().map(|host| {
        let mut after = naive.clone();
        let resources = allocations.values().next().unwrap().clone();
        let mut both = allocations.clone();
        both.insert(*host, resources);
        if accepts(&mut after, consumer, &both) {
            1 + most(&after, hosts, others)
        } else {
            0
        }
    });
    moves.max().unwrap_or(0).max(stays)
}

fn order() -> impl Strategy<Value = Order> {
    select(vec![Order::Pack, Order::Spread, Order::Any])
}

/// The moves can be made one after the other; no consumer goes to the tree that is emptied.
fn check_moves(cloud: &SampleCloud, state: &State, order: Order) -> Result<(), TestCaseError> {
    let emptied = "tree0-0";
    let found = refuge(state, &emptying(cloud.uuid(emptied), order));
    prop_assert!(found.complete);
    prop_assert_eq!(found.moves.len() + found.left.len(), found.consumers);
    let mut naive = Naive::load(state.rows());
    for one in &found.moves {
        let consumer = one.consumer.to_string();
        let mut both = held(state, &consumer);
        for part in &one.to {
            let root = cloud.root(cloud.name(part.provider.uuid));
            prop_assert!(root != emptied, "{one:?}");
            let on = both.entry(part.provider.uuid).or_default();
            for (class, units) in &part.resources {
                *on.entry(class.as_str().to_owned()).or_default() += units;
            }
        }
        let is_accepted = accepts(&mut naive, &consumer, &both);
        prop_assert!(is_accepted, "{one:?} of {found:?}");
    }
    Ok(())
}

/// The answer about each tree is the one about this tree alone.
fn check_each(cloud: &SampleCloud, state: &State, order: Order) -> Result<(), TestCaseError> {
    let watch = Box::new(|_steps| ControlFlow::Continue(()));
    let each = state.refuge_of_each(&elsewhere(order), watch).unwrap();
    let roots = cloud.providers.iter();
    let roots = roots.filter(|one| one.parent.is_none() && !one.traits.contains(SHARES));
    let alone = roots.map(|one| {
        let found = refuge(state, &emptying(cloud.uuid(&one.name), order));
        (one.name.clone(), found.consumers, found.left.len())
    });
    let alone: Vec<_> = alone.collect();
    prop_assert_eq!(each.trees, alone.len());
    let stuck: BTreeSet<_> = alone.into_iter().filter(|(_, _, left)| *left > 0).collect();
    let listed = each.list.iter();
    let listed: BTreeSet<_> = listed
        .map(|one| (one.root.name.to_string(), one.consumers, one.left))
        .collect();
    prop_assert_eq!(listed, stuck);
    prop_assert_eq!((each.undecided, each.stuck), (0, each.list.len()));
    Ok(())
}

/// If the answer is exact, no assignment has room for more consumers.
fn check_exact(cloud: &SampleCloud, state: &State, order: Order) -> Result<(), TestCaseError> {
    let emptied = "tree0-0";
    let found = refuge(state, &emptying(cloud.uuid(emptied), order));
    let others = cloud.providers.iter().filter(|one| one.name != emptied);
    let hosts: Vec<_> = others.map(|one| cloud.uuid(&one.name)).collect();
    let names = (0..found.consumers).map(|number| format!("server-{number}"));
    let consumers: Vec<_> = names
        .map(|name| (name.clone(), held(state, &name)))
        .collect();
    let best = most(&Naive::load(state.rows()), &hosts, &consumers);
    prop_assert!(found.moves.len() <= best);
    if found.exact {
        prop_assert_eq!(found.moves.len(), best, "{:?}", found);
    }
    for one in &found.left {
        let why = &found.explanations[one.why.unwrap()];
        prop_assert_eq!(why.with_candidates, 0, "{:?}", why);
        prop_assert_eq!(why.trees as usize, hosts.len());
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn moves_are_possible_in_their_order((cloud, state) in used_clouds(), order in order()) {
        check_moves(&cloud, &state, order)?;
    }

    #[test]
    fn each_tree_is_answered_as_it_is_alone((cloud, state) in used_clouds(), order in order()) {
        check_each(&cloud, &state, order)?;
    }

    #[test]
    fn exact_answers_are_the_best((cloud, state) in flat_clouds(), order in order()) {
        check_exact(&cloud, &state, order)?;
    }
}

/// The checks find each injected bug.
#[test]
fn injected_bugs_are_found() {
    for bug in [
        "refuge-takes-back",
        "refuge-room-twice",
        "refuge-always-exact",
    ] {
        let _bug = mutant::inject(bug);
        let mut runner = TestRunner::new(config(1500));
        let checked = runner.run(&(flat_clouds(), order()), |((cloud, state), order)| {
            check_moves(&cloud, &state, order)?;
            check_exact(&cloud, &state, order)
        });
        assert!(checked.is_err(), "no check finds {bug}");
    }
}

#[test]
fn equal_consumers_on_flat_hosts_are_exact() {
    let hosts = [("tree0-0", 100), ("a", 5), ("b", 3)];
    let cloud = sample_cloud(hosts.map(|(name, cpus)| provider(name).has("VCPU", cpus)));
    let mut state = cloud.state();
    for number in 0..5 {
        let resources = [("VCPU".to_owned(), 2)].into();
        let allocations = [(cloud.uuid("tree0-0"), resources)].into();
        assert!(claim(
            &mut state,
            &format!("server-{number}"),
            None,
            &allocations
        ));
    }
    let found = refuge(&state, &emptying(cloud.uuid("tree0-0"), Order::Spread));
    assert_eq!(
        (found.consumers, found.moves.len(), found.left.len()),
        (5, 3, 2)
    );
    assert!(found.exact);
    // A host without consumers has nothing to move.
    let other = refuge(&state, &emptying(cloud.uuid("a"), Order::Spread));
    assert_eq!((other.consumers, other.exact), (0, true));
}

#[test]
fn more_consumers_than_the_limit_are_refused() {
    let hosts = ["tree0-0", "other"];
    let cloud = sample_cloud(hosts.map(|name| provider(name).has("VCPU", 20_000)));
    let mut state = cloud.state();
    let allocations = [(cloud.uuid("tree0-0"), [("VCPU".to_owned(), 1)].into())].into();
    for number in 0..=CONSUMERS_MAX {
        assert!(claim(
            &mut state,
            &format!("server-{number}"),
            None,
            &allocations
        ));
    }
    let request = emptying(cloud.uuid("tree0-0"), Order::Pack);
    let watch = || Box::new(|_steps| ControlFlow::Continue(()));
    let found = state.refuge(&request, watch());
    assert_eq!(found, Err(RefugeError::TooManyConsumers));
    let each = state.refuge_of_each(&request.elsewhere, watch()).unwrap();
    assert_eq!((each.trees, each.undecided), (1, 1));
}
