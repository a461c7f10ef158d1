//! The expected explanations, by exhaustive search: tests every tree against every prefix of the
//! request's conditions, and every relaxed request.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::query::candidates::{CandidateRequest, GroupPolicy, RequestGroup};
use placement_model::types::{AggregateUuid, Given, ProviderUuid, ResourceClassName, TraitName};

use crate::candidates::{
    Item, aggregates_are_right, amounts_are_permitted, anchored, is_reachable, items, roots,
    traits_are_right,
};
use crate::sample_cloud::{Provider, SampleCloud};

/// The expected result for each tree.
#[derive(Debug, PartialEq, Eq)]
pub struct Explained {
    /// Number of trees eliminated at each condition. The last entry is the condition that all
    /// groups are met at once.
    pub gone: Vec<u64>,
    /// For each condition, the number of trees that meet all other conditions.
    pub alone: Vec<u64>,
    /// The condition that eliminates each tree without a candidate, by the UUID of its root.
    pub reasons: BTreeMap<ProviderUuid, usize>,
    /// Number of trees with a candidate.
    pub with_candidates: u64,
}

/// A condition, in the order of evaluation.
#[derive(Clone, Copy)]
enum Condition<'a> {
    Root(&'a Given<TraitName>, bool),
    Inventory(usize, &'a Given<ResourceClassName>),
    /// A resourceless group that is unnumbered or has no positive condition, so no provider serves
    /// it.
    Nothing,
    MemberOf(usize, &'a BTreeSet<AggregateUuid>),
    NotMemberOf(usize),
    InTree(usize),
    Required(usize, &'a BTreeSet<Given<TraitName>>),
    Forbidden(usize, &'a Given<TraitName>),
    Unit(usize, &'a Given<ResourceClassName>),
    Room(usize, &'a Given<ResourceClassName>),
}

fn conditions(request: &CandidateRequest) -> Vec<Condition<'_>> {
    let mut all = Vec::new();
    let groups = || request.groups.iter().enumerate();
    all.extend(
        groups()
            .filter(|(_, group)| group.in_tree.is_some())
            .map(|(at, _)| Condition::InTree(at)),
    );
    for (at, group) in groups() {
        all.extend(
            group
                .member_of
                .iter()
                .map(|any| Condition::MemberOf(at, any)),
        );
        all.extend((!group.not_member_of.is_empty()).then_some(Condition::NotMemberOf(at)));
    }
    all.extend(
        request
            .root_required
            .iter()
            .map(|name| Condition::Root(name, true)),
    );
    all.extend(
        request
            .root_forbidden
            .iter()
            .map(|name| Condition::Root(name, false)),
    );
    for (at, group) in groups() {
        all.extend(
            group
                .resources
                .keys()
                .map(|class| Condition::Inventory(at, class)),
        );
        let is_idle = group.required.is_empty() && group.member_of.is_empty();
        if group.resources.is_empty() && (group.suffix.is_empty() || is_idle) {
            all.push(Condition::Nothing);
        }
        let mut seen = BTreeSet::new();
        let required = group.required.iter().filter(|any| seen.insert(*any));
        all.extend(required.map(|any| Condition::Required(at, any)));
        all.extend(
            group
                .forbidden
                .iter()
                .map(|name| Condition::Forbidden(at, name)),
        );
    }
    for (at, group) in groups() {
        let classes = group.resources.keys();
        all.extend(classes.map(|class| Condition::Unit(at, class)));
    }
    for (at, group) in groups() {
        let classes = group.resources.keys();
        all.extend(classes.map(|class| Condition::Room(at, class)));
    }
    all
}

/// The conditions that have an effect.
fn effective<'a>(sample_cloud: &SampleCloud, request: &'a CandidateRequest) -> Vec<Condition<'a>> {
    let mut conditions = conditions(request);
    // `in_tree` has no effect on a resourceless group, unless the provider does not exist.
    conditions.retain(|condition| match condition {
        Condition::InTree(at) => {
            let group = &request.groups[*at];
            !group.resources.is_empty() || tree_of(sample_cloud, group).is_none()
        }
        _ => true,
    });
    conditions
}

/// The expected result for each tree.
pub fn explain(sample_cloud: &SampleCloud, request: &CandidateRequest) -> Explained {
    let conditions = effective(sample_cloud, request);
    let mut gone = vec![0; conditions.len() + 1];
    let mut alone = gone.clone();
    let mut reasons = BTreeMap::new();
    let good = anchored(sample_cloud, request);
    let mut with_candidates = 0;
    for root in roots(sample_cloud) {
        let is_unmet = |count: &usize| !meets(sample_cloud, request, root, &conditions[..*count]);
        let reason = match (1..=conditions.len()).find(is_unmet) {
            Some(count) => count - 1,
            None if good.contains(root.name.as_str()) => {
                with_candidates += 1;
                continue;
            }
            None => conditions.len(),
        };
        gone[reason] += 1;
        reasons.insert(root.uuid, reason);
        for (index, alone) in alone.iter_mut().enumerate() {
            let is_alone = fails_at_most(sample_cloud, request, root, &conditions, index);
            *alone += u64::from(is_alone);
        }
    }
    Explained {
        gone,
        alone,
        reasons,
        with_candidates,
    }
}

/// Whether a tree meets all conditions except the given one. The last index stands for the
/// condition that all groups are met at once.
fn fails_at_most(
    sample_cloud: &SampleCloud,
    request: &CandidateRequest,
    root: &Provider,
    conditions: &[Condition<'_>],
    index: usize,
) -> bool {
    // Dropping a class also drops all other conditions on it.
    if let Some(Condition::Inventory(at, class)) = conditions.get(index) {
        let mut less = request.clone();
        less.groups[*at].resources.remove(*class);
        if less.groups[*at].resources.is_empty() {
            less.groups.remove(*at);
        }
        let conditions = effective(sample_cloud, &less);
        return !less.groups.is_empty() && meets(sample_cloud, &less, root, &conditions);
    }
    let others: Vec<_> = conditions
        .iter()
        .enumerate()
        .filter(|(other, condition)| {
            let given_up = conditions.get(index);
            *other != index && !given_up.is_some_and(|given_up| is_given_up(condition, given_up))
        })
        .map(|(_, condition)| *condition)
        .collect();
    meets(sample_cloud, request, root, &others)
}

/// Whether dropping one condition also drops another. Dropping an amount drops both `Unit` and
/// `Room`.
fn is_given_up(one: &Condition<'_>, given_up: &Condition<'_>) -> bool {
    match (one, given_up) {
        (Condition::MemberOf(at, any), Condition::MemberOf(of, other)) => at == of && any == other,
        (
            Condition::Unit(at, class) | Condition::Room(at, class),
            Condition::Unit(of, other) | Condition::Room(of, other),
        ) => at == of && class == other,
        _ => false,
    }
}

/// Whether a tree meets the first conditions, with each item tested alone on single providers.
fn meets(
    sample_cloud: &SampleCloud,
    request: &CandidateRequest,
    root: &Provider,
    first: &[Condition<'_>],
) -> bool {
    let knows = |name: &Given<TraitName>| sample_cloud.traits.contains(name.as_str());
    let tree_is_right = first.iter().all(|condition| match condition {
        Condition::Root(name, wanted) => {
            knows(name) && root.traits.contains(name.as_str()) == *wanted
        }
        Condition::Inventory(_, class) => sample_cloud.classes.contains(class.as_str()),
        Condition::Nothing => false,
        Condition::NotMemberOf(at) => {
            let group = &request.groups[*at];
            !group.suffix.is_empty() || !is_forbidden(group, root)
        }
        Condition::InTree(at) => tree_of(sample_cloud, &request.groups[*at]).is_some(),
        Condition::Required(_, any) => any.iter().all(knows),
        Condition::Forbidden(_, name) => knows(name),
        Condition::MemberOf(..) | Condition::Unit(..) | Condition::Room(..) => true,
    });
    if !tree_is_right {
        return false;
    }
    let serving: Vec<(Item<'_>, Vec<&Provider>)> = items(request)
        .into_iter()
        .map(|item| {
            let able = sample_cloud.providers.iter().filter(|provider| {
                is_reachable(sample_cloud, root, provider)
                    && could_serve(sample_cloud, request, item, root, provider, first)
            });
            (item, able.collect())
        })
        .collect();
    let covered = first.iter().all(|condition| match condition {
        Condition::Required(at, any) if request.groups[*at].suffix.is_empty() => serving
            .iter()
            .filter(|(item, _)| item.class.is_some())
            .flat_map(|(_, able)| able)
            .any(|provider| {
                any.iter()
                    .any(|name| provider.traits.contains(name.as_str()))
            }),
        _ => true,
    });
    covered && serving.iter().all(|(_, able)| !able.is_empty())
}

fn could_serve(
    sample_cloud: &SampleCloud,
    request: &CandidateRequest,
    item: Item<'_>,
    root: &Provider,
    provider: &Provider,
    first: &[Condition<'_>],
) -> bool {
    let is_of = |at: usize| request.groups[at].suffix == item.group.suffix;
    let asks = |at: usize, class: &str| is_of(at) && item.class.is_none_or(|own| own == class);
    let mut asked = RequestGroup {
        suffix: item.group.suffix.clone(),
        resources: item.group.resources.clone(),
        ..RequestGroup::default()
    };
    for condition in first {
        match condition {
            Condition::MemberOf(at, any) if is_of(*at) => asked.member_of.push((*any).clone()),
            Condition::NotMemberOf(at) if is_of(*at) => {
                asked
                    .not_member_of
                    .clone_from(&request.groups[*at].not_member_of);
            }
            Condition::Required(at, any) if is_of(*at) => asked.required.push((*any).clone()),
            Condition::Forbidden(at, name) if is_of(*at) => {
                asked.forbidden.insert((*name).clone());
            }
            _ => {}
        }
    }
    let asked = Item {
        group: &asked,
        class: item.class,
    };
    let own_tree = sample_cloud.root(&provider.name);
    traits_are_right(asked, provider)
        && aggregates_are_right(sample_cloud, asked, root, provider)
        && first.iter().all(|condition| match condition {
            Condition::Inventory(at, class) if asks(*at, class.as_str()) => {
                provider.stocks.contains_key(class.as_str())
            }
            Condition::InTree(at) if is_of(*at) && !item.group.resources.is_empty() => {
                tree_of(sample_cloud, item.group) == Some(own_tree)
                    && (item.class.is_none() || own_tree == root.name)
            }
            Condition::Unit(at, class) if asks(*at, class.as_str()) => amounts_are_permitted(
                &provider.stocks[class.as_str()],
                item.group.resources[*class],
            ),
            Condition::Room(at, class) if asks(*at, class.as_str()) => {
                let stock = &provider.stocks[class.as_str()];
                let amount = stock.used + item.group.resources[*class];
                amount as f64 <= stock.inventory.capacity_exact()
            }
            _ => true,
        })
}

fn tree_of<'a>(sample_cloud: &'a SampleCloud, group: &RequestGroup) -> Option<&'a str> {
    let wanted = group.in_tree.as_ref()?;
    let mut providers = sample_cloud.providers.iter();
    let found = providers.find(|one| Given::Valid(one.uuid) == *wanted)?;
    Some(sample_cloud.root(&found.name))
}

fn is_forbidden(group: &RequestGroup, provider: &Provider) -> bool {
    let mut barred = group.not_member_of.iter();
    barred.any(|aggregate| provider.aggregates.contains(aggregate.as_str()))
}

/// Every relaxed request with candidates, as text, with the number of trees that have one.
pub fn relaxations(
    sample_cloud: &SampleCloud,
    request: &CandidateRequest,
) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut ask = |less: &CandidateRequest| {
        let trees = anchored(sample_cloud, less).len() as u64;
        if trees > 0 && !less.groups.is_empty() {
            found.insert(format!("{less:?}"), trees);
        }
        trees > 0
    };
    let mut changed = |change: &dyn Fn(&mut CandidateRequest)| {
        let mut less = request.clone();
        change(&mut less);
        less.same_subtree.retain(|suffixes| !suffixes.is_empty());
        ask(&less)
    };
    for name in &request.root_required {
        changed(&|less| _ = less.root_required.remove(name));
    }
    for name in &request.root_forbidden {
        changed(&|less| _ = less.root_forbidden.remove(name));
    }
    for (at, group) in request.groups.iter().enumerate() {
        for (class, asked) in &group.resources {
            changed(&|less| {
                less.groups[at].resources.remove(class);
                if less.groups[at].resources.is_empty() {
                    less.groups.remove(at);
                    for suffixes in &mut less.same_subtree {
                        suffixes.remove(&group.suffix);
                    }
                }
            });
            let smaller = |amount: &u64| {
                changed(&|less| _ = less.groups[at].resources.insert(class.clone(), *amount))
            };
            (1..*asked).rev().find(smaller);
        }
        for any in &group.member_of {
            changed(&|less| less.groups[at].member_of.retain(|other| other != any));
        }
        if !group.not_member_of.is_empty() {
            changed(&|less| less.groups[at].not_member_of.clear());
        }
        let without_effect = group.resources.is_empty() && tree_of(sample_cloud, group).is_some();
        if group.in_tree.is_some() && !without_effect {
            changed(&|less| less.groups[at].in_tree = None);
        }
        for any in &group.required {
            changed(&|less| less.groups[at].required.retain(|other| other != any));
        }
        for name in &group.forbidden {
            changed(&|less| _ = less.groups[at].forbidden.remove(name));
        }
    }
    if request.group_policy == Some(GroupPolicy::Isolate) {
        changed(&|less| less.group_policy = Some(GroupPolicy::None));
    }
    for index in 0..request.same_subtree.len() {
        changed(&|less| {
            let suffixes = less.same_subtree.remove(index);
            let left = less.same_subtree.clone();
            less.groups.retain(|group| {
                let is_in = |other: &BTreeSet<String>| other.contains(&group.suffix);
                let only_for_this = is_in(&suffixes) && !left.iter().any(is_in);
                !(group.resources.is_empty() && only_for_this)
            });
        });
    }
    found
}
