//! Compares the choices that a search finds for a claim with an exhaustive oracle on small random
//! clouds.
#![allow(clippy::unwrap_used)] // A panic fails the test.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use placement_model::Outcome;
use placement_model::command::{
    Claim, Claimant, Command, ConsumerGeneration, ConsumerTypeUpdate, Group, GroupRule,
    ProviderAmounts,
};
use placement_model::query::assignments::{ANY_CHOICES_MAX, CHOICES_MAX, Order};
use placement_model::query::candidates::CandidateRequest;
use placement_model::types::{ConsumerUuid, Given, Timestamp};
use placement_naive::candidates::{Verdict, judge};
use placement_naive::cases::{cases, tight_cases};
use placement_naive::sample_cloud::{SHARES, SampleCloud};
use placement_naive::{Naive, config, stamped};
use proptest::prelude::*;
use proptest::sample::select;

/// Amounts by provider and class.
type Allocations = BTreeMap<String, BTreeMap<String, u64>>;

/// The allocations of each candidate. Candidates with equal allocations are one.
fn expected(cloud: &SampleCloud, request: &CandidateRequest) -> BTreeSet<Allocations> {
    let Verdict::Answers(all) = judge(cloud, request) else {
        return BTreeSet::new();
    };
    all.into_iter().map(|one| one.allocations).collect()
}

fn amounts(cloud: &SampleCloud, allocations: &Allocations) -> Vec<ProviderAmounts> {
    let on = |(provider, resources): (&String, &BTreeMap<String, u64>)| ProviderAmounts {
        provider: Given::Valid(cloud.uuid(provider)),
        resources: resources
            .iter()
            .map(|(class, amount)| (class.parse().unwrap(), *amount))
            .collect(),
    };
    allocations.iter().map(on).collect()
}

fn named(cloud: &SampleCloud, amounts: &[ProviderAmounts]) -> Allocations {
    let on = |one: &ProviderAmounts| {
        let Given::Valid(provider) = one.provider else {
            panic!("a search finds providers that exist");
        };
        let resources = one.resources.iter();
        let resources = resources.map(|(class, amount)| (class.as_str().to_owned(), *amount));
        (cloud.name(provider).to_owned(), resources.collect())
    };
    amounts.iter().map(on).collect()
}

fn claimant(number: usize) -> Claimant {
    Claimant {
        consumer: format!("claimant-{number}").into(),
        project: "project".into(),
        user: "user".into(),
        consumer_type: ConsumerTypeUpdate::Keep,
        generation: ConsumerGeneration::New,
    }
}

/// A claim without choices.
fn claim(claimants: usize, groups: Vec<Group>) -> Claim {
    Claim {
        claimants: (0..claimants).map(claimant).collect(),
        choices: Vec::new(),
        ceilings: Vec::new(),
        groups,
        hold: None,
    }
}

/// Whether the naive model accepts this choice.
fn is_accepted(naive: &Naive, claim: &Claim, choice: Vec<Vec<ProviderAmounts>>) -> bool {
    let choices = vec![choice];
    let claim = Claim {
        choices,
        ..claim.clone()
    };
    let stamped = stamped(Timestamp(1), None, Command::Claim(claim));
    matches!(naive.clone().apply(&stamped), Outcome::Done(_))
}

/// The share of the classes that remains free on average, by the stocks of the cloud.
fn free(cloud: &SampleCloud, allocations: &Allocations) -> f64 {
    let mut shares = Vec::new();
    for (provider, resources) in allocations {
        for (class, amount) in resources {
            let stock = &cloud.get(provider).stocks[class];
            let of = stock.inventory;
            let capacity = f64::from(of.total - of.reserved) * of.allocation_ratio;
            shares.push(1.0 - (stock.used + amount) as f64 / capacity);
        }
    }
    shares.iter().sum::<f64>() / shares.len() as f64
}

fn order() -> impl Strategy<Value = Order> {
    select(vec![Order::Pack, Order::Spread, Order::Any])
}

/// The choices, and whether the search saw all candidates.
fn choices(
    cloud: &SampleCloud,
    claim: &Claim,
    request: &CandidateRequest,
    order: (Order, u64),
) -> (Vec<Vec<Allocations>>, bool) {
    let watch = Box::new(|_steps| ControlFlow::Continue(()));
    let found = cloud.state().assignments(claim, request, order, watch);
    let each =
        |choice: &Vec<Vec<ProviderAmounts>>| choice.iter().map(|one| named(cloud, one)).collect();
    let found = found.unwrap();
    (found.choices.iter().map(each).collect(), !found.limited)
}

/// A group of both claimants and of some consumers in the cloud, which have the names of their
/// providers.
fn group() -> impl Strategy<Value = Group> {
    let rule = select(vec![
        GroupRule::Apart { most: 1 },
        GroupRule::Apart { most: 2 },
        GroupRule::Together,
    ]);
    let others = prop::collection::btree_set(select(vec!["tree0-0", "tree1-0", "tree1-1"]), 0..=2);
    (rule, others).prop_map(|(rule, others)| Group {
        members: (0..2)
            .map(|number| claimant(number).consumer)
            .chain(others.into_iter().map(ConsumerUuid::from))
            .collect(),
        rule,
    })
}

fn clouds() -> impl Strategy<Value = (SampleCloud, CandidateRequest)> {
    let all = prop_oneof![cases(false), tight_cases()];
    let newest = all.prop_map(|(cloud, mut request)| {
        (request.nested, request.limit) = (true, None);
        (cloud, request)
    });
    newest.prop_filter("each candidate can be claimed", |(cloud, request)| {
        expected(cloud, request).iter().all(|one| !one.is_empty())
    })
}

/// Whether a sharing provider has relatives. Such a provider does not count for groups, but the
/// search leaves it out together with its tree.
fn has_sharing_relative(cloud: &SampleCloud) -> bool {
    let in_tree = |root: &str| {
        let providers = cloud.providers.iter();
        providers
            .filter(|one| cloud.root(&one.name) == root)
            .count()
    };
    let mut providers = cloud.providers.iter();
    providers.any(|one| one.traits.contains(SHARES) && in_tree(cloud.root(&one.name)) > 1)
}

proptest! {
    #![proptest_config(config(3000))]

    /// For one consumer, each candidate is a choice, the preferred ones first.
    #[test]
    fn choices_for_one_consumer_are_the_best_candidates(
        (cloud, request) in clouds(),
        order in order(),
        seed in any::<u64>(),
    ) {
        let all = expected(&cloud, &request);
        let (found, saw_all) = choices(&cloud, &claim(1, Vec::new()), &request, (order, seed));
        let distinct: BTreeSet<_> = found.iter().map(|choice| choice[0].clone()).collect();
        prop_assert_eq!(distinct.len(), found.len(), "a choice is repeated");
        prop_assert!(distinct.is_subset(&all), "{distinct:?} in {all:?}");
        prop_assert_eq!(found.is_empty(), all.is_empty());
        let most = match order {
            Order::Any => ANY_CHOICES_MAX,
            Order::Pack | Order::Spread => CHOICES_MAX,
        };
        if saw_all && found.len() < most {
            prop_assert_eq!(&distinct, &all);
        }
        let rank = |one: &Allocations| match order {
            Order::Pack => free(&cloud, one),
            Order::Spread => -free(&cloud, one),
            Order::Any => 0.0,
        };
        let ranks: Vec<f64> = found.iter().map(|choice| rank(&choice[0])).collect();
        let is_sorted = ranks.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9);
        prop_assert!(is_sorted, "{order:?}: {ranks:?} of {found:?}");
        if let (Some(first), true) = (ranks.first(), saw_all) {
            let is_best = all.iter().all(|one| *first <= rank(one) + 1e-9);
            prop_assert!(is_best, "{order:?}: {found:?} of {all:?}");
        }
    }

    /// For two consumers with a group, a choice is accepted if and only if two candidates fit
    /// together and keep the group.
    #[test]
    fn two_consumers_find_a_choice_if_there_is_one(
        (cloud, request) in clouds(),
        group in prop::option::of(group()),
        order in order(),
        seed in any::<u64>(),
    ) {
        let all = expected(&cloud, &request);
        let claim = claim(2, group.into_iter().collect());
        let naive = Naive::load(cloud.state().rows());
        let accepts = |pair: [&Allocations; 2]| {
            let choice = pair.map(|one| amounts(&cloud, one)).to_vec();
            is_accepted(&naive, &claim, choice)
        };
        let (found, saw_all) = choices(&cloud, &claim, &request, (order, seed));
        for choice in &found {
            prop_assert!(choice.iter().all(|one| all.contains(one)), "{choice:?} in {all:?}");
        }
        let is_found = found.iter().any(|choice| accepts([&choice[0], &choice[1]]));
        let is_exact = claim.groups.is_empty() || !has_sharing_relative(&cloud);
        if is_exact && saw_all && all.len() <= CHOICES_MAX {
            let exists = all.iter().any(|one| all.iter().any(|other| accepts([one, other])));
            prop_assert_eq!(is_found, exists, "{:?} of {:?}", found, all);
        }
        if claim.groups.is_empty() {
            prop_assert!(is_found || found.is_empty(), "{found:?} are refused");
        }
    }
}
