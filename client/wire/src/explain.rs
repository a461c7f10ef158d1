//! Why a request for candidates has the answer that it has: `GET /placementd/v1/explain`.

use std::borrow::Cow;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::trees::NamedProvider;

/// The answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained<'a> {
    /// What was found.
    #[serde(flatten)]
    pub explanation: Explanation<'a>,
    /// The state that it was found on.
    pub position: Position<'a>,
    /// What it took.
    pub cost: Cost,
}

/// The state of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Position<'a> {
    /// The `Placement-Index`.
    pub index: Option<Cow<'a, str>>,
    /// The node that answered.
    pub node: Option<u64>,
}

/// What an answer took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Milliseconds.
    pub ms: f64,
    /// Steps of a search.
    pub steps: u64,
}

/// Why a request has the answer that it has, over one state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explanation<'a> {
    /// Whether there is any candidate.
    pub verdict: Verdict,
    /// The condition that leaves no candidate, or another reason for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The index of the stage of the funnel that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<usize>,
    /// All trees: those that are gone, those with candidates and those that are undecided.
    pub trees: u64,
    /// The trees that are the anchor of a candidate.
    pub with_candidates: u64,
    /// The trees that were not searched in time.
    pub undecided: u64,
    /// Names that do not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<AbsentName<'a>>,
    /// Names that exist, but no provider has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<AbsentName<'a>>,
    /// The conditions in their order, with the trees that are left.
    pub funnel: Vec<Stage<'a>>,
    /// Requests that ask for one thing less and have candidates. Only if there are none.
    pub relaxations: Vec<Relaxation<'a>>,
    /// Trees that lack little. Only if there are no candidates.
    pub nearest: Vec<Near<'a>>,
}

/// Whether there is any candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No tree has one.
    None,
    /// There are some.
    Some,
    /// The time was up before it was known.
    #[default]
    Undecided,
}

/// A name that a request gives and no provider has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbsentName<'a> {
    /// What it names.
    #[serde(flatten)]
    pub name: Name<'a>,
    /// Names that are spelled nearly so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<Cow<'a, str>>,
}

/// What a request may name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Name<'a> {
    /// A resource class.
    Class(Cow<'a, str>),
    /// A trait.
    Trait(Cow<'a, str>),
    /// An aggregate.
    Aggregate(Cow<'a, str>),
    /// A provider, by its UUID.
    Provider(Cow<'a, str>),
}

/// What a condition is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The provider whose tree is asked for.
    InTree,
    /// Aggregates that a provider must, or must not, be a member of.
    MemberOf,
    /// A trait that the root must, or must not, have.
    RootRequired,
    /// A resource class.
    Inventory,
    /// Traits of which one is required.
    Required,
    /// A trait that is forbidden.
    Forbidden,
    /// `min_unit`, `max_unit` and `step_size` permit the amount.
    Unit,
    /// The amount is free.
    Room,
    /// All groups can be met at once.
    #[default]
    Together,
    /// A kind that only a newer node knows.
    #[serde(other)]
    Unknown,
}

/// One condition of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Atom<'a> {
    /// What it is about.
    #[serde(rename = "atom")]
    pub kind: Kind,
    /// The suffix of its group; empty for the unnumbered group and for the request as a whole.
    pub group: Cow<'a, str>,
    /// The resource class, of `inventory`, `unit` and `room`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Cow<'a, str>>,
    /// The amount, of `unit` and `room`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// Traits of which one is required, or, with `!`, one that is forbidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<Cow<'a, str>>,
    /// Aggregates, with `!` if a provider must not be a member of any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aggregates: Vec<Cow<'a, str>>,
    /// The provider of `in_tree`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Cow<'a, str>>,
}

/// A condition, and what it does to the trees that meet those before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stage<'a> {
    /// The condition.
    #[serde(flatten)]
    pub atom: Atom<'a>,
    /// Trees that meet it, too, or are undecided.
    pub left: u64,
    /// Trees that do not.
    pub gone: u64,
    /// Of `room`: the most that a provider of those trees could give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_free: Option<u64>,
    /// More about those trees.
    #[serde(flatten)]
    pub detail: Detail<'a>,
    /// The roots of some of those that are gone.
    pub examples: Vec<NamedProvider<'a>>,
}

/// What exactly a condition fails at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Detail<'a> {
    /// Of `unit`: the bound that the amount breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Of a required trait: a provider that has it, but would not serve the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere<'a>>,
    /// Of `together`: a class of which the groups ask more than one tree has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<Short<'a>>,
}

/// The bound of an inventory that an amount breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The amount is larger.
    MaxUnit(u32),
    /// The amount is smaller.
    MinUnit(u32),
    /// The amount is no multiple of it.
    StepSize(u32),
}

/// A provider with a trait, and its root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Elsewhere<'a> {
    /// The root of its tree.
    pub root: NamedProvider<'a>,
    /// The provider.
    pub provider: NamedProvider<'a>,
}

/// A class of which several groups together ask more than one tree has for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Short<'a> {
    /// The resource class.
    pub class: Cow<'a, str>,
    /// Units that all groups ask for.
    pub asked: u64,
    /// Units that they can take of one tree at most.
    pub most: u64,
    /// The suffixes of the groups.
    pub groups: Vec<Cow<'a, str>>,
}

/// A request that asks for less and has candidates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Relaxation<'a> {
    /// What it does without.
    pub less: Vec<Less<'a>>,
    /// Trees that are the anchor of a candidate then.
    pub trees: u64,
    /// Trees that were not searched in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<NonZeroU64>,
    /// The request, as a query of `/allocation_candidates`.
    pub query: Cow<'a, str>,
    /// The root of one of these trees.
    pub example: NamedProvider<'a>,
}

/// A condition that a request does without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Less<'a> {
    /// The condition. What concerns several groups stands in its `group`.
    #[serde(flatten)]
    pub atom: Atom<'a>,
    /// Of an amount: the largest that would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enough: Option<u64>,
    /// Of `unit`: the bound that the amount breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// A tree that lacks little.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Near<'a> {
    /// The root.
    pub root: NamedProvider<'a>,
    /// The conditions that it does not meet.
    pub lacks: Vec<Lack<'a>>,
    /// The largest consumers of what is missing.
    pub holders: Vec<Holder<'a>>,
    /// More consumers of it; at most a thousand of each provider are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders_more: Option<NonZeroU64>,
}

/// A condition that a tree does not meet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lack<'a> {
    /// The condition.
    #[serde(flatten)]
    pub atom: Atom<'a>,
    /// Of `room`: units that are free on the best provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
    /// Of `room`: units of which these are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// More about it.
    #[serde(flatten)]
    pub detail: Detail<'a>,
}

/// A consumer that holds some of what is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holder<'a> {
    /// The UUID.
    pub consumer: Cow<'a, str>,
    /// Such as `INSTANCE`.
    pub r#type: Option<Cow<'a, str>>,
    /// The owner's project.
    pub project: Cow<'a, str>,
    /// The missing class.
    pub class: Cow<'a, str>,
    /// Units of it.
    pub amount: u64,
    /// When its allocations were written, as RFC 3339.
    pub since: Option<Cow<'a, str>>,
}
