//! What a committed command answers. A refusal is an answer too: deterministic, and the same on
//! every node. How it looks on the wire (status, code, words) is the edge's affair.

use serde::{Deserialize, Serialize};

use crate::types::{
    ConsumerUuid, Filled, Generation, Given, PartitionId, PartitionName, ProviderName,
    ProviderUuid, ResourceClassName, Route, Timestamp, TraitName,
};

/// The answer to one [`crate::Stamped`] command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// The command was carried out, whole.
    Done(Reply),
    /// The command was refused. The state is as before, but for what a [`Refusal`] says of itself.
    Refused(Refusal),
    /// A late duplicate of a write that was answered long ago; no client waits for this.
    AnsweredBefore,
}

/// What a client learns of a command that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reply {
    /// Nothing else.
    Done,
    /// The present provider (create and update).
    Provider(Provider),
    /// A provider's inventories, traits or aggregates were written.
    ProviderWritten {
        /// The provider's generation now.
        generation: Generation,
        /// When it was written.
        at: Timestamp,
    },
    /// A trait or resource class was asked for by name.
    Named {
        /// False if it existed before.
        created: bool,
        /// When it was made.
        modified: Timestamp,
    },
    /// A partition was made.
    Partition(PartitionId),
}

/// A resource provider as readers see it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Provider {
    /// Its UUID.
    pub uuid: ProviderUuid,
    /// Its name.
    pub name: ProviderName,
    /// Its generation.
    pub generation: Generation,
    /// Its parent, unless it is a root.
    pub parent: Option<ProviderUuid>,
    /// The root of its tree, perhaps itself.
    pub root: ProviderUuid,
    /// When it was created or last updated.
    pub modified: Timestamp,
}

/// Every reason for which the model refuses a command. Written to the log's replies: append only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// No provider has this UUID (in a path).
    #[error("no resource provider {0}")]
    ProviderNotFound(ProviderUuid),
    /// A body names a provider that does not exist. New consumers of the request stay behind, with
    /// generation 0, as upstream leaves them.
    #[error("allocations name an unknown resource provider {0}")]
    AllocationProviderNotFound(Given<ProviderUuid>),
    /// A reshape names a provider that does not exist, among its inventories.
    #[error("inventories name an unknown resource provider {0}")]
    ReshapeProviderNotFound(Given<ProviderUuid>),
    /// Another provider has this UUID.
    #[error("a resource provider with uuid {0} exists")]
    DuplicateProviderUuid(ProviderUuid),
    /// Another provider has this name.
    #[error("a resource provider named {0} exists")]
    DuplicateProviderName(ProviderName),
    /// The parent to be does not exist.
    #[error("no parent resource provider {0}")]
    ParentNotFound(Given<ProviderUuid>),
    /// A provider may not be below itself.
    #[error("resource provider {0} would be its own ancestor")]
    ParentLoop(ProviderUuid),
    /// Below 1.37 a provider that has a parent keeps it.
    #[error("resource provider {0} has a parent already")]
    ReparentForbidden(ProviderUuid),
    /// The provider has children.
    #[error("resource provider {0} has children")]
    ProviderHasChildren(ProviderUuid),
    /// The provider has allocations.
    #[error("resource provider {0} has allocations")]
    ProviderInUse(ProviderUuid),
    /// The provider's generation is another than the client believes.
    #[error("resource provider {provider} is at generation {actual}, not {given}")]
    ProviderGenerationConflict {
        /// The provider.
        provider: ProviderUuid,
        /// What the client sent.
        given: Generation,
        /// What it is.
        actual: Generation,
    },
    /// No resource class has this name.
    #[error("no resource class {0}")]
    ResourceClassNotFound(Given<ResourceClassName>),
    /// The class exists.
    #[error("resource class {0} exists")]
    ResourceClassExists(ResourceClassName),
    /// The class has inventory somewhere.
    #[error("resource class {0} is in use")]
    ResourceClassInUse(ResourceClassName),
    /// Standard classes stay.
    #[error("resource class {0} is standard and cannot be deleted")]
    ResourceClassStandardDelete(ResourceClassName),
    /// Standard classes keep their names.
    #[error("resource class {0} is standard and cannot be renamed")]
    ResourceClassStandardUpdate(ResourceClassName),
    /// No trait has one of these names.
    #[error("no traits {0:?}")]
    TraitsNotFound(Vec<Given<TraitName>>),
    /// A provider has the trait.
    #[error("trait {0} is in use")]
    TraitInUse(TraitName),
    /// Standard traits stay.
    #[error("trait {0} is standard")]
    TraitStandard(TraitName),
    /// The provider has an inventory of this class already (`POST …/inventories`).
    #[error("resource provider {0} has an inventory of {1} already")]
    InventoryExists(ProviderUuid, ResourceClassName),
    /// The provider has no inventory of this class.
    #[error("resource provider {0} has no inventory of {1}")]
    InventoryNotFound(ProviderUuid, ResourceClassName),
    /// Something is allocated from the inventory that was to go.
    #[error("inventories of {1:?} on resource provider {0} are in use")]
    InventoryInUse(ProviderUuid, Vec<ResourceClassName>),
    /// The capacity breaks [`crate::command::CapacityRule`].
    #[error("inventory of {resource_class} on resource provider {provider} reserves too much")]
    InventoryCapacity {
        /// The provider.
        provider: ProviderUuid,
        /// The class, of which it is not known yet whether it exists.
        resource_class: Given<ResourceClassName>,
        /// True from 1.26, where all, but not more than all, may be reserved.
        may_reserve_all: bool,
    },
    /// The consumer's generation is another than the client believes. `None`: there is no such
    /// consumer.
    #[error("consumer {consumer} is at generation {actual:?}, not {given:?}")]
    ConsumerGenerationConflict {
        /// The consumer.
        consumer: ConsumerUuid,
        /// What the client sent.
        given: Option<Generation>,
        /// What it is.
        actual: Option<Generation>,
    },
    /// The consumer has no allocations to delete.
    #[error("no allocations for consumer {0}")]
    ConsumerHasNoAllocations(ConsumerUuid),
    /// The provider has no inventory of the classes asked for.
    #[error("no inventory of {0:?} on resource providers {1:?}")]
    AllocationWithoutInventory(Vec<ResourceClassName>, Vec<ProviderUuid>),
    /// The amount breaks min_unit, max_unit or step_size.
    #[error("amount of {1} on resource provider {0} violates its units")]
    AllocationConstraints(ProviderUuid, ResourceClassName),
    /// There is not enough left.
    #[error("amount of {1} on resource provider {0} exceeds its capacity")]
    AllocationCapacity(ProviderUuid, ResourceClassName),
    /// Every id of 32 bits has been handed out once; ids are never handed out again.
    #[error("this cluster has handed out all its internal ids and can create nothing more")]
    IdsExhausted,
    /// The partition that the command was for was deleted before its turn came.
    #[error("partition {0} is gone")]
    PartitionGone(PartitionId),
    /// No partition has this name.
    #[error("there is no partition {0}")]
    PartitionNotFound(PartitionName),
    /// A partition has this name.
    #[error("there is a partition {0} already")]
    PartitionExists(PartitionName),
    /// Consumers hold something in it, and it was not to be deleted in spite of that.
    #[error("consumers hold allocations in partition {0}")]
    PartitionInUse(PartitionName),
    /// The default partition stays.
    #[error("the default partition cannot be deleted")]
    PartitionDefault,
    /// There are as many partitions as there may be, or all their ids were handed out.
    #[error("the cluster can have no more partitions")]
    PartitionsExhausted,
    /// Another partition has this route, or one that meets it.
    #[error("{0} is partition {1}'s already")]
    RouteTaken(Route, PartitionName),
    /// Where hosts distinguish requests, the default partition has hosts of its own.
    #[error(
        "the default partition has no host of its own, so its requests could not be distinguished from those of partitions \
         that have one"
    )]
    DefaultWithoutHost,
    /// The path of the default partition is each node's `[api] prefix`.
    #[error("the default partition is routed by hosts; its path is [api] prefix of each node")]
    DefaultPrefix,
    /// The routes of the partition were changed after the node had routed the write.
    #[error("the routes of partition {0} have changed in the meantime")]
    RoutesChanged(PartitionId),
    /// Rows were to come into a partition that clients may use: it is the default one, or has
    /// routes.
    #[error(
        "requests are routed to partition {0}, and its clients would see a part of what comes in"
    )]
    PartitionRouted(PartitionId),
    /// Rows were to come into a partition that has others than the commands before have brought.
    #[error(
        "the partition has {} resource providers and {} consumers where {} and {} came in before", has.providers,
        has.consumers, expected.providers, expected.consumers
    )]
    PartitionNotEmpty {
        /// What it has.
        has: Filled,
        /// What the commands before have brought.
        expected: Filled,
    },
    /// A provider cannot come in as it is.
    #[error("resource provider {0}: {1}")]
    ProviderUnfit(ProviderUuid, Unfit),
    /// A consumer cannot come in as it is.
    #[error("consumer {0}: {1}")]
    ConsumerUnfit(ConsumerUuid, Unfit),
}

/// Why a row of another cluster cannot come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Unfit {
    /// One of this UUID is there.
    #[error("there is one of this UUID")]
    Exists,
    /// One of this name is there.
    #[error("there is one of this name")]
    NameTaken,
    /// It refers to a provider, a class, a trait or an inventory that is not there.
    #[error("it refers to what is not there")]
    Dangling,
    /// It has an inventory or an amount that no client could write.
    #[error("it has a number that is out of range")]
    OutOfRange,
    /// It has a parent, or its parent is below it.
    #[error("it cannot be below this parent")]
    Parent,
}
