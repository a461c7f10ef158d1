//! Explanations against an oracle that tries everything, on small random clouds.
#![allow(clippy::unwrap_used)] // A test may fail.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use placement_model::mutant;
use placement_model::query::candidates::CandidateRequest;
use placement_model::query::explain::{Explanation, Verdict};
use placement_naive::cases::{cases, tight_cases};
use placement_naive::explain::{explain, relaxations};
use placement_naive::sample_cloud::SampleCloud;
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
