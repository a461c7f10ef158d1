//! What an explanation says.

use std::num::NonZeroU64;

use serde::Serialize;

use super::atoms::Atom;
use crate::query::NamedProvider;
use crate::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Given, ProjectId, ResourceClassName, Timestamp,
    TraitName,
};

/// Why a request has the answer that it has, over one state.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Explanation {
    /// Whether there is any candidate.
    pub verdict: Verdict,
    /// All trees: those that are gone, those with candidates and those that are undecided.
    pub trees: u64,
    /// The trees that are the anchor of a candidate. One that takes from sharing providers alone is a candidate of each
    /// tree that they reach, though the search gives it once.
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
    /// The roots of some of those that are gone.
    pub examples: Vec<NamedProvider>,
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
}

/// A tree that lacks little.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Near {
    /// Its root.
    pub root: NamedProvider,
    /// The atoms that it does not meet.
    pub lacks: Vec<Lack>,
    /// Who holds most of what is missing.
    pub holders: Vec<Holder>,
}

/// An atom that a tree does not meet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lack {
    /// The atom.
    #[serde(flatten)]
    pub atom: Atom,
    /// Of `room`: what is free on the best provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
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

impl Explanation {
    /// The first cause in a word, and the resource class that it is about.
    pub fn reason(&self) -> (&'static str, Option<&str>) {
        if self.verdict == Verdict::Undecided {
            return ("undecided", None);
        }
        for (names, reason) in [
            (&self.unknown, "unknown_name"),
            (&self.unused, "unused_name"),
        ] {
            if !names.is_empty() {
                return (reason, None);
            }
        }
        let less = self.relaxations.first().map(|one| &one.less[0].atom);
        // Without a single one, that with which the last trees are gone.
        let mut funnel = self.funnel.iter().rev();
        let last = funnel.find(|stage| stage.gone > 0);
        let atom = less.or(last.map(|stage| &stage.atom));
        atom.map_or(("no_trees", None), |atom| {
            (atom.kind, atom.class.as_ref().map(Given::as_str))
        })
    }
}
