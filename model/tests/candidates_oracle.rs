//! Compares the search with an exhaustive oracle on small random clouds.
#![allow(clippy::unwrap_used)] // A panic fails the test.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::{
    Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, ProviderAmounts,
    ReplaceAllocations,
};
use placement_model::query::UnknownName;
use placement_model::query::candidates::{CandidateRequest, GroupPolicy, RequestGroup};
use placement_model::types::{Given, ProviderUuid, Timestamp};
use placement_model::{Outcome, Stamped, apply};
use placement_naive::candidates::{NaiveCandidate, Verdict, judge, summarized};
use placement_naive::cases::{cases, tight_cases};
use placement_naive::named::{self, AllocationRequest};
use placement_naive::sample_cloud::SampleCloud;
use placement_naive::{config, stamped};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

fn as_answer(sample_cloud: &SampleCloud, answer: &AllocationRequest) -> NaiveCandidate {
    let name = |uuid: &ProviderUuid| sample_cloud.name(*uuid).to_owned();
    NaiveCandidate {
        allocations: answer
            .allocations
            .iter()
            .map(|placed| {
                let amounts = placed
                    .resources
                    .iter()
                    .map(|(class, amount)| (class.as_str().to_owned(), *amount));
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

fn check(sample_cloud: &SampleCloud, request: &CandidateRequest) -> Result<(), TestCaseError> {
    let state = sample_cloud.state();
    let expected = judge(sample_cloud, request);
    let found = match named::candidates(&state, request) {
        Ok(found) => found,
        Err(UnknownName::ResourceClass(_)) => {
            prop_assert_eq!(expected, Verdict::UnknownResourceClass);
            return Ok(());
        }
        Err(UnknownName::Traits(_)) => {
            prop_assert_eq!(expected, Verdict::UnknownTrait);
            return Ok(());
        }
    };
    let answers: Vec<NaiveCandidate> = found
        .allocation_requests
        .iter()
        .map(|one| as_answer(sample_cloud, one))
        .collect();
    let distinct: BTreeSet<NaiveCandidate> = answers.iter().cloned().collect();
    let Verdict::Answers(all) = expected else {
        return Err(TestCaseError::fail("an unknown name is not reported"));
    };
    prop_assert_eq!(distinct.len(), answers.len(), "an answer is returned twice");
    prop_assert_eq!(
        distinct.len(),
        all.len().min(request.limit.unwrap_or(usize::MAX))
    );
    prop_assert!(
        distinct.is_subset(&all),
        "some of {distinct:?} are missing in {all:?}"
    );
    let summaries: Vec<&str> = found
        .provider_summaries
        .iter()
        .map(|one| sample_cloud.name(one.provider))
        .collect();
    let distinct_summaries: BTreeSet<String> =
        summaries.iter().map(|name| (*name).to_owned()).collect();
    prop_assert_eq!(distinct_summaries.len(), summaries.len());
    prop_assert_eq!(
        distinct_summaries,
        summarized(sample_cloud, request, &distinct, &all)
    );
    Ok(())
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn search_agrees_with_exhaustive_search((sample_cloud, request) in cases(false)) {
        check(&sample_cloud, &request)?;
    }

    #[test]
    fn tight_cases_agree_with_exhaustive_search((sample_cloud, request) in tight_cases()) {
        check(&sample_cloud, &request)?;
    }

    #[test]
    fn limit_before_1_29_does_not_reduce_summaries(
        (sample_cloud, mut request) in cases(false),
        limit in 1..4_usize,
    ) {
        request.nested = false;
        request.limit = Some(limit);
        check(&sample_cloud, &request)?;
    }

    #[test]
    fn answers_do_not_depend_on_the_seed(
        (sample_cloud, mut request) in cases(false),
        seed in any::<u64>(),
        limit in proptest::option::of(1..6_usize),
        nested in any::<bool>(),
    ) {
        request.seed = Some(seed);
        request.limit = limit;
        request.nested &= nested;
        check(&sample_cloud, &request)?;
    }

    #[test]
    fn unknown_names_are_reported_if_upstream_would_evaluate_them(
        (sample_cloud, request) in cases(true),
    ) {
        check(&sample_cloud, &request)?;
    }

    #[test]
    fn unknown_names_are_reported_in_an_empty_cloud(
        (mut sample_cloud, request) in cases(true),
    ) {
        sample_cloud.providers.clear();
        check(&sample_cloud, &request)?;
    }
}

/// Checks that the generated cases are varied enough to be meaningful.
#[test]
fn generated_cases_are_varied() {
    let mut runner = TestRunner::deterministic();
    let cases = cases(false);
    let mut seen = BTreeMap::<&str, usize>::new();
    for _ in 0..1000 {
        let (sample_cloud, request) = cases.new_tree(&mut runner).unwrap().current();
        let Verdict::Answers(answers) = judge(&sample_cloud, &request) else {
            continue;
        };
        for (what, holds) in features(&sample_cloud, &request, &answers) {
            *seen.entry(what).or_default() += usize::from(holds && !answers.is_empty());
        }
    }
    let poor: Vec<_> = seen.iter().filter(|(_, count)| **count < 10).collect();
    assert!(
        poor.is_empty(),
        "too few of 1000 cases with {poor:?}; all: {seen:?}"
    );
}

fn features(
    sample_cloud: &SampleCloud,
    request: &CandidateRequest,
    answers: &BTreeSet<NaiveCandidate>,
) -> [(&'static str, bool); 13] {
    let group = |of: &dyn Fn(&RequestGroup) -> bool| request.groups.iter().any(of);
    // The number of providers and trees of each answer.
    let sizes = || {
        answers.iter().map(|one| {
            let names: BTreeSet<&str> = one
                .mappings
                .values()
                .flatten()
                .map(String::as_str)
                .collect();
            let trees: BTreeSet<&str> = names.iter().map(|name| sample_cloud.root(name)).collect();
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

/// The command that claims an answer for a new consumer.
fn claim(answer: &AllocationRequest) -> Stamped {
    let taken = answer.allocations.iter().map(|placed| {
        let resources = placed.resources.iter();
        ProviderAmounts {
            provider: Given::Valid(placed.provider),
            resources: resources
                .map(|(name, amount)| (Given::Valid(name.clone()), *amount))
                .collect(),
        }
    });
    let consumer = ConsumerAllocations {
        consumer: "00000000-0000-4000-8000-00000000c1a1".into(),
        allocations: taken.collect(),
        project: "project".into(),
        user: "user".into(),
        generation: ConsumerGeneration::New,
        consumer_type: ConsumerTypeUpdate::Keep,
    };
    let consumers = vec![consumer];
    let command = Command::ReplaceAllocations(ReplaceAllocations { consumers });
    stamped(Timestamp(1), None, command)
}

#[test]
fn each_answer_can_be_claimed() {
    let claimed = Cell::new(0);
    let mut runner = TestRunner::new(config(300));
    let law = |(sample_cloud, request): (SampleCloud, CandidateRequest)| {
        let state = sample_cloud.state();
        for answer in named::answers(&state, &request).unwrap() {
            let (outcome, _) = apply(&state, &claim(&answer));
            prop_assert!(
                matches!(outcome, Outcome::Done(_)),
                "{:?} is refused: {:?}",
                as_answer(&sample_cloud, &answer),
                outcome
            );
            claimed.set(claimed.get() + 1);
        }
        Ok(())
    };
    let newer = cases(false).prop_map(|(sample_cloud, mut request)| {
        request.nested = true;
        (sample_cloud, request)
    });
    if let Err(broken) = runner.run(&newer, law) {
        panic!("{broken}");
    }
    let claimed = claimed.get();
    assert!(claimed > 100, "only {claimed} answers could be claimed");
}
