//! What can be asked of the model. Form is already checked; facts are checked in [`mod@crate::apply`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Generation, GivenUuid, Inventory, ProjectId,
    ProviderName, ProviderUuid, ResourceClassName, Timestamp, TraitName, UserId,
};

/// A command with everything uncertain settled, as it stands in the Raft log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// When the leader proposed it.
    pub at: Timestamp,
    /// Who sent it, so that a retry is recognised. `None`: from the leader itself, never retried.
    pub request: Option<RequestId>,
    /// What to do.
    pub command: Command,
}

/// Names one write of one node, however often it is sent: a forwarded write happens exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId {
    /// The node that the client spoke to.
    pub origin: u64,
    /// Which start of that node: rises with every start.
    pub boot: u64,
    /// Rises by one with every write of this boot.
    pub sequence: u64,
    /// Every write of this boot below this sequence has been answered and is never sent again,
    /// so its outcome need not be remembered.
    pub answered_below: u64,
}

/// One change that a client asks for. Variants are written to the log: append only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Makes sure that the standard resource classes and traits of the proposing binary exist.
    /// The lists travel in the log, so that two versions of the binary agree on them.
    SyncStandards {
        /// Standard resource classes, in the order of os-resource-classes.
        resource_classes: Vec<ResourceClassName>,
        /// Standard traits of os-traits.
        traits: BTreeSet<TraitName>,
    },
    /// `POST /resource_providers`.
    CreateProvider {
        /// Chosen by the client or, if it gave none, by the node it spoke to.
        uuid: ProviderUuid,
        /// Unique in the cloud.
        name: ProviderName,
        /// `None` makes a root. Text that is not canonical names nobody.
        parent: Option<GivenUuid>,
    },
    /// `PUT /resource_providers/{uuid}`. Does not raise the generation.
    UpdateProvider {
        /// The provider.
        uuid: ProviderUuid,
        /// Its new name.
        name: ProviderName,
        /// Its new place.
        parent: ParentUpdate,
        /// From 1.37 a provider may leave its parent or change it; before, only get a first one.
        may_reparent: bool,
    },
    /// `DELETE /resource_providers/{uuid}`.
    DeleteProvider {
        /// The provider.
        uuid: ProviderUuid,
    },
    /// `PUT /resource_providers/{uuid}/inventories`: replaces the whole set.
    ReplaceInventories {
        /// The provider.
        provider: ProviderUuid,
        /// What the client last saw.
        generation: Generation,
        /// The new set.
        inventories: BTreeMap<ResourceClassName, Inventory>,
        /// See [`CapacityRule`].
        capacity_rule: CapacityRule,
    },
    /// `POST /resource_providers/{uuid}/inventories`.
    CreateInventory {
        /// The provider.
        provider: ProviderUuid,
        /// The class, which must not have an inventory there yet.
        resource_class: ResourceClassName,
        /// The record.
        inventory: Inventory,
        /// See [`CapacityRule`].
        capacity_rule: CapacityRule,
    },
    /// `PUT /resource_providers/{uuid}/inventories/{class}`.
    UpdateInventory {
        /// The provider.
        provider: ProviderUuid,
        /// What the client last saw.
        generation: Generation,
        /// The class, which must have an inventory there.
        resource_class: ResourceClassName,
        /// The record.
        inventory: Inventory,
        /// See [`CapacityRule`].
        capacity_rule: CapacityRule,
    },
    /// `DELETE /resource_providers/{uuid}/inventories/{class}`.
    DeleteInventory {
        /// The provider.
        provider: ProviderUuid,
        /// The class.
        resource_class: ResourceClassName,
    },
    /// `DELETE /resource_providers/{uuid}/inventories`.
    DeleteInventories {
        /// The provider.
        provider: ProviderUuid,
    },
    /// `PUT /resource_providers/{uuid}/traits`.
    SetProviderTraits {
        /// The provider.
        provider: ProviderUuid,
        /// What the client last saw.
        generation: Generation,
        /// The new set.
        traits: BTreeSet<TraitName>,
    },
    /// `DELETE /resource_providers/{uuid}/traits`.
    ClearProviderTraits {
        /// The provider.
        provider: ProviderUuid,
    },
    /// `PUT /resource_providers/{uuid}/aggregates`.
    SetProviderAggregates {
        /// The provider.
        provider: ProviderUuid,
        /// `Some` from 1.19: checked and always raised. `None`: neither.
        generation: Option<Generation>,
        /// The new set.
        aggregates: BTreeSet<AggregateUuid>,
    },
    /// `PUT /traits/{name}`: makes a custom trait, unless it exists.
    CreateTrait {
        /// The trait.
        name: TraitName,
    },
    /// `DELETE /traits/{name}`.
    DeleteTrait {
        /// The trait.
        name: TraitName,
    },
    /// `POST /resource_classes`: refused if it exists.
    CreateResourceClass {
        /// The class.
        name: ResourceClassName,
    },
    /// `PUT /resource_classes/{name}` from 1.7: makes a custom class, unless it exists.
    EnsureResourceClass {
        /// The class.
        name: ResourceClassName,
    },
    /// `PUT /resource_classes/{name}` of 1.2 to 1.6.
    RenameResourceClass {
        /// The class, which allocations and inventories follow to its new name.
        name: ResourceClassName,
        /// Its new name.
        new_name: ResourceClassName,
    },
    /// `DELETE /resource_classes/{name}`.
    DeleteResourceClass {
        /// The class.
        name: ResourceClassName,
    },
    /// `PUT /allocations/{consumer}` and `POST /allocations`: all or nothing.
    SetAllocations {
        /// In the order of the request, as the first wrong one is what the client hears of.
        consumers: Vec<ConsumerAllocations>,
    },
    /// `DELETE /allocations/{consumer}`.
    DeleteAllocations {
        /// The consumer.
        consumer: ConsumerUuid,
    },
    /// `POST /reshaper`: inventories and allocations moved in one step.
    Reshape {
        /// In the order of the request.
        inventories: Vec<ReshapedInventories>,
        /// In the order of the request.
        allocations: Vec<ConsumerAllocations>,
    },
}

impl Command {
    /// The verb, for logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SyncStandards { .. } => "SyncStandards",
            Self::CreateProvider { .. } => "CreateProvider",
            Self::UpdateProvider { .. } => "UpdateProvider",
            Self::DeleteProvider { .. } => "DeleteProvider",
            Self::ReplaceInventories { .. } => "ReplaceInventories",
            Self::CreateInventory { .. } => "CreateInventory",
            Self::UpdateInventory { .. } => "UpdateInventory",
            Self::DeleteInventory { .. } => "DeleteInventory",
            Self::DeleteInventories { .. } => "DeleteInventories",
            Self::SetProviderTraits { .. } => "SetProviderTraits",
            Self::ClearProviderTraits { .. } => "ClearProviderTraits",
            Self::SetProviderAggregates { .. } => "SetProviderAggregates",
            Self::CreateTrait { .. } => "CreateTrait",
            Self::DeleteTrait { .. } => "DeleteTrait",
            Self::CreateResourceClass { .. } => "CreateResourceClass",
            Self::EnsureResourceClass { .. } => "EnsureResourceClass",
            Self::RenameResourceClass { .. } => "RenameResourceClass",
            Self::DeleteResourceClass { .. } => "DeleteResourceClass",
            Self::SetAllocations { .. } => "SetAllocations",
            Self::DeleteAllocations { .. } => "DeleteAllocations",
            Self::Reshape { .. } => "Reshape",
        }
    }
}

impl fmt::Display for Stamped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.command.name())?;
        match &self.request {
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
    /// This provider, if the text names one.
    Set(GivenUuid),
}

/// Which capacities an inventory may have, judged on the truncated value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CapacityRule {
    /// Below 1.26: something must be left beside `reserved`.
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
    /// The provider as the client named it.
    pub provider: GivenUuid,
    /// Units per class, at least 1 each.
    pub resources: BTreeMap<ResourceClassName, u64>,
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
    /// The provider as the client named it.
    pub provider: GivenUuid,
    /// What the client last saw.
    pub generation: Generation,
    /// The new set.
    pub inventories: BTreeMap<ResourceClassName, Inventory>,
}
