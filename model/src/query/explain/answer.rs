//! What an explanation says.

use std::num::NonZeroU64;

use serde::{Serialize, Serializer};

use super::atoms::Atom;
use super::kind::Kind;
use crate::query::NamedProvider;
use crate::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Given, Inventory, ProjectId, ProviderUuid,
    ResourceClassName, Timestamp, TraitName,
};

/// Why a request has the answer that it has, over one state.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Explanation {
    /// Whether there is any candidate.
    pub verdict: Verdict,
    /// The condition that leaves no candidate; `None` where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The stage of the funnel that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<usize>,
    /// All trees: those that are gone, those with candidates and those that are undecided.
    pub trees: u64,
    /// The trees that are the anchor of a candidate. One that takes from sharing providers alone is
    /// a candidate of each tree that they reach, though the search gives it once.
    pub with_candidates: u64,
    /// The trees of which it was not found out in time.
    pub undecided: u64,
    /// Names that do not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<AbsentName>,
    /// Names that exist, but no provider has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<AbsentName>,
    /// The atoms in their order, with the trees that are left.
    pub funnel: Vec<Stage>,
    /// What would have candidates: one thing less. Only if there are none.
    pub relaxations: Vec<Relaxation>,
    /// Trees that lack little. Only if there are no candidates.
    pub nearest: Vec<Near>,
    /// What it took, in steps of a search.
    #[serde(skip)]
    pub steps: u64,
}

/// Whether there is any candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
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

/// Why there is no candidate, in a word: answers, logs and metrics have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The time was up before it was known.
    Undecided,
    /// A name does not exist.
    UnknownName,
    /// No provider has a name.
    UnusedName,
    /// There are no providers.
    NoTrees,
    /// What is left of the trees does not meet a condition.
    Condition(Kind),
}

impl Reason {
    /// As answers, logs and metrics name it.
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

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A name that a request gives and no provider has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AbsentName {
    /// The name.
    #[serde(flatten)]
    pub name: Name,
    /// Names that are spelled nearly so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
}

/// What a request may name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Name {
    /// A resource class.
    Class(Given<ResourceClassName>),
    /// A trait.
    Trait(Given<TraitName>),
    /// An aggregate.
    Aggregate(AggregateUuid),
    /// A provider.
    Provider(Given<ProviderUuid>),
}

/// An atom, and what it does to the trees that meet those before.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Stage {
    /// The atom.
    #[serde(flatten)]
    pub atom: Atom,
    /// Trees that meet it, too, or are undecided.
    pub left: u64,
    /// Trees that do not.
    pub gone: u64,
    /// Of `room`: the most that a provider of those trees could give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_free: Option<u64>,
    /// More about those trees.
    #[serde(flatten)]
    pub detail: Detail,
    /// The roots of some of those that are gone.
    pub examples: Vec<NamedProvider>,
}

/// What exactly a condition fails at.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Detail {
    /// Of `unit`: the bound that the amount breaks; of several trees, that of those which come
    /// nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Of a required trait: a provider that has it, but would not serve the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere>,
    /// Of `together`: a class of which the groups ask more than one tree has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<Short>,
}

/// The bound of an inventory that an amount breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The amount is larger.
    MaxUnit(u32),
    /// It is smaller.
    MinUnit(u32),
    /// It is no multiple of it.
    StepSize(u32),
}

/// A provider with a trait, and its root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Elsewhere {
    /// The root of its tree.
    pub root: NamedProvider,
    /// The provider.
    pub provider: NamedProvider,
}

/// A class of which several groups together ask more than one tree has for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Short {
    /// The class.
    pub class: Given<ResourceClassName>,
    /// Units that all groups ask for.
    pub asked: u64,
    /// Units that they can take of one tree at most.
    pub most: u64,
    /// The suffixes of the groups.
    pub groups: Vec<String>,
}

/// A request that asks for less and has candidates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relaxation {
    /// What it does without.
    pub less: [Less; 1],
    /// Trees that are the anchor of a candidate then,
    pub trees: u64,
    /// and those of which it was not found out in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<NonZeroU64>,
    /// The request, as a query of `/allocation_candidates`.
    pub query: String,
    /// The root of one of these trees.
    pub example: NamedProvider,
}

/// An atom that a request does without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Less {
    /// The atom. What concerns several groups stands in its `group`.
    #[serde(flatten)]
    pub atom: Atom,
    /// Of an amount: the largest that would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enough: Option<u64>,
    /// Of `unit`: the bound that the amount breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// A tree that lacks little.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Near {
    /// Its root.
    pub root: NamedProvider,
    /// The atoms that it does not meet.
    pub lacks: Vec<Lack>,
    /// Who holds most of what is missing,
    pub holders: Vec<Holder>,
    /// and how many more hold some of it; at most a thousand of each provider are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders_more: Option<NonZeroU64>,
}

/// An atom that a tree does not meet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lack {
    /// The atom.
    #[serde(flatten)]
    pub atom: Atom,
    /// Of `room`: what is free on the best provider,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
    /// of so much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// More about it.
    #[serde(flatten)]
    pub detail: Detail,
}

/// A consumer that holds some of what is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The consumer.
    pub consumer: ConsumerUuid,
    /// Its type.
    #[serde(rename = "type")]
    pub consumer_type: Option<ConsumerTypeName>,
    /// Its project.
    pub project: ProjectId,
    /// The missing class.
    pub class: ResourceClassName,
    /// Units of it.
    pub amount: u64,
    /// When its allocations were written.
    #[serde(serialize_with = "Timestamp::serialize_rfc3339")]
    pub since: Timestamp,
}

impl Bound {
    /// The bound that an amount breaks; `None` if the inventory permits it.
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

    /// Of two, the one that more amounts meet; the first if they are of different kinds.
    pub(super) fn nearer(self, other: Self) -> Self {
        match (self, other) {
            (Self::MaxUnit(one), Self::MaxUnit(other)) => Self::MaxUnit(one.max(other)),
            (Self::MinUnit(one), Self::MinUnit(other)) => Self::MinUnit(one.min(other)),
            (first, _) => first,
        }
    }
}

impl Explanation {
    /// The resource class that the reason is about.
    pub fn class(&self) -> Option<&str> {
        let stage = &self.funnel[self.cause?];
        let short = stage.detail.short.as_ref().map(|short| &short.class);
        stage.atom.class.as_ref().or(short).map(Given::as_str)
    }
}
