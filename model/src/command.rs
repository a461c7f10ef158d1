//! The commands of the model. Their syntax is already checked; [`mod@crate::apply`] checks them
//! against the state.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::level::Level;
use crate::state::change::{InventoryRow, NameRow, Replaced};
use crate::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Generation, Given, Hold, HoldTerm, Inventory,
    Limits, PartitionId, PartitionName, ProjectId, ProviderName, ProviderUuid, ResourceClassName,
    Routes, Timestamp, TraitName, UserId,
};
pub use crate::types::{Filled, WriteId};

/// A command as stored in the Raft log. All nondeterministic values, such as the time, are already
/// chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// Time at which the leader proposed the command.
    pub at: Timestamp,
    /// Identifies the write, to recognize a retry. `None` for commands of the leader itself, which
    /// are never retried.
    pub write_id: Option<WriteId>,
    /// The change to apply.
    pub command: Command,
    /// The partition of the command. Commands for the whole cluster belong to the default one.
    pub partition: PartitionId,
    /// Number of route changes of the partition at the time when the request was routed
    /// ([`Destination`](crate::types::Destination)).
    pub routes: u32,
    /// The id of the client's request. Only the ledger uses it.
    pub request_id: Option<Uuid>,
}

/// Passes the names of all commands to a macro.
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
            Claim,
            RenewHold,
            ExpireHolds,
            ReplaceLimits,
            #[cfg(feature = "rehearsal")]
            Rehearse,
        }
    };
}
pub(crate) use each_command;

macro_rules! commands {
    ($($(#[$only:meta])* $name:ident,)*) => {
        /// A requested change. Written to the log as a map from the variant's name to its fields,
        /// so variants are append only.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "each variant is the struct of its name")]
        pub enum Command {
            $($(#[$only])* $name($name),)*
        }

        impl Command {
            /// The name of the command, for logs and metrics.
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
    /// Whether the command may increase the size of the state. A cluster whose disks are nearly
    /// full accepts only commands that do not.
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
            | Self::DeletePartition(_)
            | Self::RenewHold(_)
            | Self::ExpireHolds(_) => false,
            Self::ReplaceAllocations(ReplaceAllocations { consumers }) => {
                (consumers.iter()).any(|consumer| !consumer.allocations.is_empty())
            }
            _ => true,
        }
    }

    /// Whether the command concerns the whole cluster instead of a single partition.
    pub fn is_cluster_wide(&self) -> bool {
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

    /// The feature level that the command requires. No node proposes it below that level.
    pub fn level(&self) -> Level {
        match self {
            #[cfg(feature = "rehearsal")]
            Self::Rehearse(_) => Level::REHEARSED,
            _ => Level::FIRST,
        }
    }
}

/// Ensures that the standard resource classes and traits of the proposing binary exist. The lists
/// travel in the log, so that two versions of the binary agree on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncStandards {
    /// Standard resource classes, in the order of os-resource-classes.
    pub resource_classes: Vec<ResourceClassName>,
    /// Standard traits of os-traits.
    pub traits: BTreeSet<TraitName>,
}

/// `POST /resource_providers`: creates a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateProvider {
    /// The UUID, chosen by the client or else by the node that received the request.
    pub uuid: ProviderUuid,
    /// The name, unique within the partition.
    pub name: ProviderName,
    /// The parent; `None` creates a root.
    pub parent: Option<Given<ProviderUuid>>,
}

/// `PUT /resource_providers/{uuid}`. Does not raise the generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateProvider {
    /// The UUID of the provider.
    pub uuid: ProviderUuid,
    /// The new name of the provider.
    pub name: ProviderName,
    /// The change of the parent.
    pub parent: ParentUpdate,
    /// Whether an existing parent may be changed or removed (microversion 1.37 and later).
    pub may_reparent: bool,
}

/// `DELETE /resource_providers/{uuid}`: deletes a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteProvider {
    /// The UUID of the provider.
    pub uuid: ProviderUuid,
}

/// `PUT /resource_providers/{uuid}/inventories`: replaces the whole set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaceInventories {
    /// The UUID of the provider.
    pub provider: ProviderUuid,
    /// The generation that the client last saw.
    pub generation: Generation,
    /// The new inventories, which replace all existing ones.
    pub inventories: BTreeMap<Given<ResourceClassName>, Inventory>,
    /// The condition on the capacity, which depends on the microversion.
    pub capacity_rule: CapacityRule,
}

/// `POST /resource_providers/{uuid}/inventories`: adds an inventory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateInventory {
    /// The UUID of the provider.
    pub provider: ProviderUuid,
    /// The class, which must not have an inventory there yet.
    pub resource_class: Given<ResourceClassName>,
    /// The inventory record to write.
    pub inventory: Inventory,
    /// The condition on the capacity, which depends on the microversion.
    pub capacity_rule: CapacityRule,
}

/// `PUT /resource_providers/{uuid}/inventories/{class}`: replaces an inventory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateInventory {
    /// The UUID of the provider.
    pub provider: ProviderUuid,
    /// The generation that the client last saw.
    pub generation: Generation,
    /// The class, which must have an inventory there.
    pub resource_class: Given<ResourceClassName>,
    /// The inventory record to write.
    pub inventory: Inventory,
    /// The condition on the capacity, which depends on the microversion.
    pub capacity_rule: CapacityRule,
}

/// `DELETE /resource_providers/{uuid}/inventories/{class}`: deletes an inventory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteInventory {
    /// The UUID of the provider.
    pub provider: ProviderUuid,
    /// The class of the inventory.
    pub resource_class: Given<ResourceClassName>,
}

/// `DELETE /resource_providers/{uuid}/inventories`: deletes all inventories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteInventories {
    /// The UUID of the provider.
    pub provider: ProviderUuid,
}

/// `PUT /resource_providers/{uuid}/traits`: replaces the whole set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaceProviderTraits {
    /// The UUID of the provider.
    pub provider: ProviderUuid,
    /// The generation that the client last saw.
    pub generation: Generation,
    /// The new traits, which replace all existing ones.
    pub traits: BTreeSet<Given<TraitName>>,
}

/// `DELETE /resource_providers/{uuid}/traits`: removes all traits from a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteProviderTraits {
    /// The UUID of the provider.
    pub provider: ProviderUuid,
}

/// `PUT /resource_providers/{uuid}/aggregates`: replaces the whole set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaceProviderAggregates {
    /// The UUID of the provider.
    pub provider: ProviderUuid,
    /// The generation that the client last saw. From microversion 1.19 on, it is checked, and the
    /// provider's generation always rises. Before 1.19 it is `None`: the generation is neither
    /// checked nor raised.
    pub generation: Option<Generation>,
    /// The new aggregates, which replace all existing ones.
    pub aggregates: BTreeSet<AggregateUuid>,
}

/// `PUT /traits/{name}`: creates a custom trait, unless it exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnsureTrait {
    /// The name of the trait.
    pub name: TraitName,
}

/// `DELETE /traits/{name}`: deletes a custom trait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteTrait {
    /// The name of the trait.
    pub name: TraitName,
}

/// `POST /resource_classes`: creates a custom class. Refused if the class exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateResourceClass {
    /// The name of the class.
    pub name: ResourceClassName,
}

/// `PUT /resource_classes/{name}` from 1.7 on: creates a custom class, unless it exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnsureResourceClass {
    /// The name of the class.
    pub name: ResourceClassName,
}

/// `PUT /resource_classes/{name}` from 1.2 to 1.6: renames a custom class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RenameResourceClass {
    /// The current name of the class. Inventories and allocations keep referring to the class.
    pub name: ResourceClassName,
    /// The new name of the class.
    pub new_name: ResourceClassName,
}

/// `DELETE /resource_classes/{name}`: deletes a custom class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteResourceClass {
    /// The name of the class.
    pub name: ResourceClassName,
}

/// `PUT /allocations/{consumer}` and `POST /allocations`: all or nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaceAllocations {
    /// The consumers in the order of the request, since the client receives the first refusal.
    pub consumers: Vec<ConsumerAllocations>,
}

/// `DELETE /allocations/{consumer}`: releases all allocations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteAllocations {
    /// The UUID of the consumer.
    pub consumer: ConsumerUuid,
}

/// `POST /reshaper`: moves inventories and allocations in one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reshape {
    /// The providers in the order of the request.
    pub inventories: Vec<ReshapedInventories>,
    /// The consumers in the order of the request.
    pub allocations: Vec<ConsumerAllocations>,
}

/// Removes a node from the cluster. Its later commands are not applied, and its number is never
/// reused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetireNode {
    /// The node's number, which is the `origin` of its write ids.
    pub node: u64,
}

/// Raises the feature level of the cluster, once every member supports it. The level never falls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RaiseLevel {
    /// The level after the command.
    pub to: Level,
}

/// Reserves the next node number for a joining node, which authenticates by a token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IssueJoinToken {
    /// The hash of the token, so that the log does not disclose the token. Identifies the row.
    pub token: String,
    /// Validity of the token in seconds.
    pub seconds: u64,
    /// The highest node number known to the leader, including nodes that have never written.
    pub above: u64,
    /// The node to be replaced by the joining node.
    pub replaces: Option<Replaced>,
    /// Expiry time by the clock of the issuing leader.
    pub expires_at: Timestamp,
}

/// Revokes a token that no node has used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevokeJoinToken {
    /// The node number of the token.
    pub node: u64,
}

/// Redeems the token of a joining node. If it succeeded, the row contains the node's nonce
/// afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedeemJoinToken {
    /// The node number of the token.
    pub node: u64,
    /// The hash of the token.
    pub token: String,
    /// The hash of the nonce, which distinguishes nodes that use the same token.
    pub nonce: String,
}

/// Registers that a member replaces another one. The leader performs the replacement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetReplacement {
    /// The number of the replacing node.
    pub by: u64,
    /// The node to be replaced; `None` once the replacement is completed or cancelled.
    pub replaces: Option<Replaced>,
}

/// Creates a partition with the standard resource classes and traits of the default one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreatePartition {
    /// The name. Refused if a partition of this name exists.
    pub name: PartitionName,
    /// The routes that lead requests to the partition.
    pub routes: Routes,
}

/// Replaces the routes of a partition. The default partition accepts only hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoutePartition {
    /// The name of the partition.
    pub name: PartitionName,
    /// The routes that lead requests to the partition.
    pub routes: Routes,
}

/// Deletes a partition with all its content. The id is never reused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeletePartition {
    /// The name of the partition.
    pub name: PartitionName,
    /// Whether to delete the partition even if consumers hold allocations in it.
    pub force: bool,
}

/// Imports rows of another cluster into a partition that no client uses yet. Generations and
/// timestamps are imported unchanged. Rows that no client could have written are accepted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FillPartition {
    /// The number of rows imported by earlier commands. Refused if the partition has other rows.
    pub after: Filled,
    /// Resource classes in the order of their ids. Existing classes, such as standard ones, get the
    /// imported timestamp.
    pub resource_classes: Vec<NameRow<ResourceClassName>>,
    /// Traits in the order of their ids. Existing traits get the imported timestamp.
    pub traits: Vec<NameRow<TraitName>>,
    /// Providers in the order of their ids.
    pub providers: Vec<FilledProvider>,
    /// Pairs (child, parent) for parents that are imported after their child. The child is a root
    /// until this command sets its parent.
    pub parents: Vec<(ProviderUuid, ProviderUuid)>,
    /// Consumers with their allocations.
    pub consumers: Vec<FilledConsumer>,
}

impl FillPartition {
    /// The number of imported rows after this command.
    pub fn rows_after(&self) -> Filled {
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

/// A provider to import, with inventories, traits and aggregates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilledProvider {
    /// The UUID of the provider.
    pub uuid: ProviderUuid,
    /// The name, unique within the partition.
    pub name: ProviderName,
    /// The generation in the other cluster, imported unchanged.
    pub generation: Generation,
    /// The parent, if it is imported before this provider. [`FillPartition::parents`] sets later
    /// ones.
    pub parent: Option<ProviderUuid>,
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Time of the last update.
    pub updated_at: Timestamp,
    /// The inventories by class.
    pub inventories: BTreeMap<ResourceClassName, InventoryRow>,
    /// The traits of the provider itself.
    pub traits: BTreeSet<TraitName>,
    /// The aggregates that the provider is a member of.
    pub aggregates: BTreeSet<AggregateUuid>,
}

/// A consumer to import.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilledConsumer {
    /// The UUID of the consumer.
    pub uuid: ConsumerUuid,
    /// The generation in the other cluster, imported unchanged.
    pub generation: Generation,
    /// The project that owns the allocations.
    pub project: ProjectId,
    /// The user that owns the allocations.
    pub user: UserId,
    /// The consumer type; `None` is shown as `unknown`.
    pub consumer_type: Option<ConsumerTypeName>,
    /// The allocated units by provider and class.
    pub allocations: BTreeMap<ProviderUuid, BTreeMap<ResourceClassName, u64>>,
    /// Time of the last write to the allocations.
    pub updated_at: Timestamp,
    /// Makes the allocations a hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Box<Hold>>,
}

/// `POST /placementd/v1/claims`: replaces the allocations of all claimants by the first choice that
/// is acceptable, all or nothing. Repeating the claim changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The consumers, each once.
    pub claimants: Vec<Claimant>,
    /// The choices in order of preference. A choice has an entry for each claimant, in the same
    /// order: its allocations, each provider at most once.
    pub choices: Vec<Vec<Vec<ProviderAmounts>>>,
    /// Upper limits of usage, in the order of the request.
    #[serde(default)]
    pub ceilings: Vec<Ceiling>,
    /// Conditions on the trees of groups, in the order of the request.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// Makes the allocations of all claimants a hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<NewHold>,
}

/// The hold that a claim makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewHold {
    /// The consumers for whose allocations the room is kept. No claimant is among them.
    pub kept_for: BTreeSet<ConsumerUuid>,
    /// The end of the hold.
    pub term: HoldTerm,
}

/// `PUT /placementd/v1/holds/{consumer}`: changes the end of a hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewHold {
    /// The consumer that has the hold.
    pub consumer: ConsumerUuid,
    /// The new end of the hold.
    pub term: HoldTerm,
}

/// Ends the holds whose leases are over at the timestamp of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpireHolds {}

impl ExpireHolds {
    /// Maximum number of holds that one command ends, so that other writes wait little.
    pub const MOST: usize = 100;
}

/// `PUT /placementd/v1/limits`: replaces the limits of all projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaceLimits {
    /// The generation that the client last saw; 0 if no limits were ever put.
    pub generation: Generation,
    /// The new limits, which replace all existing ones.
    pub limits: Limits,
}

/// A consumer of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimant {
    /// The UUID of the consumer.
    pub consumer: ConsumerUuid,
    /// The project that owns the allocations.
    pub project: ProjectId,
    /// The user that owns the allocations.
    pub user: UserId,
    /// The change of the consumer type.
    pub consumer_type: ConsumerTypeUpdate,
    /// The consumer generation that the client expects.
    pub generation: ConsumerGeneration,
}

/// An upper limit of the usage of some projects. A claim that does not increase this usage is
/// accepted even above the limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The projects, whose usage is added up.
    pub projects: BTreeSet<ProjectId>,
    /// The consumer types to count, of which `None` is the type of consumers without one. `None`
    /// counts all consumers.
    #[serde(default)]
    pub types: Option<BTreeSet<Option<ConsumerTypeName>>>,
    /// Units of a class, or consumers.
    pub of: Counted,
    /// The highest usage after the claim.
    pub limit: u64,
}

/// The quantity that a ceiling limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Counted {
    /// Units of a resource class.
    Units(Given<ResourceClassName>),
    /// The number of consumers with allocations.
    Consumers,
}

/// A condition on the trees in which consumers have allocations. Allocations on sharing providers
/// are ignored. A group without a claimant is not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The members. Members without allocations are ignored.
    pub members: BTreeSet<ConsumerUuid>,
    /// The condition on their trees.
    pub rule: GroupRule,
}

/// The condition of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupRule {
    /// No tree of a claimant of the group has more members than this.
    Apart {
        /// The highest number of members in a tree.
        most: u32,
    },
    /// All members are in one tree.
    Together,
}

/// Replaces [`EnsureTrait`] for some traits in a binary that rehearses an upgrade.
#[cfg(feature = "rehearsal")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rehearse {
    /// The name of the trait.
    pub name: TraitName,
}

#[cfg(feature = "rehearsal")]
impl Command {
    /// Returns the command that replaces this one at [`Level::REHEARSED`].
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

/// The effect of `PUT /resource_providers/{uuid}` on the parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParentUpdate {
    /// Keeps the parent: the body does not contain it, or the microversion is below 1.14.
    Keep,
    /// Removes the parent: the body contains `null`.
    Clear,
    /// Sets this provider as the parent.
    Set(Given<ProviderUuid>),
}

/// The condition on the capacity of an inventory, truncated to whole units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CapacityRule {
    /// Below 1.26: the capacity must be positive.
    Positive,
    /// From 1.26 on: the capacity may be 0, so all units may be reserved.
    NotNegative,
}

/// The new allocations of one consumer, which replace all existing ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerAllocations {
    /// The UUID of the consumer.
    pub consumer: ConsumerUuid,
    /// The allocations in the order of the request, each provider at most once. An empty list
    /// releases all allocations.
    pub allocations: Vec<ProviderAmounts>,
    /// The project that owns the allocations. Below 1.8 the edge fills in the nil UUID.
    pub project: ProjectId,
    /// The user that owns the allocations. Below 1.8 the edge fills in the nil UUID.
    pub user: UserId,
    /// The consumer generation that the client expects.
    pub generation: ConsumerGeneration,
    /// The change of the consumer type.
    pub consumer_type: ConsumerTypeUpdate,
}

/// The allocation of one consumer on one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAmounts {
    /// The UUID of the provider.
    pub provider: Given<ProviderUuid>,
    /// Units per class, at least 1 each.
    pub resources: BTreeMap<Given<ResourceClassName>, u64>,
}

/// The consumer generation that a client expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConsumerGeneration {
    /// Not checked, below 1.28.
    Unchecked,
    /// The consumer must not exist: the body contains `null`.
    New,
    /// The consumer must have this generation.
    Expect(Generation),
}

/// The effect of a write on the consumer type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConsumerTypeUpdate {
    /// Below 1.38: an existing consumer keeps its type, and a new one has no type (shown as
    /// `unknown`).
    Keep,
    /// Sets the type, from 1.38 on.
    Set(ConsumerTypeName),
}

/// The inventories of a provider after a reshape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReshapedInventories {
    /// The UUID of the provider.
    pub provider: Given<ProviderUuid>,
    /// The generation that the client last saw.
    pub generation: Generation,
    /// The new inventories, which replace all existing ones.
    pub inventories: BTreeMap<Given<ResourceClassName>, Inventory>,
}
