//! Row puts and deletes, the only way to change a state. Rows are written to disk and to snapshots,
//! one table per noun; `raft-store` defines their encoding.
//!
//! Rows refer to each other by dense integer ids, which apply assigns in order and never reuses.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use super::amounts::{Amount, Amounts};
pub use super::ids::{ProviderId, ResourceClassId, TraitId};
use crate::level::Level;
use crate::outcome::Outcome;
use crate::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Generation, Hold, Inventory, Limits,
    PartitionId, PartitionName, ProjectId, ProviderName, ProviderUuid, ResourceClassName, Routes,
    Timestamp, TraitName, UserId,
};

/// The changes of one command, in order.
pub type Changes = Vec<Change>;

/// One row put (inserted or replaced) or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Change {
    /// Puts a resource provider.
    PutProvider(ProviderId, ProviderRow),
    /// Puts one inventory of a provider.
    PutInventory(ProviderId, ResourceClassId, InventoryRow),
    /// Puts the traits of a provider. An empty set is equivalent to a missing row.
    PutProviderTraits(ProviderId, BTreeSet<TraitId>),
    /// Puts the aggregates of a provider. An empty set is equivalent to a missing row.
    PutProviderAggregates(ProviderId, BTreeSet<AggregateUuid>),
    /// Puts a resource class.
    PutResourceClass(ResourceClassId, NameRow<ResourceClassName>),
    /// Puts the row of a trait.
    PutTrait(TraitId, NameRow<TraitName>),
    /// Puts a consumer with all its allocations.
    PutConsumer(ConsumerUuid, ConsumerRow),
    /// Puts the write progress of a node, by which retries are recognized.
    PutSession(u64, SessionRow),
    /// Puts the next free ids.
    PutCounters(Counters),
    /// Puts the outcome of a write, by origin node and sequence. Each outcome is a separate row,
    /// since a node has many outcomes and every write adds one.
    PutOutcome(u64, u64, Outcome),
    /// Puts the feature level, once it is raised.
    PutLevel(Level),
    /// Puts a joining or replacing node, by node number.
    PutJoin(u64, JoinRow),
    /// Puts a partition, live or deleted. Only the default partition has such rows.
    PutPartition(PartitionId, PartitionRow),
    /// Puts the limits of all projects.
    PutLimits(Box<LimitsRow>),
    /// Deletes a row. The inventories, traits and aggregates of a provider are deleted first, by
    /// separate changes. Sessions, counters, the level, partitions and limits are never
    /// deleted.
    Delete(RowKey),
}

/// Identifies the row of a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RowKey {
    /// The row of a resource provider.
    Provider(ProviderId),
    /// One inventory of a provider.
    Inventory(ProviderId, ResourceClassId),
    /// The traits of a provider.
    ProviderTraits(ProviderId),
    /// The aggregates of a provider.
    ProviderAggregates(ProviderId),
    /// The row of a resource class.
    ResourceClass(ResourceClassId),
    /// The row of a trait.
    Trait(TraitId),
    /// The row of a consumer.
    Consumer(ConsumerUuid),
    /// The session of a node.
    Session(u64),
    /// The next free ids.
    Counters,
    /// The outcome of a write, by origin node and sequence.
    Outcome(u64, u64),
    /// The feature level of the cluster.
    Level,
    /// A joining or replacing node.
    Join(u64),
    /// The row of a partition.
    Partition(PartitionId),
    /// The limits of all projects.
    Limits,
}

impl Change {
    /// The row that the change puts or deletes.
    pub fn key(&self) -> RowKey {
        match self {
            Self::PutProvider(id, _) => RowKey::Provider(*id),
            Self::PutInventory(id, class, _) => RowKey::Inventory(*id, *class),
            Self::PutProviderTraits(id, _) => RowKey::ProviderTraits(*id),
            Self::PutProviderAggregates(id, _) => RowKey::ProviderAggregates(*id),
            Self::PutResourceClass(id, _) => RowKey::ResourceClass(*id),
            Self::PutTrait(id, _) => RowKey::Trait(*id),
            Self::PutConsumer(consumer, _) => RowKey::Consumer(consumer.clone()),
            Self::PutSession(origin, _) => RowKey::Session(*origin),
            Self::PutCounters(_) => RowKey::Counters,
            Self::PutOutcome(origin, sequence, _) => RowKey::Outcome(*origin, *sequence),
            Self::PutLevel(_) => RowKey::Level,
            Self::PutJoin(node, _) => RowKey::Join(*node),
            Self::PutPartition(id, _) => RowKey::Partition(*id),
            Self::PutLimits(_) => RowKey::Limits,
            Self::Delete(key) => key.clone(),
        }
    }
}

/// The row of a resource provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProviderRow {
    /// The UUID of the provider.
    pub uuid: ProviderUuid,
    /// The name, unique within the partition.
    pub name: ProviderName,
    /// The generation, for optimistic concurrency control.
    pub generation: Generation,
    /// The parent; `None` for a root.
    pub parent: Option<ProviderId>,
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Time of the last update.
    pub updated_at: Timestamp,
}

/// The row of an inventory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InventoryRow {
    /// The inventory record as written.
    pub inventory: Inventory,
    /// Time of the last write.
    pub updated_at: Timestamp,
}

/// The row of a trait or a resource class.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NameRow<N> {
    /// The name of the trait or class.
    pub name: N,
    /// Time of the creation or the last rename.
    pub updated_at: Timestamp,
}

/// The row of a consumer. As upstream, a consumer may exist without allocations in some cases.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConsumerRow {
    /// The generation, for optimistic concurrency control.
    pub generation: Generation,
    /// The project that owns the allocations.
    pub project: ProjectId,
    /// The user that owns the allocations.
    pub user: UserId,
    /// The consumer type; `None` is shown as `unknown`.
    pub consumer_type: Option<ConsumerTypeName>,
    /// All allocations of the consumer.
    pub allocations: Amounts,
    /// Time of the last write to the allocations.
    pub updated_at: Timestamp,
    /// Makes the allocations a hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Box<Hold>>,
}

/// The write progress of a node. Outcomes that a retry may still request are separate rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionRow {
    /// The latest boot of the node; writes of earlier boots are late duplicates.
    pub boot: u64,
    /// Writes below this sequence were answered, and their outcomes are deleted.
    pub answered_below: u64,
}

impl SessionRow {
    /// The session of a removed node. Every boot of the node is lower, so its writes are late
    /// duplicates.
    pub(crate) const RETIRED: Self = Self {
        boot: u64::MAX,
        answered_below: u64::MAX,
    };
}

/// A node that joins the cluster or replaces another node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JoinRow {
    /// The hash of the join token; empty if the node is already a member, or the token is revoked.
    pub token: String,
    /// Expiry of the token, compared with the timestamps of commands.
    pub until: Timestamp,
    /// The hash of the nonce of the node that redeemed the token; `None` if the token is unused.
    pub nonce: Option<String>,
    /// The node to be replaced, until the replacement is completed.
    pub replaces: Option<Replaced>,
    /// Expiry of the token by the clock of the issuing leader. `until` can be later, because
    /// timestamps of commands never go back and may be ahead of the clock.
    pub expires_at: Timestamp,
}

impl JoinRow {
    /// Whether the row is no longer needed. A node that has redeemed its token may repeat the
    /// request until the token expires.
    pub fn is_over(&self, at: Timestamp) -> bool {
        match self.nonce {
            Some(_) => self.replaces.is_none() && at > self.until,
            None => at > self.until,
        }
    }

    /// Whether the token has expired unused.
    pub fn is_too_late(&self, at: Timestamp) -> bool {
        self.nonce.is_none() && at > self.until
    }
}

/// A node to be replaced.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replaced {
    /// The number of the replaced node.
    pub node: u64,
    /// The name of the replaced node, which the new node takes over. If empty, each node keeps its
    /// name.
    pub name: String,
    /// Whether the replaced node is a voter, so that the new node becomes one.
    pub votes: bool,
    /// Whether the replaced node stays as a learner.
    pub stays: bool,
    /// Whether to replace the node even if it is reachable.
    pub though_reachable: bool,
}

/// The row of a partition. It is kept after the partition's deletion, so that the id is not reused.
/// The default partition has a row only once it has routes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PartitionRow {
    /// The name, which may be reused after the deletion.
    pub name: PartitionName,
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Time of the deletion; `None` while the partition exists.
    pub deleted_at: Option<Timestamp>,
    /// The routes that lead requests to the partition.
    pub routing: Routing,
}

/// The routes of a partition with a change counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Routing {
    /// The current routes of the partition.
    pub routes: Routes,
    /// Number of changes of the routes. A write that was routed before the last change is refused.
    pub changes: u32,
}

/// The limits of all projects, once some are put.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct LimitsRow {
    /// The generation, which each write increments.
    pub generation: Generation,
    /// Time of the last write.
    pub updated_at: Timestamp,
    /// The limits as written.
    pub limits: Limits,
}

/// The next free ids, which only increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Counters {
    /// The next free [`ProviderId`].
    pub provider: u32,
    /// The next free [`ResourceClassId`].
    pub resource_class: u32,
    /// The next free [`TraitId`].
    pub trait_: u32,
    /// Number of applied `Rehearse` commands.
    #[cfg(feature = "rehearsal")]
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rehearsals: u32,
}

/// A new field is omitted while it has its default value, so that rows of earlier levels, and their
/// digest, are the same as in earlier versions.
#[cfg(feature = "rehearsal")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
