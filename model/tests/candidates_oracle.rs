//! The search against an oracle that tries everything, on small random clouds.
#![allow(clippy::unwrap_used)] // A test may fail.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::query::candidates::{
    AllocationRequest, CandidateError, CandidateRequest, GroupPolicy, RequestGroup,
};
use placement_model::types::ProviderUuid;
use placement_naive::candidates::{Answer, Verdict, judge, summarized};
use placement_naive::cases::{cases, tight_cases};
use placement_naive::estate::Estate;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

fn told(estate: &Estate, answer: &AllocationRequest) -> Answer {
    let name = |uuid: &ProviderUuid| estate.name(*uuid).to_owned();
    Answer {
        allocations: answer
            .allocations
            .iter()
            .map(|placed| {
                let amounts = placed.resources.iter();
                let amounts = amounts.map(|(class, amount)| (class.as_str().to_owned(), *amount));
                (name(&placed.provider), amounts.collect())
            })
            .collect(),
        mappings: answer
            .mappings
            .iter()
            .map(|(suffix, providers)| (suffix.clone(), providers.iter().map(name).collect()))
            .collect(),
    }
}

fn check(estate: &Estate, request: &CandidateRequest) -> Result<(), TestCaseError> {
    let state = estate.state();
    let expected = judge(estate, request);
    let found = match state.candidates(request) {
        Ok(search) => search.into_candidates(),
        Err(CandidateError::UnknownResourceClass(_)) => {
            prop_assert_eq!(expected, Verdict::UnknownResourceClass);
            return Ok(());
        }
        Err(CandidateError::UnknownTraits(_)) => {
            prop_assert_eq!(expected, Verdict::UnknownTrait);
            return Ok(());
        }
    };
    let answers: Vec<Answer> = found
        .allocation_requests
        .iter()
        .map(|one| told(estate, one))
        .collect();
    let distinct: BTreeSet<Answer> = answers.iter().cloned().collect();
    let Verdict::Answers(all) = expected else {
        return Err(TestCaseError::fail("a wrong name is not reported"));
    };
    prop_assert_eq!(distinct.len(), answers.len(), "each answer is given once");
    prop_assert_eq!(
        distinct.len(),
        all.len().min(request.limit.unwrap_or(usize::MAX))
    );
    prop_assert!(
        distinct.is_subset(&all),
        "{distinct:?} are not all among {all:?}"
    );
    let summaries: Vec<&str> = found
        .provider_summaries
        .iter()
        .map(|one| estate.name(one.provider))
        .collect();
    let distinct_summaries: BTreeSet<String> =
        summaries.iter().map(|name| (*name).to_owned()).collect();
    prop_assert_eq!(distinct_summaries.len(), summaries.len());
    prop_assert_eq!(
        distinct_summaries,
        summarized(estate, request, &distinct, &all)
    );
    Ok(())
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn the_search_finds_what_trying_everything_finds((estate, request) in cases(false)) {
        check(&estate, &request)?;
    }

    #[test]
    fn what_barely_fits_is_found_and_what_does_not_is_not((estate, request) in tight_cases()) {
        check(&estate, &request)?;
    }

    #[test]
    fn a_limit_before_1_29_leaves_the_summaries_of_its_trees_alone(
        (estate, mut request) in cases(false),
        limit in 1..4_usize,
    ) {
        request.nested = false;
        request.limit = Some(limit);
        check(&estate, &request)?;
    }

    #[test]
    fn wherever_the_search_begins_it_finds_as_much(
        (estate, mut request) in cases(false),
        seed in any::<u64>(),
        limit in proptest::option::of(1..6_usize),
        nested in any::<bool>(),
    ) {
        request.seed = Some(seed);
        request.limit = limit;
        request.nested &= nested;
        check(&estate, &request)?;
    }

    #[test]
    fn what_does_not_exist_is_reported_when_upstream_would_come_to_it(
        (estate, request) in cases(true),
    ) {
        check(&estate, &request)?;
    }

    #[test]
    fn before_there_is_any_provider_what_does_not_exist_is_reported_all_the_same(
        (mut estate, request) in cases(true),
    ) {
        estate.providers.clear();
        check(&estate, &request)?;
    }
}

/// A generator that makes only hopeless cases would prove nothing.
#[test]
fn the_cases_are_worth_their_time() {
    let mut runner = TestRunner::deterministic();
    let cases = cases(false);
    let mut seen = BTreeMap::<&str, usize>::new();
    for _ in 0..1000 {
        let (estate, request) = cases.new_tree(&mut runner).unwrap().current();
        let Verdict::Answers(answers) = judge(&estate, &request) else {
            continue;
        };
        for (what, holds) in features(&estate, &request, &answers) {
            *seen.entry(what).or_default() += usize::from(holds && !answers.is_empty());
        }
    }
    let poor: Vec<_> = seen.iter().filter(|(_, count)| **count < 10).collect();
    assert!(
        poor.is_empty(),
        "of 1000 cases hardly any with {poor:?}; all: {seen:?}"
    );
}

fn features(
    estate: &Estate,
    request: &CandidateRequest,
    answers: &BTreeSet<Answer>,
) -> [(&'static str, bool); 13] {
    let group = |of: &dyn Fn(&RequestGroup) -> bool| request.groups.iter().any(of);
    // Providers and trees of each answer.
    let sizes = || {
        answers.iter().map(|one| {
            let names: BTreeSet<&str> = one
                .mappings
                .values()
                .flatten()
                .map(String::as_str)
                .collect();
            let trees: BTreeSet<&str> = names.iter().map(|name| estate.root(name)).collect();
            (names.len(), trees.len())
        })
    };
    let isolated = request.group_policy == Some(GroupPolicy::Isolate) && request.groups.len() > 2;
    let alike = request
        .groups
        .windows(2)
        .any(|pair| pair[0].resources == pair[1].resources);
    [
        ("answered", true),
        ("several answers", answers.len() > 1),
        ("many answers", answers.len() > 20),
        ("several trees", sizes().any(|(_, trees)| trees > 1)),
        (
            "several providers of a tree",
            sizes().any(|(names, trees)| trees < names),
        ),
        ("same_subtree", !request.same_subtree.is_empty()),
        ("isolated", isolated),
        ("alike groups", alike),
        ("resourceless", group(&|group| group.resources.is_empty())),
        ("before 1.29", !request.nested),
        ("member_of", group(&|group| !group.member_of.is_empty())),
        ("traits", group(&|group| !group.required.is_empty())),
        ("in_tree", group(&|group| group.in_tree.is_some())),
    ]
}
