//! Compares explanations with an exhaustive oracle, and the counts of `State::fit` with single
//! claims, on small random clouds.
#![allow(clippy::unwrap_used)] // A panic fails the test.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use placement_model::command::{
    ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, ProviderAmounts,
    ReplaceAllocations,
};
use placement_model::query::candidates::{Amount, CandidateRequest};
use placement_model::query::explain::{
    Bound, Explanation, Kind, NearTree, UnmetCondition, Verdict,
};
use placement_model::types::{Given, ProviderUuid, Timestamp};
use placement_model::{Command, Outcome, apply, mutant};
use placement_naive::cases::{cases, tight_cases};
use placement_naive::explain::{Explained, explain, relaxations};
use placement_naive::sample_cloud::SampleCloud;
use placement_naive::stamped;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};

/// An error names the part of the explanation that is wrong.
type Judgement = Result<(), &'static str>;

fn explained(sample_cloud: &SampleCloud, request: &CandidateRequest) -> Explanation {
    let go_on = Box::new(|_| ControlFlow::Continue(()));
    let spell = |less: &CandidateRequest| Some(format!("{less:?}"));
    sample_cloud
        .state()
        .explain(request, go_on, &spell)
        .unwrap()
}

fn judge(sample_cloud: &SampleCloud, request: &CandidateRequest) -> Judgement {
    let found = explained(sample_cloud, request);
    let right = explain(sample_cloud, request);
    let gone: Vec<u64> = found.funnel.iter().map(|stage| stage.gone).collect();
    let all = gone.iter().sum::<u64>() + found.with_candidates + found.undecided;
    if all != found.trees {
        return Err("the sum");
    }
    if (&gone, found.with_candidates) != (&right.gone, right.with_candidates) {
        return Err("the funnel");
    }
    if (found.verdict == Verdict::Some) != (right.with_candidates > 0) || found.undecided > 0 {
        return Err("the verdict");
    }
    if found.verdict == Verdict::Some {
        return Ok(());
    }
    let less: BTreeMap<String, u64> = (found.relaxations.iter())
        .map(|relaxation| (relaxation.query.clone(), relaxation.trees))
        .collect();
    if less != relaxations(sample_cloud, request) {
        return Err("the relaxations");
    }
    if !reason_is_right(&found, &right) {
        return Err("the reason");
    }
    if nearest_are_right(sample_cloud, request, &found, &right) {
        Ok(())
    } else {
        Err("nearest trees")
    }
}

/// The level of a condition: selected host, location, properties, free amounts.
fn level(kind: Kind) -> u8 {
    match kind {
        Kind::InTree => 0,
        Kind::MemberOf => 1,
        Kind::RootRequired | Kind::Inventory | Kind::Required | Kind::Forbidden => 2,
        Kind::Unit | Kind::Room | Kind::Together => 3,
    }
}

/// Checks that the reason eliminates some of the last trees. If dropping any condition of its level
/// yields candidates, dropping the reason does. Otherwise, if some tree fails only one condition of
/// the level, some tree fails only the reason.
fn reason_is_right(found: &Explanation, right: &Explained) -> bool {
    let Some(last) = right.gone.iter().rposition(|gone| *gone > 0) else {
        return found.cause.is_none();
    };
    let Some(cause) = found.cause else {
        return false;
    };
    let kind = |index: usize| found.funnel[index].atom.kind;
    let weight = level(kind(last));
    let alike = |index: &usize| right.gone[*index] > 0 && level(kind(*index)) == weight;
    let is_less = |index: usize| {
        let mut less = found.relaxations.iter().map(|one| &one.less[0].atom);
        less.any(|less| match less.kind {
            Kind::Together => kind(index) == Kind::Together,
            _ => found.funnel[index].atom == *less,
        })
    };
    let mut stages = (0..right.gone.len()).filter(alike);
    alike(&cause)
        && if stages.clone().any(is_less) {
            is_less(cause)
        } else {
            right.alone[cause] > 0 || stages.all(|index| right.alone[index] == 0)
        }
}

/// The missing share of the amounts of a tree, in thousandths. For the groups together it is 0,
/// since the answer does not contain the shortage of each class.
fn shortfall(near: &NearTree) -> u64 {
    let share = |lack: &UnmetCondition| {
        let asked = lack.atom.asked.unwrap_or_default();
        let most = match (lack.free, lack.detail.bound) {
            (Some(free), _) => free,
            (None, Some(Bound::MaxUnit(most))) => u64::from(most),
            _ => asked,
        };
        (asked - most.min(asked)) * 1000 / asked.max(1)
    };
    near.lacks.iter().map(share).sum()
}

/// Checks that the nearest trees are the selected hosts and then the trees that fail last, in the
/// order of the number of unmet conditions and of the shortfall. Each must list the condition that
/// eliminates it as unmet, with the correct amounts.
fn nearest_are_right(
    sample_cloud: &SampleCloud,
    request: &CandidateRequest,
    found: &Explanation,
    right: &Explained,
) -> bool {
    let root = |provider: &str| {
        let root = sample_cloud.root(provider);
        let mut all = sample_cloud.providers.iter();
        all.find(|one| one.name == root).unwrap().uuid
    };
    let groups = request.groups.iter();
    let named = groups
        .filter(|group| !group.resources.is_empty())
        .filter_map(|group| group.in_tree.as_ref());
    let is_named = |uuid: &Given<_>| {
        let mut all = sample_cloud.providers.iter();
        all.find(|one| Given::Valid(one.uuid) == *uuid)
    };
    let named: BTreeSet<_> = named
        .filter_map(is_named)
        .map(|one| root(&one.name))
        .collect();
    // `max_unit` and free amounts are equally far in the funnel.
    let kind = |root: &ProviderUuid| match found.funnel[right.reasons[root]].atom.kind {
        Kind::Unit => Kind::Room,
        kind => kind,
    };
    let mut expected: Vec<_> = (right.reasons.keys())
        .map(|root| (!named.contains(root), Reverse(kind(root))))
        .collect();
    expected.sort_unstable();
    expected.truncate(found.nearest.len());
    let shown = found
        .nearest
        .iter()
        .map(|near| near.root.uuid)
        .map(|root| (!named.contains(&root), Reverse(kind(&root))));
    let is_in_order = found.nearest.is_sorted_by_key(|near| {
        let root = &near.root.uuid;
        let unmet = near.lacks.len();
        (
            !named.contains(root),
            Reverse(kind(root)),
            unmet,
            shortfall(near),
        )
    });
    let is_of_stock = |lack: &UnmetCondition, class: &str| {
        let mut stocks = (sample_cloud.providers.iter()).filter_map(|one| one.stocks.get(class));
        stocks.any(|stock| {
            let inventory = &stock.inventory;
            let capacity = inventory.capacity_exact().floor().max(0.0) as u64;
            let is_reduced = inventory.capacity_exact() < f64::from(inventory.total);
            let parts = (
                inventory.total,
                inventory.reserved,
                inventory.allocation_ratio,
            );
            let reduced = (lack.reduced.as_ref())
                .map(|reduced| (reduced.total, reduced.reserved, reduced.allocation_ratio));
            lack.free == Some(capacity.saturating_sub(stock.used))
                && lack.capacity == Some(capacity)
                && reduced == is_reduced.then_some(parts)
        })
    };
    let lacks_are_right = found.nearest.iter().all(|near| {
        let reason = &found.funnel[right.reasons[&near.root.uuid]].atom;
        near.lacks.iter().any(|lack| lack.atom == *reason)
            && near
                .lacks
                .iter()
                .all(|lack| match (lack.free, &lack.atom.class) {
                    (Some(free), Some(class)) => {
                        Some(free) < lack.atom.asked && is_of_stock(lack, class.as_str())
                    }
                    _ => true,
                })
    });
    shown.eq(expected)
        && found.nearest.len() == right.reasons.len().min(5)
        && is_in_order
        && lacks_are_right
}

fn run(count: u32, judged: impl Fn(&SampleCloud, &CandidateRequest) -> TestCaseResult) {
    let config = ProptestConfig {
        cases: count,
        max_local_rejects: u32::MAX,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let all = prop_oneof![2 => cases(false), 1 => cases(true), 1 => tight_cases()];
    let law = |(sample_cloud, request)| judged(&sample_cloud, &request);
    if let Err(broken) = TestRunner::new(config).run(&all, law) {
        panic!("{broken}");
    }
}

#[test]
fn explanations_agree_with_exhaustive_search() {
    let (without, helped) = (Cell::new(0), Cell::new(0));
    run(20_000, |sample_cloud, request| {
        prop_assert_eq!(
            judge(sample_cloud, request),
            Ok(()),
            "{:?}\n{:?}\n{:?}",
            explained(sample_cloud, request),
            explain(sample_cloud, request),
            relaxations(sample_cloud, request)
        );
        let found = explained(sample_cloud, request);
        let is_none = found.verdict == Verdict::None;
        without.set(without.get() + u32::from(is_none));
        helped.set(helped.get() + u32::from(!found.relaxations.is_empty()));
        Ok(())
    });
    assert!(
        without.get() > 5_000 && helped.get() > 2_000,
        "of 20000 cases only {} without candidates, and {} with relaxations",
        without.get(),
        helped.get()
    );
}

/// Limit of claims per case, since a request without resources always fits.
const CLAIMS_MAX: u64 = 300;

/// Counts how often the first candidate can be claimed, by single claims.
fn claimed_one_by_one(sample_cloud: &SampleCloud, request: &CandidateRequest) -> u64 {
    let mut state = sample_cloud.state();
    let request = CandidateRequest {
        limit: Some(1),
        ..request.clone()
    };
    for count in 0..CLAIMS_MAX {
        let mut search = state.candidates(&request, None).unwrap();
        let outline = search.outline();
        let Some(candidate) = search.next_candidate() else {
            return count;
        };
        let mut amounts = Vec::new();
        outline.amounts(&candidate, &mut amounts);
        let provider = |one: &Amount| candidate.node(one.part).uuid;
        let class = |one: &Amount| Given::Valid(outline.classes()[one.class].clone());
        let mut allocations: Vec<ProviderAmounts> = Vec::new();
        for one in &amounts {
            match allocations.last_mut() {
                Some(last) if last.provider == Given::Valid(provider(one)) => {
                    last.resources.insert(class(one), one.units);
                }
                _ => allocations.push(ProviderAmounts {
                    provider: Given::Valid(provider(one)),
                    resources: BTreeMap::from([(class(one), one.units)]),
                }),
            }
        }
        let consumer = ConsumerAllocations {
            consumer: format!("00000000-0000-4000-8000-{count:012x}").into(),
            allocations,
            project: "p".into(),
            user: "u".into(),
            generation: ConsumerGeneration::New,
            consumer_type: ConsumerTypeUpdate::Keep,
        };
        let consumers = vec![consumer];
        let command = Command::ReplaceAllocations(ReplaceAllocations { consumers });
        let (outcome, changes) = apply(&state, &stamped(Timestamp::default(), None, command));
        drop(search);
        if !matches!(outcome, Outcome::Done(_)) {
            return count;
        }
        state.commit(&changes);
    }
    CLAIMS_MAX
}

#[test]
fn fit_agrees_with_single_claims() {
    let (alone, most) = (Cell::new(0), Cell::new(0));
    run(20_000, |sample_cloud, request| {
        let go_on = Box::new(|_| ControlFlow::Continue(()));
        // An error means that the request contains an unknown name.
        let Ok(fit) = sample_cloud.state().fit(request, CLAIMS_MAX, go_on) else {
            return Ok(());
        };
        prop_assert_eq!(fit.count, claimed_one_by_one(sample_cloud, request));
        alone.set(alone.get() + u32::from(fit.exact && fit.count > 1));
        most.set(most.get().max(fit.count));
        Ok(())
    });
    assert!(
        alone.get() > 100 && most.get() > 10,
        "{} cases are claimed more than once on a standalone provider; {} times at most",
        alone.get(),
        most.get()
    );
}

/// Checks that the named check finds each injected bug.
#[test]
fn injected_bugs_are_found() {
    for (bug, law) in [
        ("explain-atoms-exchanged", "the funnel"),
        ("explain-sharing-forgotten", "the funnel"),
        ("explain-units-ignored", "the funnel"),
        ("explain-counted-twice", "the sum"),
        ("explain-relaxation-not-run", "the relaxations"),
        ("explain-place-blamed", "the reason"),
        ("explain-named-host-forgotten", "nearest trees"),
        ("explain-shortfall-ignored", "nearest trees"),
    ] {
        let _bug = mutant::inject(bug);
        let found = Cell::new(0);
        run(3_000, |sample_cloud, request| {
            found.set(found.get() + u32::from(judge(sample_cloud, request) == Err(law)));
            Ok(())
        });
        assert!(found.get() > 0, "the check of {law} does not find {bug}");
    }
}
