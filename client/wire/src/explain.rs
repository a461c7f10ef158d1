//! Explanations of candidate queries: `GET /placementd/v1/explain`.

use std::borrow::Cow;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::holds::Hold;
use crate::trees::NamedProvider;

/// Response of `GET /placementd/v1/explain`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained<'a> {
    /// The verdict and its reasons.
    #[serde(flatten)]
    pub explanation: Explanation<'a>,
    /// State on which it is based.
    pub position: Position<'a>,
    /// Effort of the explanation.
    pub cost: Cost,
}

/// State of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Position<'a> {
    /// `Placement-Index` of the state.
    pub index: Option<Cow<'a, str>>,
    /// Number of the node that answered.
    pub node: Option<u64>,
}

/// Effort of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Duration of the request in milliseconds.
    pub ms: f64,
    /// Number of search steps.
    pub steps: u64,
}

/// Explanation of the candidates of a request in one state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explanation<'a> {
    /// Whether there are candidates.
    pub verdict: Verdict,
    /// The condition that no tree meets, or another reason for no candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// Index of the funnel stage that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<usize>,
    /// Number of all trees: the sum of removed trees, trees with candidates, and undecided trees.
    pub trees: u64,
    /// Number of trees with candidates. A candidate counts for the tree of its anchor root
    /// provider.
    pub with_candidates: u64,
    /// Number of trees that were not searched in time.
    pub undecided: u64,
    /// Names that do not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<AbsentName<'a>>,
    /// Names that exist but that no provider has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<AbsentName<'a>>,
    /// Conditions in order, with the trees that remain.
    pub funnel: Vec<Stage<'a>>,
    /// Relaxed requests that have candidates. Empty if the request itself has candidates.
    pub relaxations: Vec<Relaxation<'a>>,
    /// Trees that nearly fit. Empty if there are candidates.
    pub nearest: Vec<NearTree<'a>>,
}

/// Whether there are candidates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No tree has candidates.
    None,
    /// Some trees have candidates.
    Some,
    /// The time limit was reached before a tree with candidates was found.
    #[default]
    Undecided,
}

/// A name in a request that no provider has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbsentName<'a> {
    /// The name and its kind.
    #[serde(flatten)]
    pub name: Name<'a>,
    /// Existing names with a similar spelling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<Cow<'a, str>>,
}

/// A name in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Name<'a> {
    /// Name of a resource class.
    Class(Cow<'a, str>),
    /// Name of a trait.
    Trait(Cow<'a, str>),
    /// UUID of an aggregate.
    Aggregate(Cow<'a, str>),
    /// A provider, by its UUID.
    Provider(Cow<'a, str>),
}

/// Kind of a condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The tree of a given provider (`in_tree`).
    InTree,
    /// Membership of a provider in aggregates, or its absence.
    MemberOf,
    /// A trait that is required or forbidden on the root.
    RootRequired,
    /// An inventory of a resource class.
    Inventory,
    /// At least one of several traits.
    Required,
    /// A trait that is forbidden.
    Forbidden,
    /// Limits of one allocation: `min_unit`, `max_unit` and `step_size`.
    Unit,
    /// Enough units are free on one provider.
    Room,
    /// All groups are satisfied at once.
    #[default]
    Together,
    /// Unknown kind of a newer node.
    #[serde(other)]
    Unknown,
}

/// A condition of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Atom<'a> {
    /// Kind of the condition.
    #[serde(rename = "atom")]
    pub kind: Kind,
    /// Suffix of its group; empty for the unnumbered group and for the whole request.
    pub group: Cow<'a, str>,
    /// Resource class of `inventory`, `unit` and `room`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Cow<'a, str>>,
    /// Requested amount of `unit` and `room`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// Traits, one of which is required, or one forbidden trait with the prefix `!`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<Cow<'a, str>>,
    /// Aggregates; with the prefix `!` if membership is forbidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aggregates: Vec<Cow<'a, str>>,
    /// Provider UUID of `in_tree`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Cow<'a, str>>,
}

/// A condition and its effect on the trees that meet all previous conditions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stage<'a> {
    /// The condition and its parameters.
    #[serde(flatten)]
    pub atom: Atom<'a>,
    /// Number of trees that meet it or are undecided.
    pub left: u64,
    /// Number of trees that do not meet it.
    pub gone: u64,
    /// For `room`: the most free units on a provider of the removed trees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_free: Option<u64>,
    /// Details about the removed trees.
    #[serde(flatten)]
    pub detail: Detail<'a>,
    /// Roots of some removed trees.
    pub examples: Vec<NamedProvider<'a>>,
}

/// Why a condition is not met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Detail<'a> {
    /// For `unit`: the limit that the amount violates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// For a required trait: a provider that has it but cannot serve the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<TraitElsewhere<'a>>,
    /// For `together`: a class of which all groups together request more units than any one tree
    /// has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<ClassShortage<'a>>,
}

/// The limit of an inventory that an amount violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The amount exceeds `max_unit`.
    MaxUnit(u32),
    /// The amount is below `min_unit`.
    MinUnit(u32),
    /// The amount is not a multiple of `step_size`.
    StepSize(u32),
}

/// A provider with a trait, and its root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraitElsewhere<'a> {
    /// Root of its tree.
    pub root: NamedProvider<'a>,
    /// The provider with the trait.
    pub provider: NamedProvider<'a>,
}

/// A class of which several groups together request more units than any one tree has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassShortage<'a> {
    /// Name of the resource class.
    pub class: Cow<'a, str>,
    /// Units that all groups request.
    pub asked: u64,
    /// Maximum number of units that one tree can provide.
    pub most: u64,
    /// Suffixes of the groups.
    pub groups: Vec<Cow<'a, str>>,
}

/// A relaxed request that has candidates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Relaxation<'a> {
    /// Removed or reduced conditions.
    pub less: Vec<RelaxedCondition<'a>>,
    /// Number of trees with candidates.
    pub trees: u64,
    /// Number of trees that were not searched in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<NonZeroU64>,
    /// The request as a query of `/allocation_candidates`.
    pub query: Cow<'a, str>,
    /// Root of one of these trees.
    pub example: NamedProvider<'a>,
}

/// A removed or reduced condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RelaxedCondition<'a> {
    /// The condition. If it concerns several groups, `group` names them all.
    #[serde(flatten)]
    pub atom: Atom<'a>,
    /// For an amount: the largest amount for which there are candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enough: Option<u64>,
    /// For `unit`: the limit that the amount violates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// A tree that nearly fits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NearTree<'a> {
    /// Root of the tree.
    pub root: NamedProvider<'a>,
    /// Conditions that it does not meet.
    pub lacks: Vec<UnmetCondition<'a>>,
    /// The largest consumers of the missing resources.
    pub holders: Vec<Holder<'a>>,
    /// Number of further consumers of the missing resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders_more: Option<NonZeroU64>,
}

/// A condition that a tree does not meet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnmetCondition<'a> {
    /// The condition and its parameters.
    #[serde(flatten)]
    pub atom: Atom<'a>,
    /// For `room`: free units on the best provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
    /// For `room`: capacity of that provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// For `room`: why this capacity is below the total of the inventory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduced: Option<ReducedCapacity>,
    /// Details about the condition.
    #[serde(flatten)]
    pub detail: Detail<'a>,
}

/// The parts of a capacity that is below the total of its inventory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReducedCapacity {
    /// Total units of the inventory.
    pub total: u32,
    /// Units that are reserved.
    pub reserved: u32,
    /// Factor of the units that are not reserved.
    pub allocation_ratio: f64,
}

/// A consumer of the missing resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holder<'a> {
    /// UUID of the consumer.
    pub consumer: Cow<'a, str>,
    /// Consumer type, such as `INSTANCE`.
    pub r#type: Option<Cow<'a, str>>,
    /// Project of the owner.
    pub project: Cow<'a, str>,
    /// Name of the missing class.
    pub class: Cow<'a, str>,
    /// Allocated units of it.
    pub amount: u64,
    /// Time of the last write of its allocations, as RFC 3339.
    pub since: Option<Cow<'a, str>>,
    /// The hold, if the allocations are one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}
