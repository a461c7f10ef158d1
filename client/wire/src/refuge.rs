//! Where consumers could go if some trees had to be emptied: `GET /placementd/v1/refuge`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::consumers::ConsumerAllocation;
use crate::explain::{Explanation, Position};
use crate::trees::NamedProvider;

/// Response of `GET /placementd/v1/refuge`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refuge<'a> {
    /// Number of consumers to move.
    pub consumers: u64,
    /// Number of consumers with room elsewhere.
    pub moved: u64,
    /// Number of consumers of the type `MIGRATION`, which are not moved.
    pub migrations: u64,
    /// Number of consumers with holds, which are not moved.
    pub holds: u64,
    /// Whether all consumers were searched for in time.
    pub complete: bool,
    /// Whether no other assignment has room for more consumers.
    pub exact: bool,
    /// Consumers without room, the largest first.
    pub left: Vec<Left<'a>>,
    /// Explanations of their queries after the moves, each different query once, at most 20.
    pub explanations: Vec<Explanation<'a>>,
    /// Moves that are possible in this order, if the request has `moves=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<Vec<Move<'a>>>,
    /// State on which the response is based.
    pub position: Position<'a>,
}

/// Response of `GET /placementd/v1/refuge?each=root`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EachRefuge<'a> {
    /// Number of trees that were looked at.
    pub trees: u64,
    /// Number of trees whose consumers all have room elsewhere.
    pub empties: u64,
    /// Trees with consumers that have no room elsewhere, in the order of their creation.
    pub stuck: Vec<StuckTree<'a>>,
    /// Number of such trees beyond the first 1,000.
    pub left_out: u64,
    /// Number of trees that were not looked at: there was no time, or they have too many consumers.
    pub undecided: u64,
    /// Whether all trees were looked at.
    pub complete: bool,
    /// State on which the response is based.
    pub position: Position<'a>,
}

/// A tree with consumers that have no room elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StuckTree<'a> {
    /// Root of the tree.
    pub provider: NamedProvider<'a>,
    /// Number of consumers to move.
    pub consumers: u64,
    /// Number of consumers without room.
    pub left: u64,
    /// Units by resource class that the largest of them holds in the tree.
    pub largest: BTreeMap<Cow<'a, str>, u64>,
    /// Whether no other assignment has room for more consumers.
    pub exact: bool,
}

/// A consumer without room elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Left<'a> {
    /// UUID of the consumer.
    pub consumer: Cow<'a, str>,
    /// Consumer type, such as `INSTANCE`.
    pub r#type: Option<Cow<'a, str>>,
    /// Project of the owner.
    pub project_id: Cow<'a, str>,
    /// Units by resource class that it holds in the trees to empty.
    pub resources: BTreeMap<Cow<'a, str>, u64>,
    /// Index in [`Refuge::explanations`] of the reason why it has no room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<usize>,
}

/// A consumer, and its allocations after the move.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Move<'a> {
    /// UUID of the consumer.
    pub consumer: Cow<'a, str>,
    /// Project of the owner.
    pub project_id: Cow<'a, str>,
    /// Allocations that replace those in the trees to empty.
    pub to: Vec<ConsumerAllocation<'a>>,
}
