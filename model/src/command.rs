//! What can be asked of the model. Form is already checked; facts are checked in
//! [`mod@crate::apply`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::level::Level;
use crate::state::change::{InventoryRow, NameRow, Replaced};
use crate::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Generation, Given, Inventory, PartitionId,
    PartitionName, ProjectId, ProviderName, ProviderUuid, ResourceClassName, Routes, Timestamp,
    TraitName, UserId,
};
pub use crate::types::{Filled, WriteId};

/// A command with everything uncertain settled, as it stands in the Raft log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// When the leader proposed it.
    pub at: Timestamp,
    /// Who sent it, so that a retry is recognised. `None`: from the leader itself, never retried.
    pub write_id: Option<WriteId>,
    /// What to do.
    pub command: Command,
    /// In which partition. Commands for the whole cluster are in the default one.
    pub partition: PartitionId,
    /// How often the routes of that partition had changed when the request was routed to it
    /// ([`Destination`](crate::types::Destination)).
    pub routes: u32,
    /// The request that it comes from, for the ledger alone: from [`Level::REQUEST_IDS`] on.
    pub request_id: Option<Uuid>,
}

/// Hands the names of all commands to a macro.
macro_rules! each_command {
    ($of:ident) => {
        $of! {
            SyncStandards,
            CreateProvider,
            UpdateProvider,
            DeleteProvider,
            ReplaceInventories,
            CreateInventory,
            UpdateInventory,
            DeleteInventory,
            DeleteInventories,
            ReplaceProviderTraits,
            DeleteProviderTraits,
            ReplaceProviderAggregates,
            EnsureTrait,
            DeleteTrait,
            CreateResourceClass,
            EnsureResourceClass,
            RenameResourceClass,
            DeleteResourceClass,
            ReplaceAllocations,
            DeleteAllocations,
            Reshape,
            RetireNode,
            RaiseLevel,
            IssueJoinToken,
            RevokeJoinToken,
            RedeemJoinToken,
            SetReplacement,
            CreatePartition,
            DeletePartition,
            RoutePartition,
            FillPartition,
            #[cfg(feature = "rehearsal")]
            Rehearse,
        }
    };
}
pub(crate) use each_command;

macro_rules! commands {
    ($($(#[$only:meta])* $name:ident,)*) => {
        /// One change that somebody asks for. Written to the log as a map from the variant's name
        /// to its fields: append only.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "each variant is the struct of its name")]
        pub enum Command {
            $($(#[$only])* $name($name),)*
        }

        impl Command {
            /// The verb, for logs and metrics.
            pub fn name(&self) -> &'static str {
                match self {
                    $($(#[$only])* Self::$name(_) => stringify!($name),)*
                }
            }
        }
    };
}

each_command!(commands);

impl Command {
    /// Whether the state may need more room after it than before. What only takes away is carried
    /// out by a cluster whose disks are nearly full.
    pub fn grows(&self) -> bool {
        match self {
            Self::DeleteProvider(_)
            | Self::DeleteInventory(_)
            | Self::DeleteInventories(_)
            | Self::DeleteProviderTraits(_)
            | Self::DeleteTrait(_)
            | Self::DeleteResourceClass(_)
            | Self::DeleteAllocations(_)
            | Self::RetireNode(_)
            | Self::RaiseLevel(_)
            | Self::RevokeJoinToken(_)
            | Self::RedeemJoinToken(_)
            | Self::SetReplacement(_)
            | Self::DeletePartition(_) => false,
            Self::ReplaceAllocations(ReplaceAllocations { consumers }) => {
                (consumers.iter()).any(|consumer| !consumer.allocations.is_empty())
            }
            _ => true,
        }
    }

    /// Whether it concerns the whole cluster, and no partition alone.
    pub fn is_of_the_cluster(&self) -> bool {
        matches!(
            self,
            Self::SyncStandards(_)
                | Self::RetireNode(_)
                | Self::RaiseLevel(_)
                | Self::IssueJoinToken(_)
                | Self::RevokeJoinToken(_)
                | Self::RedeemJoinToken(_)
                | Self::SetReplacement(_)
                | Self::CreatePartition(_)
                | Self::DeletePartition(_)
                | Self::RoutePartition(_)
        )
    }

    /// The feature level from which on the command exists: below, no node proposes it.
    pub fn level(&self) -> Level {
        match self {
            #[cfg(feature = "rehearsal")]
            Self::Rehearse(_) => Level::REHEARSED,
            Self::FillPartition(_) => Level::FILLS,
            _ => Level::FIRST,
        }
    }
}

/// Makes sure that the standard resource classes and traits of the proposing binary exist.
/// The lists travel in the log, so that two versions of the binary agree on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncStandards {
    /// Standard resource classes, in the order of os-resource-classes.
    pub resource_classes: Vec<ResourceClassName>,
    /// Standard traits of os-traits.
    pub traits: BTreeSet<TraitName>,
}

/// `POST /resource_providers`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateProvider {
    /// Chosen by the client or, if it gave none, by the node it spoke to.
    pub uuid: ProviderUuid,
    /// Unique in the cloud.
    pub name: ProviderName,
    /// `None` makes a root.
    pub parent: Option<Given<ProviderUuid>>,
}

/// `PUT /resource_providers/{uuid}`. Does not raise the generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateProvider {
    /// The provider.
    pub uuid: ProviderUuid,
    /// Its new name.
    pub name: ProviderName,
    /// Its new place.
    pub parent: ParentUpdate,
    /// From 1.37 a provider may leave its parent or change it; before, only get a first one.
    pub may_reparent: bool,
}

/// `DELETE /resource_providers/{uuid}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteProvider {
    /// The provider.
    pub uuid: ProviderUuid,
}

/// `PUT /resource_providers/{uuid}/inventories`: replaces the whole set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaceInventories {
    /// The provider.
    pub provider: ProviderUuid,
    /// What the client last saw.
    pub generation: Generation,
    /// The new set.
    pub inventories: BTreeMap<Given<ResourceClassName>, Inventory>,
    /// See [`CapacityRule`].
    pub capacity_rule: CapacityRule,
}

/// `POST /resource_providers/{uuid}/inventories`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateInventory {
    /// The provider.
    pub provider: ProviderUuid,
    /// The class, which must not have an inventory there yet.
    pub resource_class: Given<ResourceClassName>,
    /// The record.
    pub inventory: Inventory,
    /// See [`CapacityRule`].
    pub capacity_rule: CapacityRule,
}

/// `PUT /resource_providers/{uuid}/inventories/{class}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateInventory {
    /// The provider.
    pub provider: ProviderUuid,
    /// What the client last saw.
    pub generation: Generation,
    /// The class, which must have an inventory there.
    pub resource_class: Given<ResourceClassName>,
    /// The record.
    pub inventory: Inventory,
    /// See [`CapacityRule`].
    pub capacity_rule: CapacityRule,
}

/// `DELETE /resource_providers/{uuid}/inventories/{class}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteInventory {
    /// The provider.
    pub provider: ProviderUuid,
    /// The class.
    pub resource_class: Given<ResourceClassName>,
}

/// `DELETE /resource_providers/{uuid}/inventories`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteInventories {
    /// The provider.
    pub provider: ProviderUuid,
}

/// `PUT /resource_providers/{uuid}/traits`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaceProviderTraits {
    /// The provider.
    pub provider: ProviderUuid,
    /// What the client last saw.
    pub generation: Generation,
    /// The new set.
    pub traits: BTreeSet<Given<TraitName>>,
}

/// `DELETE /resource_providers/{uuid}/traits`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteProviderTraits {
    /// The provider.
    pub provider: ProviderUuid,
}

/// `PUT /resource_providers/{uuid}/aggregates`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaceProviderAggregates {
    /// The provider.
    pub provider: ProviderUuid,
    /// `Some` from 1.19: checked and always raised. `None`: neither.
    pub generation: Option<Generation>,
    /// The new set.
    pub aggregates: BTreeSet<AggregateUuid>,
}

/// `PUT /traits/{name}`: makes a custom trait, unless it exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnsureTrait {
    /// The trait.
    pub name: TraitName,
}

/// `DELETE /traits/{name}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteTrait {
    /// The trait.
    pub name: TraitName,
}

/// `POST /resource_classes`: refused if it exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateResourceClass {
    /// The class.
    pub name: ResourceClassName,
}

/// `PUT /resource_classes/{name}` from 1.7: makes a custom class, unless it exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnsureResourceClass {
    /// The class.
    pub name: ResourceClassName,
}

/// `PUT /resource_classes/{name}` of 1.2 to 1.6.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RenameResourceClass {
    /// The class, which allocations and inventories follow to its new name.
    pub name: ResourceClassName,
    /// Its new name.
    pub new_name: ResourceClassName,
}

/// `DELETE /resource_classes/{name}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteResourceClass {
    /// The class.
    pub name: ResourceClassName,
}

/// `PUT /allocations/{consumer}` and `POST /allocations`: all or nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaceAllocations {
    /// In the order of the request, as the client gets the first refusal.
    pub consumers: Vec<ConsumerAllocations>,
}

/// `DELETE /allocations/{consumer}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteAllocations {
    /// The consumer.
    pub consumer: ConsumerUuid,
}

/// `POST /reshaper`: inventories and allocations moved in one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reshape {
    /// In the order of the request.
    pub inventories: Vec<ReshapedInventories>,
    /// In the order of the request.
    pub allocations: Vec<ConsumerAllocations>,
}

/// Removal of a node from the cluster: what it may still send is not carried out, and its number is
/// not given again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetireNode {
    /// The node's number: the `origin` of its requests.
    pub node: u64,
}

/// Raises the feature level of the cluster, once every member knows it. It never falls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RaiseLevel {
    /// The level.
    pub to: Level,
}

/// Gives the next number to a node that is to join, and lets in who has the token for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IssueJoinToken {
    /// The hash of the token, so that the log does not disclose the token. It identifies this row.
    pub token: String,
    /// For how long it is good.
    pub seconds: u64,
    /// The highest number that the leader knows, as of nodes that have never written.
    pub above: u64,
    /// In whose place the node comes.
    pub replaces: Option<Replaced>,
    /// When it ends by the clock of the leader that issues it.
    pub expires_at: Timestamp,
}

/// Revokes a token that no node has used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevokeJoinToken {
    /// The number that it was given out with.
    pub node: u64,
}

/// A node comes with its token. Whether it is let in, the row says afterwards: it has the nonce.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedeemJoinToken {
    /// The number that the token was given out with.
    pub node: u64,
    /// The hash of the token.
    pub token: String,
    /// The hash of what tells this node from others with the same token.
    pub nonce: String,
}

/// A member is to take the place of another one; the leader at that time carries it through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetReplacement {
    /// Who comes.
    pub by: u64,
    /// Who goes; `None`: it is done, or given up.
    pub replaces: Option<Replaced>,
}

/// Makes a partition, with the standard resource classes and traits that the default one has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreatePartition {
    /// What it is called. Refused if there is one of this name.
    pub name: PartitionName,
    /// Which requests are its own.
    pub routes: Routes,
}

/// Gives a partition these routes in place of those that it has. The default one is given hosts
/// only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoutePartition {
    /// What it is called.
    pub name: PartitionName,
    /// Which requests are its own.
    pub routes: Routes,
}

/// Deletes a partition with all that is in it. Its id is not given again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeletePartition {
    /// What it is called.
    pub name: PartitionName,
    /// Whether it goes although consumers hold something in it.
    pub force: bool,
}

/// Puts rows of another cluster, or some of them, into a partition that no client uses yet. They
/// come as they were there: with their generations and times, and whether or not a client could
/// have written them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FillPartition {
    /// What the commands before have brought. Refused if the partition has other rows.
    pub after: Filled,
    /// In the order of their ids. Those that are there, as standard ones are, get the time.
    pub resource_classes: Vec<NameRow<ResourceClassName>>,
    /// Likewise.
    pub traits: Vec<NameRow<TraitName>>,
    /// In the order of their ids.
    pub providers: Vec<FilledProvider>,
    /// Children and their parents that are younger than they. The children are roots until then.
    pub parents: Vec<(ProviderUuid, ProviderUuid)>,
    /// Consumers with what they hold.
    pub consumers: Vec<FilledConsumer>,
}

impl FillPartition {
    /// What the partition has when this is carried out.
    pub fn then(&self) -> Filled {
        Filled {
            providers: self
                .after
                .providers
                .saturating_add(self.providers.len() as u64),
            consumers: self
                .after
                .consumers
                .saturating_add(self.consumers.len() as u64),
        }
    }
}

/// A new provider with all that belongs to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilledProvider {
    /// Its UUID.
    pub uuid: ProviderUuid,
    /// Its name.
    pub name: ProviderName,
    /// Its generation.
    pub generation: Generation,
    /// Its parent, if that comes before it.
    pub parent: Option<ProviderUuid>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last updated.
    pub updated_at: Timestamp,
    /// What it has.
    pub inventories: BTreeMap<ResourceClassName, InventoryRow>,
    /// Its traits.
    pub traits: BTreeSet<TraitName>,
    /// Its aggregates.
    pub aggregates: BTreeSet<AggregateUuid>,
}

/// A new consumer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilledConsumer {
    /// Its UUID.
    pub uuid: ConsumerUuid,
    /// Its generation.
    pub generation: Generation,
    /// Who is charged.
    pub project: ProjectId,
    /// Who is charged.
    pub user: UserId,
    /// Its type; `None` is shown as `unknown`.
    pub consumer_type: Option<ConsumerTypeName>,
    /// What it holds, in units by provider and class.
    pub allocations: BTreeMap<ProviderUuid, BTreeMap<ResourceClassName, u64>>,
    /// When the allocations were written.
    pub updated_at: Timestamp,
}

/// What a binary that rehearses an upgrade makes some traits by, instead of [`EnsureTrait`].
#[cfg(feature = "rehearsal")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rehearse {
    /// The trait.
    pub name: TraitName,
}

#[cfg(feature = "rehearsal")]
impl Command {
    /// The command by which this version does what earlier ones do by another.
    #[must_use]
    pub fn rehearsed(self) -> Self {
        match self {
            Self::EnsureTrait(EnsureTrait { name }) if name.as_str() == "CUSTOM_REHEARSAL" => {
                Self::Rehearse(Rehearse { name })
            }
            command => command,
        }
    }
}

impl fmt::Display for Stamped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.command.name())?;
        if !self.partition.is_default() {
            write!(f, " in partition {}", self.partition)?;
        }
        match &self.write_id {
            Some(id) => write!(
                f,
                " of node {}, boot {}, write {}",
                id.origin, id.boot, id.sequence
            ),
            None => Ok(()),
        }
    }
}

/// What `PUT /resource_providers/{uuid}` does to the parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParentUpdate {
    /// Not mentioned, or a version below 1.14.
    Keep,
    /// `null`.
    Clear,
    /// This provider.
    Set(Given<ProviderUuid>),
}

/// Which capacities an inventory may have, judged on the truncated value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CapacityRule {
    /// Below 1.26: `reserved` must leave something.
    Positive,
    /// From 1.26: everything may be reserved.
    NotNegative,
}

/// One consumer's new allocations; they replace all it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerAllocations {
    /// The consumer.
    pub consumer: ConsumerUuid,
    /// In the order of the request, each provider at most once. Empty: the consumer gives back all.
    pub allocations: Vec<ProviderAmounts>,
    /// The project to be charged; below 1.8 the edge fills in the nil UUID.
    pub project: ProjectId,
    /// The user to be charged; below 1.8 the edge fills in the nil UUID.
    pub user: UserId,
    /// What the client believes about the consumer.
    pub generation: ConsumerGeneration,
    /// What becomes of the consumer's type.
    pub consumer_type: ConsumerTypeUpdate,
}

/// What one consumer takes from one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAmounts {
    /// The provider.
    pub provider: Given<ProviderUuid>,
    /// Units per class, at least 1 each.
    pub resources: BTreeMap<Given<ResourceClassName>, u64>,
}

/// What a client believes about a consumer's generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConsumerGeneration {
    /// Below 1.28: not asked.
    Unchecked,
    /// `null`: there is no such consumer yet.
    New,
    /// This generation.
    Expect(Generation),
}

/// What a write does to a consumer's type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConsumerTypeUpdate {
    /// Below 1.38: an existing consumer keeps its type, a new one has none (shown as `unknown`).
    Keep,
    /// From 1.38.
    Set(ConsumerTypeName),
}

/// The inventories a provider has after a reshape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReshapedInventories {
    /// The provider.
    pub provider: Given<ProviderUuid>,
    /// What the client last saw.
    pub generation: Generation,
    /// The new set.
    pub inventories: BTreeMap<Given<ResourceClassName>, Inventory>,
}
