//! Explanations against an oracle that tries everything, and counts of claims against claims one by one, on small random
//! clouds.
#![allow(clippy::unwrap_used)] // A test may fail.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use placement_model::command::{
    ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, ProviderAmounts,
    ReplaceAllocations,
};
use placement_model::query::candidates::{Amount, CandidateRequest};
use placement_model::query::explain::{Explanation, Verdict};
use placement_model::types::{Given, Timestamp};
use placement_model::{Command, Outcome, apply, mutant};
use placement_naive::cases::{cases, tight_cases};
use placement_naive::explain::{explain, relaxations};
use placement_naive::sample_cloud::SampleCloud;
use placement_naive::stamped;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};

/// What is right, and what is not.
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
    if (gone, found.with_candidates) != (right.gone, right.with_candidates) {
        return Err("the funnel");
    }
    if (found.verdict == Verdict::Some) != (right.with_candidates > 0) || found.undecided > 0 {
        return Err("the verdict");
    }
    if found.verdict == Verdict::Some {
        return Ok(());
    }
    let less: BTreeMap<String, u64> = (found.relaxations.into_iter())
        .map(|relaxation| (relaxation.query, relaxation.trees))
        .collect();
    match less == relaxations(sample_cloud, request) {
        true => Ok(()),
        false => Err("the relaxations"),
    }
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
fn explanations_agree_with_trying_everything() {
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

/// Claims of one case. A request without resources has room without end.
const CLAIMS_MAX: u64 = 300;

/// How often the first candidate can be claimed, one claim after the other.
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
fn a_request_fits_as_often_as_it_can_be_claimed_one_by_one() {
    let (alone, most) = (Cell::new(0), Cell::new(0));
    run(20_000, |sample_cloud, request| {
        let go_on = Box::new(|_| ControlFlow::Continue(()));
        // Otherwise it names what does not exist.
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
        "{} are claimed more than once, where they stand alone; {} times at most",
        alone.get(),
        most.get()
    );
}

/// Each bug is found by the law that it breaks.
#[test]
fn injected_bugs_are_found() {
    for (bug, law) in [
        ("explain-atoms-exchanged", "the funnel"),
        ("explain-sharing-forgotten", "the funnel"),
        ("explain-units-ignored", "the funnel"),
        ("explain-counted-twice", "the sum"),
        ("explain-relaxation-not-run", "the relaxations"),
    ] {
        let _bug = mutant::inject(bug);
        let found = Cell::new(0);
        run(3_000, |sample_cloud, request| {
            found.set(found.get() + u32::from(judge(sample_cloud, request) == Err(law)));
            Ok(())
        });
        assert!(found.get() > 0, "{bug} is not found by {law}");
    }
}
