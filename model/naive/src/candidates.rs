//! The expected answer to a request, by exhaustive search: every assignment of groups to providers
//! for each anchor, filtered by one function per rule. Uses only names, and no ids, trees, indexes
//! or search code of the model.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::query::candidates::{CandidateRequest, GroupPolicy, RequestGroup};
use placement_model::types::{Given, ProviderUuid, TraitName};

use crate::sample_cloud::{Provider, SHARES, SampleCloud, Stock};

/// One answer: amounts per provider and class, and providers per suffix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NaiveCandidate {
    /// Amounts per provider and class.
    pub allocations: BTreeMap<String, BTreeMap<String, u64>>,
    /// Serving providers per suffix.
    pub mappings: BTreeMap<String, BTreeSet<String>>,
}

/// The expected result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The answer contains exactly these candidates.
    Answers(BTreeSet<NaiveCandidate>),
    /// The request contains an unknown class.
    UnknownResourceClass,
    /// The request contains an unknown trait.
    UnknownTrait,
}

/// A part of the request to place: a whole named group, or one class of the unnumbered group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) group: &'a RequestGroup,
    pub(crate) class: Option<&'a str>,
}

type Assignment<'a> = Vec<(Item<'a>, &'a Provider)>;

/// Computes the expected result of a request.
pub fn judge(sample_cloud: &SampleCloud, request: &CandidateRequest) -> Verdict {
    let unknown_traits = |mut names: Box<dyn Iterator<Item = &str> + '_>| {
        names.any(|name| !sample_cloud.traits.contains(name))
    };
    let mut root_traits = request.root_required.iter().chain(&request.root_forbidden);
    if unknown_traits(Box::new(root_traits.clone().map(|name| name.as_str()))) {
        return Verdict::UnknownTrait;
    }
    // Checked only if the request has conditions on roots. Without them, upstream evaluates the
    // groups even if no provider exists.
    if root_traits.next().is_some() && !roots(sample_cloud).any(|root| root_is_right(request, root))
    {
        return Verdict::Answers(BTreeSet::new());
    }
    for group in &request.groups {
        if group
            .resources
            .keys()
            .any(|name| !sample_cloud.classes.contains(name.as_str()))
        {
            return Verdict::UnknownResourceClass;
        }
        if !group.member_of.is_empty()
            && !sample_cloud
                .providers
                .iter()
                .any(|p| in_aggregates(group, p))
        {
            return Verdict::Answers(BTreeSet::new());
        }
        let traits = group.required.iter().flatten().chain(&group.forbidden);
        if unknown_traits(Box::new(traits.map(|name| name.as_str()))) {
            return Verdict::UnknownTrait;
        }
        let alone = CandidateRequest {
            groups: vec![group.clone()],
            root_required: request.root_required.clone(),
            root_forbidden: request.root_forbidden.clone(),
            nested: true,
            ..CandidateRequest::default()
        };
        if answers(sample_cloud, &alone).is_empty() {
            return Verdict::Answers(BTreeSet::new());
        }
    }
    Verdict::Answers(answers(sample_cloud, request))
}

fn answers(sample_cloud: &SampleCloud, request: &CandidateRequest) -> BTreeSet<NaiveCandidate> {
    let anchors = roots(sample_cloud).filter(|root| root_is_right(request, root));
    anchors
        .flat_map(|anchor| good_assignments(sample_cloud, request, anchor))
        .map(|assignment| answer(&assignment))
        .collect()
}

/// The roots of the trees that are the anchor of an answer; empty if a name does not exist.
pub(crate) fn anchored<'a>(
    sample_cloud: &'a SampleCloud,
    request: &CandidateRequest,
) -> BTreeSet<&'a str> {
    let groups = || request.groups.iter();
    let mut classes = groups().flat_map(|group| group.resources.keys());
    let mut traits = groups()
        .flat_map(|group| group.required.iter().flatten().chain(&group.forbidden))
        .chain(&request.root_required)
        .chain(&request.root_forbidden);
    let asks_for_nothing =
        |group: &RequestGroup| group.suffix.is_empty() && group.resources.is_empty();
    if !classes.all(|name| sample_cloud.classes.contains(name.as_str()))
        || !traits.all(|name| sample_cloud.traits.contains(name.as_str()))
        || groups().any(asks_for_nothing)
    {
        return BTreeSet::new();
    }
    let anchors = roots(sample_cloud).filter(|root| root_is_right(request, root));
    anchors
        .filter(|root| {
            good_assignments(sample_cloud, request, root)
                .next()
                .is_some()
        })
        .map(|root| root.name.as_str())
        .collect()
}

fn good_assignments<'a>(
    sample_cloud: &'a SampleCloud,
    request: &'a CandidateRequest,
    anchor: &Provider,
) -> impl Iterator<Item = Assignment<'a>> {
    let all = assignments(sample_cloud, request, anchor).into_iter();
    all.filter(|assignment| {
        capacities_hold(assignment)
            && required_traits_are_covered(assignment)
            && groups_are_isolated(request, assignment)
            && subtrees_hold(sample_cloud, request, assignment)
            && one_provider_per_tree(sample_cloud, request, assignment)
    })
}

pub(crate) fn roots(sample_cloud: &SampleCloud) -> impl Iterator<Item = &Provider> {
    let providers = sample_cloud.providers.iter();
    providers.filter(|provider| provider.parent.is_none())
}

/// All assignments of items to providers that satisfy the conditions on single providers.
fn assignments<'a>(
    sample_cloud: &'a SampleCloud,
    request: &'a CandidateRequest,
    anchor: &Provider,
) -> Vec<Assignment<'a>> {
    let mut ways: Vec<Assignment<'a>> = vec![Vec::new()];
    for item in items(request) {
        let right: Vec<&Provider> = sample_cloud
            .providers
            .iter()
            .filter(|provider| is_reachable(sample_cloud, anchor, provider))
            .filter(|provider| amounts_fit(item, provider))
            .filter(|provider| traits_are_right(item, provider))
            .filter(|provider| aggregates_are_right(sample_cloud, item, anchor, provider))
            .filter(|provider| tree_is_right(sample_cloud, item, anchor, provider))
            .collect();
        ways = ways
            .into_iter()
            .flat_map(|way| {
                right.iter().map(move |provider| {
                    let mut longer = way.clone();
                    longer.push((item, *provider));
                    longer
                })
            })
            .collect();
    }
    ways
}

pub(crate) fn items(request: &CandidateRequest) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    for group in &request.groups {
        if group.suffix.is_empty() {
            let classes = group.resources.keys();
            items.extend(classes.map(|name| Item {
                group,
                class: Some(name.as_str()),
            }));
        } else {
            items.push(Item { group, class: None });
        }
    }
    items
}

fn taken<'a>(item: &Item<'a>) -> Vec<(&'a str, u64)> {
    let all = item
        .group
        .resources
        .iter()
        .map(|(name, amount)| (name.as_str(), *amount));
    all.filter(|(name, _)| item.class.is_none_or(|class| class == *name))
        .collect()
}

// Conditions on single providers.

fn root_is_right(request: &CandidateRequest, root: &Provider) -> bool {
    let has = |name: &Given<TraitName>| root.traits.contains(name.as_str());
    request.root_required.iter().all(has) && !request.root_forbidden.iter().any(has)
}

/// Whether a provider belongs to the anchor's tree, or is a sharing provider for a member of it.
pub(crate) fn is_reachable(
    sample_cloud: &SampleCloud,
    anchor: &Provider,
    provider: &Provider,
) -> bool {
    let in_tree = |other: &Provider| sample_cloud.root(&other.name) == anchor.name;
    let shares_with = |other: &Provider| !provider.aggregates.is_disjoint(&other.aggregates);
    in_tree(provider)
        || (provider.traits.contains(SHARES)
            && sample_cloud
                .providers
                .iter()
                .any(|other| in_tree(other) && shares_with(other)))
}

fn amounts_fit(item: Item<'_>, provider: &Provider) -> bool {
    taken(&item).iter().all(|(class, amount)| {
        provider.stocks.get(*class).is_some_and(|stock| {
            amounts_are_permitted(stock, *amount) && (stock.used + amount) as f64 <= capacity(stock)
        })
    })
}

pub(crate) fn amounts_are_permitted(stock: &Stock, amount: u64) -> bool {
    let i = stock.inventory;
    amount >= u64::from(i.min_unit)
        && amount <= u64::from(i.max_unit)
        && amount.is_multiple_of(u64::from(i.step_size))
}

fn capacity(stock: &Stock) -> f64 {
    let i = stock.inventory;
    (f64::from(i.total) - f64::from(i.reserved)) * i.allocation_ratio
}

/// Required traits of the unnumbered group are checked for all its providers together.
pub(crate) fn traits_are_right(item: Item<'_>, provider: &Provider) -> bool {
    let has = |name: &str| provider.traits.contains(name);
    let required = item.class.is_some()
        || item
            .group
            .required
            .iter()
            .all(|any| any.iter().any(|name| has(name.as_str())));
    required && !item.group.forbidden.iter().any(|name| has(name.as_str()))
}

fn in_aggregates(group: &RequestGroup, provider: &Provider) -> bool {
    let has = |name: &str| provider.aggregates.contains(name);
    let mut sets = group.member_of.iter();
    sets.all(|any| any.iter().any(|aggregate| has(aggregate.as_str())))
}

fn in_forbidden_aggregate(group: &RequestGroup, provider: &Provider) -> bool {
    let has = |name: &str| provider.aggregates.contains(name);
    let mut forbidden = group.not_member_of.iter();
    forbidden.any(|aggregate| has(aggregate.as_str()))
}

/// For the unnumbered group, the aggregates of the root apply to the whole tree, but not to sharing
/// providers of other trees.
pub(crate) fn aggregates_are_right(
    sample_cloud: &SampleCloud,
    item: Item<'_>,
    anchor: &Provider,
    provider: &Provider,
) -> bool {
    if item.class.is_none() {
        return in_aggregates(item.group, provider)
            && !in_forbidden_aggregate(item.group, provider);
    }
    let own = sample_cloud.root(&provider.name) == anchor.name;
    (in_aggregates(item.group, provider) || (own && in_aggregates(item.group, anchor)))
        && !in_forbidden_aggregate(item.group, provider)
        && !in_forbidden_aggregate(item.group, anchor)
}

fn tree_is_right(
    sample_cloud: &SampleCloud,
    item: Item<'_>,
    anchor: &Provider,
    provider: &Provider,
) -> bool {
    let root = sample_cloud.root(&provider.name);
    if item.group.resources.is_empty() {
        let known = |given: &Given<ProviderUuid>| {
            sample_cloud
                .providers
                .iter()
                .any(|p| sample_cloud.uuid(&p.name).to_string() == given.to_string())
        };
        return item.group.in_tree.as_ref().is_none_or(known)
            && !(item.group.required.is_empty() && item.group.member_of.is_empty());
    }
    let Some(wanted) = &item.group.in_tree else {
        return true;
    };
    let in_wanted = sample_cloud.providers.iter().any(|p| {
        Given::Valid(sample_cloud.uuid(&p.name)) == *wanted && sample_cloud.root(&p.name) == root
    });
    in_wanted && (item.class.is_none() || root == anchor.name)
}

// Conditions on all providers together.

fn sums(assignment: &Assignment<'_>) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut sums: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for (item, provider) in assignment {
        for (class, amount) in taken(item) {
            let classes = sums.entry(provider.name.clone()).or_default();
            *classes.entry(class.to_owned()).or_default() += amount;
        }
    }
    sums
}

fn capacities_hold(assignment: &Assignment<'_>) -> bool {
    let sums = sums(assignment);
    assignment.iter().all(|(_, provider)| {
        sums.get(&provider.name)
            .into_iter()
            .flatten()
            .all(|(class, sum)| {
                let stock = &provider.stocks[class];
                stock.used + sum <= capacity(stock).trunc() as u64
                    && *sum <= u64::from(stock.inventory.max_unit)
            })
    })
}

fn required_traits_are_covered(assignment: &Assignment<'_>) -> bool {
    let unnumbered = || assignment.iter().filter(|(item, _)| item.class.is_some());
    unnumbered().all(|(item, _)| {
        item.group.required.iter().all(|any| {
            any.iter().any(|name| {
                unnumbered().any(|(_, provider)| provider.traits.contains(name.as_str()))
            })
        })
    })
}

fn groups_are_isolated(request: &CandidateRequest, assignment: &Assignment<'_>) -> bool {
    let named = || assignment.iter().filter(|(item, _)| item.class.is_none());
    let distinct: BTreeSet<&str> = named()
        .map(|(_, provider)| provider.name.as_str())
        .collect();
    request.group_policy != Some(GroupPolicy::Isolate) || distinct.len() == named().count()
}

fn subtrees_hold(
    sample_cloud: &SampleCloud,
    request: &CandidateRequest,
    assignment: &Assignment<'_>,
) -> bool {
    request.same_subtree.iter().all(|suffixes| {
        let concerned: Vec<&str> = assignment
            .iter()
            .filter(|(item, _)| suffixes.contains(&item.group.suffix))
            .map(|(_, provider)| provider.name.as_str())
            .collect();
        concerned.is_empty()
            || concerned.iter().any(|head| {
                concerned
                    .iter()
                    .all(|other| is_in_subtree(sample_cloud, head, other))
            })
    })
}

fn is_in_subtree(sample_cloud: &SampleCloud, head: &str, name: &str) -> bool {
    head == name
        || sample_cloud
            .get(name)
            .parent
            .as_deref()
            .is_some_and(|p| is_in_subtree(sample_cloud, head, p))
}

/// Before 1.29, an answer uses at most one provider per tree if any provider has a parent.
fn one_provider_per_tree(
    sample_cloud: &SampleCloud,
    request: &CandidateRequest,
    assignment: &Assignment<'_>,
) -> bool {
    let used: BTreeSet<&str> = assignment
        .iter()
        .filter(|(item, _)| !taken(item).is_empty())
        .map(|(_, provider)| provider.name.as_str())
        .collect();
    let trees: BTreeSet<&str> = used.iter().map(|name| sample_cloud.root(name)).collect();
    request.nested
        || sample_cloud
            .providers
            .iter()
            .all(|provider| provider.parent.is_none())
        || used.len() == trees.len()
}

fn answer(assignment: &Assignment<'_>) -> NaiveCandidate {
    let mut mappings: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (item, provider) in assignment {
        mappings
            .entry(item.group.suffix.clone())
            .or_default()
            .insert(provider.name.clone());
    }
    NaiveCandidate {
        allocations: sums(assignment),
        mappings,
    }
}

/// The providers that must be summarized for the answers in `given`. From 1.29 on, these are all
/// providers of the used trees; before, only providers that any answer in `all` uses, including
/// answers beyond the limit.
pub fn summarized(
    sample_cloud: &SampleCloud,
    request: &CandidateRequest,
    given: &BTreeSet<NaiveCandidate>,
    all: &BTreeSet<NaiveCandidate>,
) -> BTreeSet<String> {
    let trees: BTreeSet<&str> = used(given).map(|name| sample_cloud.root(name)).collect();
    let used: BTreeSet<&str> = used(all).collect();
    let names = sample_cloud
        .providers
        .iter()
        .map(|provider| provider.name.as_str());
    names
        .filter(|name| trees.contains(sample_cloud.root(name)))
        .filter(|name| request.nested || used.contains(name))
        .map(str::to_owned)
        .collect()
}

fn used(answers: &BTreeSet<NaiveCandidate>) -> impl Iterator<Item = &str> {
    let providers = answers.iter().flat_map(|one| one.allocations.keys());
    providers.map(String::as_str)
}
