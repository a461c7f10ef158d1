//! What must hold of any two searches that belong together, on small random clouds.
#![allow(clippy::unwrap_used)] // A test may fail.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::{
    Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, ProviderAmounts,
    ReplaceAllocations,
};
use placement_model::query::candidates::{AllocationRequest, CandidateRequest, GenerationStrategy};
use placement_model::types::{Given, PartitionId, Timestamp};
use placement_model::{Outcome, Stamped, apply};
use placement_naive::cases::cases;
use placement_naive::estate::{Estate, SHARES, TRAITS};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use uuid::Uuid;

/// An answer in the names of the estate, in an order that can be compared.
type Answer = (
    BTreeMap<String, BTreeMap<String, u64>>,
    BTreeMap<String, BTreeSet<String>>,
);

fn told(estate: &Estate, answer: &AllocationRequest) -> Answer {
    let allocations = answer.allocations.iter().map(|placed| {
        let amounts = placed.resources.iter();
        let amounts = amounts.map(|(class, amount)| (class.as_str().to_owned(), *amount));
        (estate.name(placed.provider).to_owned(), amounts.collect())
    });
    let mappings = answer.mappings.iter().map(|(suffix, providers)| {
        let names = providers
            .iter()
            .map(|provider| estate.name(*provider).to_owned());
        (suffix.clone(), names.collect())
    });
    (allocations.collect(), mappings.collect())
}

fn answers(estate: &Estate, request: &CandidateRequest) -> BTreeSet<Answer> {
    let state = estate.state();
    let search = state.candidates(request).unwrap();
    search.map(|answer| told(estate, &answer)).collect()
}

/// The cases as of 1.29 and later.
fn newer_cases() -> impl Strategy<Value = (Estate, CandidateRequest)> {
    cases(false).prop_map(|(estate, mut request)| {
        request.nested = true;
        (estate, request)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_further_required_trait_adds_no_answer(
        (estate, request) in newer_cases(),
        which in any::<(Index, Index)>(),
    ) {
        let mut stricter = request.clone();
        let group = which.0.index(stricter.groups.len());
        prop_assume!(!stricter.groups[group].resources.is_empty());
        let name = which.1.get(&TRAITS).parse().unwrap();
        stricter.groups[group].required.push([name].into());
        prop_assert!(answers(&estate, &stricter).is_subset(&answers(&estate, &request)));
    }

    #[test]
    fn a_limit_keeps_some_of_the_answers(
        (estate, request) in newer_cases(),
        limit in 1..6_usize,
    ) {
        let all = answers(&estate, &request);
        let mut limited = request.clone();
        limited.limit = Some(limit);
        let state = estate.state();
        let found = state.candidates(&limited).unwrap().into_candidates();
        prop_assert_eq!(found.allocation_requests.len(), limit.min(all.len()));
        let some: BTreeSet<Answer> =
            found.allocation_requests.iter().map(|one| told(&estate, one)).collect();
        prop_assert!(some.is_subset(&all));
        // Summaries are those of the trees of the answers that were kept.
        let used = some.iter().flat_map(|(allocations, _)| allocations.keys());
        let trees: BTreeSet<&str> = used.map(|name| estate.root(name)).collect();
        let summarized = found.provider_summaries.iter();
        let summarized: BTreeSet<&str> =
            summarized.map(|one| estate.root(estate.name(one.provider))).collect();
        prop_assert_eq!(summarized, trees);
    }

    #[test]
    fn the_strategy_changes_the_order_alone((estate, mut request) in newer_cases()) {
        request.strategy = GenerationStrategy::DepthFirst;
        let deep = answers(&estate, &request);
        request.strategy = GenerationStrategy::BreadthFirst;
        prop_assert_eq!(answers(&estate, &request), deep);
    }

    #[test]
    fn other_names_and_uuids_change_nothing_but_names((estate, request) in newer_cases()) {
        prop_assume!(request.groups.iter().all(|group| group.in_tree.is_none()));
        let other = |name: &str| format!("other-{name}");
        let mut renamed = estate.clone();
        for provider in &mut renamed.providers {
            provider.uuid.0 = Uuid::from_u128(provider.uuid.0.as_u128() + 0x3330_0000);
            provider.name = other(&provider.name);
            provider.parent = provider.parent.as_deref().map(other);
        }
        let expected: BTreeSet<Answer> = answers(&estate, &request)
            .into_iter()
            .map(|(allocations, mappings)| {
                let allocations = allocations.into_iter().map(|(name, amounts)| (other(&name), amounts));
                let mappings = mappings.into_iter().map(|(suffix, names)| {
                    (suffix, names.iter().map(|name| other(name)).collect())
                });
                (allocations.collect(), mappings.collect())
            })
            .collect();
        prop_assert_eq!(answers(&renamed, &request), expected);
    }

    /// Trees that sharing providers may reach are needed as anchors without being in the answer.
    #[test]
    fn a_tree_that_is_in_no_answer_is_not_missed(
        (estate, request) in newer_cases(),
        which in any::<Index>(),
    ) {
        let before = answers(&estate, &request);
        let used = before.iter().flat_map(|(_, mappings)| mappings.values().flatten());
        let used: BTreeSet<&str> = used.map(|name| estate.root(name)).collect();
        let wanted: BTreeSet<_> =
            request.groups.iter().filter_map(|group| group.in_tree.clone()).collect();
        let names_of = |root: &str| -> Vec<&placement_naive::estate::Provider> {
            estate.providers.iter().filter(|provider| estate.root(&provider.name) == root).collect()
        };
        let unused: Vec<&str> = estate
            .providers
            .iter()
            .filter(|provider| provider.parent.is_none() && !used.contains(provider.name.as_str()))
            .map(|provider| provider.name.as_str())
            .filter(|root| {
                names_of(root).iter().all(|provider| {
                    provider.aggregates.is_empty() && !wanted.contains(&Given::Valid(estate.uuid(&provider.name)))
                })
            })
            .collect();
        prop_assume!(!unused.is_empty());
        let gone = *which.get(&unused);
        let state = estate.state_without(gone);
        let after: BTreeSet<Answer> =
            state.candidates(&request).unwrap().map(|answer| told(&estate, &answer)).collect();
        prop_assert_eq!(after, before);
    }

    #[test]
    fn without_sharing_providers_no_answer_mixes_trees((mut estate, request) in newer_cases()) {
        for provider in &mut estate.providers {
            provider.traits.remove(SHARES);
        }
        for (allocations, mappings) in answers(&estate, &request) {
            let names = allocations.keys().chain(mappings.values().flatten());
            let trees: BTreeSet<&str> = names.map(|name| estate.root(name)).collect();
            prop_assert_eq!(trees.len(), 1);
        }
    }
}

/// The command that takes an answer for a new consumer.
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
    Stamped {
        partition: PartitionId::DEFAULT,
        routes: 0,
        at: Timestamp(1),
        request: None,
        command: Command::ReplaceAllocations(ReplaceAllocations {
            consumers: vec![consumer],
        }),
    }
}

#[test]
fn each_answer_can_be_claimed() {
    let claimed = Cell::new(0);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let law = |(estate, request): (Estate, CandidateRequest)| {
        let state = estate.state();
        for answer in state.candidates(&request).unwrap() {
            let (outcome, _) = apply(&state, &claim(&answer));
            prop_assert!(
                matches!(outcome, Outcome::Done(_)),
                "{:?} is refused: {:?}",
                told(&estate, &answer),
                outcome
            );
            claimed.set(claimed.get() + 1);
        }
        Ok(())
    };
    if let Err(broken) = runner.run(&newer_cases(), law) {
        panic!("{broken}");
    }
    let claimed = claimed.get();
    assert!(claimed > 100, "only {claimed} answers were there to claim");
}
