//! Claims: `POST /placementd/v1/claims` chooses an assignment, checks limits and takes it, in one
//! step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::claim_refusal::{ClaimRefusal, Reason};
use crate::holds::NewHold;
use crate::upstream::Allocation;

/// The allocations of one consumer by UUID of the provider.
pub type Allocations = BTreeMap<String, Allocation>;

/// Body of the request. It has either `choices` or `want`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClaimRequest {
    /// The consumers by UUID.
    pub consumers: BTreeMap<String, Claimant>,
    /// Assignments in order of preference. Each names all consumers; the first that is accepted is
    /// taken as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<BTreeMap<String, Assignment>>>,
    /// A query from which the node makes the choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub want: Option<Want>,
    /// Limits that the claim must not exceed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ceilings: Vec<Ceiling>,
    /// Groups of consumers that may not share a tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<Apart>,
    /// Groups of consumers that must share a tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<Together>,
    /// Makes the allocations of all consumers a hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<NewHold>,
}

/// The owner, type and generation of a consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claimant {
    /// Project of the owner.
    pub project_id: String,
    /// User who owns the consumer.
    pub user_id: String,
    /// Consumer type, such as `INSTANCE`; `None` keeps the current type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_type: Option<String>,
    /// Last known generation; `None` for a new consumer.
    pub consumer_generation: Option<i64>,
}

/// Allocations of one consumer in a choice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// The allocations, at least one.
    pub allocations: Allocations,
}

/// A query from which the node makes choices: one candidate for each consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Want {
    /// Query of `GET /allocation_candidates`.
    pub query: String,
    /// Which candidates are preferred.
    #[serde(default)]
    pub order: Order,
}

/// Which candidates a [`Want`] prefers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Candidates with the smallest share of free capacity after the claim.
    Pack,
    /// Candidates with the largest share of free capacity after the claim.
    Spread,
    /// Candidates in random order.
    #[default]
    Any,
}

/// A limit on what consumers of some projects hold, of `class` or, with `count`, on the number of
/// these consumers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// The projects, whose holdings are added up.
    pub projects: Vec<String>,
    /// The consumer types that count, `None` for consumers without a type. Absent: all types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<Option<String>>>,
    /// The resource class whose units count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Whether the consumers count, instead of units.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub count: bool,
    /// The largest permitted sum.
    pub limit: u64,
}

/// Consumers of which each tree may have only some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Apart {
    /// UUIDs of the consumers. Members without allocations do not count.
    pub members: Vec<String>,
    /// The largest number of members in one tree.
    #[serde(default = "one")]
    pub most: u32,
}

fn one() -> u32 {
    1
}

/// Consumers that must all be in one tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Together {
    /// UUIDs of the consumers. Members without allocations do not count.
    pub members: Vec<String>,
}

/// Response to an accepted claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claimed {
    /// Index of the choice that was taken; with `want`, in the node's own list.
    pub choice: u32,
    /// The allocations of each consumer.
    pub allocations: BTreeMap<String, Allocations>,
    /// The generation of each consumer.
    pub consumer_generations: BTreeMap<String, i64>,
    /// Whether an earlier claim had taken this already, so that nothing was written.
    pub repeated: bool,
}
