//! Row puts and deletes: the only way in which a state changes. Rows are written to disk and to
//! snapshots, one table per noun; their encoding is `raft-store`'s affair.
//!
//! Rows refer to each other by dense integer ids, which apply hands out in order and never reuses.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use super::amounts::{Amount, Amounts};
pub use super::ids::{ProviderId, ResourceClassId, TraitId};
use crate::level::Level;
use crate::outcome::Outcome;
use crate::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Generation, Inventory, PartitionId,
    PartitionName, ProjectId, ProviderName, ProviderUuid, ResourceClassName, Routes, Timestamp,
    TraitName, UserId,
};

/// The changes of one command, in order.
pub type Changes = Vec<Change>;

/// One row put (inserted or replaced) or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Change {
    /// A resource provider.
    PutProvider(ProviderId, ProviderRow),
    /// One inventory of one provider.
    PutInventory(ProviderId, ResourceClassId, InventoryRow),
    /// The traits of one provider; an empty set is the same as none.
    PutProviderTraits(ProviderId, BTreeSet<TraitId>),
    /// The aggregates of one provider; an empty set is the same as none.
    PutProviderAggregates(ProviderId, BTreeSet<AggregateUuid>),
    /// A resource class.
    PutResourceClass(ResourceClassId, NameRow<ResourceClassName>),
    /// A trait.
    PutTrait(TraitId, NameRow<TraitName>),
    /// A consumer with all that it has.
    PutConsumer(ConsumerUuid, ConsumerRow),
    /// How far one node's writes have come, to recognise retries.
    PutSession(u64, SessionRow),
    /// The next ids to hand out.
    PutCounters(Counters),
    /// The outcome of one write: origin node, sequence. One row each, as many are kept at a time
    /// and every write adds one.
    PutOutcome(u64, u64, Outcome),
    /// The feature level, once it was raised.
    PutLevel(Level),
    /// A node that is to join, under the number that was given to it.
    PutJoin(u64, JoinRow),
    /// A partition, or that it is no more. Only the default partition has such rows.
    PutPartition(PartitionId, PartitionRow),
    /// A row that goes. What belongs to a provider goes before it, by deletes of its own. Sessions,
    /// counters, the level and partitions stay.
    Delete(RowKey),
}

/// Which row a change is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RowKey {
    /// A resource provider.
    Provider(ProviderId),
    /// One inventory of one provider.
    Inventory(ProviderId, ResourceClassId),
    /// The traits of one provider.
    ProviderTraits(ProviderId),
    /// The aggregates of one provider.
    ProviderAggregates(ProviderId),
    /// A resource class.
    ResourceClass(ResourceClassId),
    /// A trait.
    Trait(TraitId),
    /// A consumer.
    Consumer(ConsumerUuid),
    /// The session of one node.
    Session(u64),
    /// The next ids.
    Counters,
    /// The outcome of one write: origin node, sequence.
    Outcome(u64, u64),
    /// The feature level.
    Level,
    /// A node that is to join.
    Join(u64),
    /// A partition.
    Partition(PartitionId),
}

impl Change {
    /// The row that it puts or deletes.
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
            Self::Delete(key) => key.clone(),
        }
    }
}

/// A resource provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProviderRow {
    /// Its UUID.
    pub uuid: ProviderUuid,
    /// Its name.
    pub name: ProviderName,
    /// Its generation.
    pub generation: Generation,
    /// Its parent; the root follows from it.
    pub parent: Option<ProviderId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last updated.
    pub updated_at: Timestamp,
}

/// One inventory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InventoryRow {
    /// The stock.
    pub inventory: Inventory,
    /// When it was created or last written.
    pub updated_at: Timestamp,
}

/// A trait or a resource class.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NameRow<N> {
    /// The name.
    pub name: N,
    /// When it was created or last renamed.
    pub updated_at: Timestamp,
}

/// A consumer. It may outlive its allocations in the cases that upstream leaves behind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConsumerRow {
    /// Its generation.
    pub generation: Generation,
    /// Who is charged.
    pub project: ProjectId,
    /// Who is charged.
    pub user: UserId,
    /// Its type; `None` is shown as `unknown`.
    pub consumer_type: Option<ConsumerTypeName>,
    /// What it holds.
    pub allocations: Amounts,
    /// When the allocations were written.
    pub updated_at: Timestamp,
}

/// How far one node's writes have come. Outcomes that may still be asked for are rows of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionRow {
    /// The boot of the node; writes of an earlier boot are late duplicates.
    pub boot: u64,
    /// Writes below this sequence were answered and are forgotten.
    pub answered_below: u64,
}

impl SessionRow {
    /// The session of a node that was removed: all its boots are earlier ones.
    pub(crate) const RETIRED: Self = Self {
        boot: u64::MAX,
        answered_below: u64::MAX,
    };
}

/// A node that is to join the cluster, or that is to take the place of another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JoinRow {
    /// The hash of the token that lets it in; empty: it is a member already.
    pub token: String,
    /// Until when the token is good.
    pub until: Timestamp,
    /// The hash of the nonce of the node that used the token; `None`: none did yet.
    pub nonce: Option<String>,
    /// Whose place it takes, as long as it has not.
    pub replaces: Option<Replaced>,
    /// When the token ends by the clock of a leader: stamps that were once ahead make `until` late.
    pub expires_at: Timestamp,
}

impl JoinRow {
    /// Whether nothing follows from it any more. Who has come may ask again for as long as the
    /// token is good.
    pub fn is_over(&self, at: Timestamp) -> bool {
        match self.nonce {
            Some(_) => self.replaces.is_none() && at > self.until,
            None => at > self.until,
        }
    }

    /// Whether it has expired unused.
    pub fn is_too_late(&self, at: Timestamp) -> bool {
        self.nonce.is_none() && at > self.until
    }
}

/// A node in whose place another one comes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replaced {
    /// The node that goes.
    pub node: u64,
    /// What it is called; who comes is called so afterwards. Empty: each keeps its name.
    pub name: String,
    /// Whether it had a vote, so that who comes gets one.
    pub votes: bool,
    /// Whether it stays, as a learner.
    pub stays: bool,
    /// Whether it goes although it is reachable.
    pub though_reachable: bool,
}

/// A partition. The row stays when the partition goes, so that its id is not handed out again. The
/// default one has a row once it was given routes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PartitionRow {
    /// Its name, which another one may get once it is deleted.
    pub name: PartitionName,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was deleted; `None`: it is there.
    pub deleted_at: Option<Timestamp>,
    /// Which requests are its own.
    pub routing: Routing,
}

/// Which requests are a partition's own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Routing {
    /// Its routes now.
    pub routes: Routes,
    /// How often they were changed. A write that was routed before the last change is refused.
    pub changes: u32,
}

/// The next ids to hand out. They only rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Next [`ProviderId`].
    pub provider: u32,
    /// Next [`ResourceClassId`].
    pub resource_class: u32,
    /// Next [`TraitId`].
    pub trait_: u32,
    /// How many rehearsed commands there were.
    #[cfg(feature = "rehearsal")]
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rehearsals: u32,
}

/// A new field is not written while it has its default, so that rows of earlier levels, and with
/// them the digest, are as earlier versions know them.
#[cfg(feature = "rehearsal")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
