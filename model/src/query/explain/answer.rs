//! The types of an explanation.

use std::num::NonZeroU64;

use super::atoms::Atom;
use super::kind::Kind;
use crate::query::NamedProvider;
use crate::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Given, Hold, Inventory, ProjectId, ProviderUuid,
    ResourceClassName, Timestamp, TraitName,
};

/// Explains the answer to a request over one state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Explanation {
    /// Whether there is any candidate.
    pub verdict: Verdict,
    /// The condition that leaves no candidate; `None` if a candidate exists.
    pub reason: Option<Reason>,
    /// Index of the funnel stage that is the reason.
    pub cause: Option<usize>,
    /// Number of all trees: eliminated trees, trees with candidates and undecided trees.
    pub trees: u64,
    /// Number of trees that are the anchor of a candidate. A candidate that consists only of
    /// sharing providers counts for every tree that they can serve, although the search returns it
    /// once.
    pub with_candidates: u64,
    /// Number of trees whose search did not end in time.
    pub undecided: u64,
    /// Names that do not exist.
    pub unknown: Vec<AbsentName>,
    /// Names that exist, but that no provider has.
    pub unused: Vec<AbsentName>,
    /// The atoms (single conditions) in the order of evaluation, with the remaining trees after
    /// each.
    pub funnel: Vec<Stage>,
    /// Relaxed requests that have candidates. Each drops or reduces one condition. Empty if the
    /// request itself has candidates.
    pub relaxations: Vec<Relaxation>,
    /// Trees that are closest to a candidate. Empty if the request has candidates.
    pub nearest: Vec<NearTree>,
    /// Cost of the explanation, in steps of a search.
    pub steps: u64,
}

/// Whether a request has a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// No tree has a candidate.
    None,
    /// At least one tree has a candidate.
    Some,
    /// Time ran out before a candidate was found.
    #[default]
    Undecided,
}

/// Why there is no candidate. Answers, logs and metrics use the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Time ran out before a candidate was found.
    Undecided,
    /// A name does not exist.
    UnknownName,
    /// A name exists, but no provider has it.
    UnusedName,
    /// The state contains no providers.
    NoTrees,
    /// The remaining trees do not meet a condition.
    Condition(Kind),
}

impl Reason {
    /// The name in answers, logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::UnknownName => "unknown_name",
            Self::UnusedName => "unused_name",
            Self::NoTrees => "no_trees",
            Self::Condition(kind) => kind.as_str(),
        }
    }
}

/// A name in a request that no provider has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentName {
    /// The name and its type.
    pub name: Name,
    /// Existing names with a similar spelling.
    pub nearest: Vec<String>,
}

/// A name in a request, by type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// The name of a resource class.
    Class(Given<ResourceClassName>),
    /// The name of a trait.
    Trait(Given<TraitName>),
    /// The UUID of an aggregate.
    Aggregate(AggregateUuid),
    /// The UUID of a provider.
    Provider(Given<ProviderUuid>),
}

/// An atom, and its effect on the trees that meet all atoms before it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stage {
    /// The condition to be met.
    pub atom: Atom,
    /// Number of trees that also meet this atom, or are undecided.
    pub left: u64,
    /// Number of trees that do not meet this atom.
    pub gone: u64,
    /// For `room`: the largest amount that a provider of the eliminated trees could give.
    pub most_free: Option<u64>,
    /// Details of the failure in the eliminated trees.
    pub detail: Detail,
    /// The roots of some eliminated trees.
    pub examples: Vec<NamedProvider>,
}

/// Details of a condition that is not met.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Detail {
    /// For `unit`: the bound that the amount violates; over several trees, the bound that is
    /// closest to the amount.
    pub bound: Option<Bound>,
    /// For a required trait: a provider that has the trait, but does not serve the request.
    pub elsewhere: Option<TraitElsewhere>,
    /// For `together`: a class for which the groups together request more than any single tree can
    /// give.
    pub short: Option<ClassShortage>,
}

/// An inventory bound that an amount violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The amount exceeds this `max_unit`.
    MaxUnit(u32),
    /// The amount is below this `min_unit`.
    MinUnit(u32),
    /// The amount is not a multiple of this `step_size`.
    StepSize(u32),
}

/// A provider with a trait that is required elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraitElsewhere {
    /// The root of its tree.
    pub root: NamedProvider,
    /// The provider that has the trait.
    pub provider: NamedProvider,
}

/// A class for which several groups together request more than any single tree can give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassShortage {
    /// The class with the shortage.
    pub class: Given<ResourceClassName>,
    /// Units that all groups request together.
    pub asked: u64,
    /// The most units that the groups can take from a single tree.
    pub most: u64,
    /// The suffixes of the groups.
    pub groups: Vec<String>,
}

/// A relaxed request that has candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct Relaxation {
    /// The condition that is dropped or reduced.
    pub less: [RelaxedCondition; 1],
    /// Number of trees that are then the anchor of a candidate.
    pub trees: u64,
    /// Number of trees whose search did not end in time.
    pub undecided: Option<NonZeroU64>,
    /// The relaxed request, as a query string of `/allocation_candidates`.
    pub query: String,
    /// The root of one of these trees.
    pub example: NamedProvider,
}

/// A condition that a relaxed request drops or reduces.
#[derive(Debug, Clone, PartialEq)]
pub struct RelaxedCondition {
    /// The condition. For a condition on several groups, `group` contains the dropped parameter.
    pub atom: Atom,
    /// If an amount is reduced: the largest amount for which a candidate exists.
    pub enough: Option<u64>,
    /// For `unit`: the bound that the amount violates.
    pub bound: Option<Bound>,
}

/// A tree that is close to a candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct NearTree {
    /// The root of the tree.
    pub root: NamedProvider,
    /// The conditions that the tree does not meet.
    pub lacks: Vec<UnmetCondition>,
    /// The consumers with the largest allocations of the missing resources.
    pub holders: Vec<Holder>,
    /// Number of further consumers of the missing resources.
    pub holders_more: Option<NonZeroU64>,
}

/// A condition that a tree does not meet.
#[derive(Debug, Clone, PartialEq)]
pub struct UnmetCondition {
    /// The condition to be met.
    pub atom: Atom,
    /// For `room`: the free units of the best provider.
    pub free: Option<u64>,
    /// For `room`: the capacity of the best provider.
    pub capacity: Option<u64>,
    /// For `room`: why this capacity is below the total of the inventory.
    pub reduced: Option<ReducedCapacity>,
    /// Details of the failure.
    pub detail: Detail,
}

/// The parts of a capacity that is below the total of its inventory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReducedCapacity {
    /// Total units of the inventory.
    pub total: u32,
    /// Units that are reserved.
    pub reserved: u32,
    /// Factor of the units that are not reserved.
    pub allocation_ratio: f64,
}

/// A consumer with allocations of a missing resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The UUID of the consumer.
    pub consumer: ConsumerUuid,
    /// The consumer type, if the consumer has one.
    pub consumer_type: Option<ConsumerTypeName>,
    /// The project that owns the allocations.
    pub project: ProjectId,
    /// The class that the tree lacks.
    pub class: ResourceClassName,
    /// Allocated units of the class.
    pub amount: u64,
    /// Time of the last write to the allocations.
    pub since: Timestamp,
    /// The hold, if the allocations are one.
    pub hold: Option<Hold>,
}

impl Bound {
    /// The bound that an amount violates, or `None` if the inventory permits the amount.
    pub(super) fn against(inventory: &Inventory, amount: u64) -> Option<Self> {
        let Inventory {
            max_unit,
            min_unit,
            step_size,
            ..
        } = *inventory;
        match amount {
            _ if amount > u64::from(max_unit) => Some(Self::MaxUnit(max_unit)),
            _ if amount < u64::from(min_unit) => Some(Self::MinUnit(min_unit)),
            _ if !amount.is_multiple_of(u64::from(step_size)) => Some(Self::StepSize(step_size)),
            _ => None,
        }
    }

    /// The weaker of two bounds, or `self` if they are of different kinds.
    pub(super) fn nearer(self, other: Self) -> Self {
        match (self, other) {
            (Self::MaxUnit(one), Self::MaxUnit(other)) => Self::MaxUnit(one.max(other)),
            (Self::MinUnit(one), Self::MinUnit(other)) => Self::MinUnit(one.min(other)),
            (first, _) => first,
        }
    }
}

impl ReducedCapacity {
    /// The parts of the capacity; `None` if the capacity is not below the total.
    pub(super) fn of(inventory: &Inventory) -> Option<Self> {
        let Inventory {
            total,
            reserved,
            allocation_ratio,
            ..
        } = *inventory;
        let is_reduced = inventory.capacity_exact() < f64::from(total);
        is_reduced.then_some(Self {
            total,
            reserved,
            allocation_ratio,
        })
    }
}

impl Explanation {
    /// The resource class of the reason, if the reason concerns one.
    pub fn class(&self) -> Option<&str> {
        let stage = &self.funnel[self.cause?];
        let short = stage.detail.short.as_ref().map(|short| &short.class);
        stage.atom.class.as_ref().or(short).map(Given::as_str)
    }
}
