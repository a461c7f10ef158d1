//! The outcome of a committed command. A refusal is also an outcome: deterministic and equal on
//! every node. The edge defines its representation on the wire (status, code, text).

use serde::{Deserialize, Serialize};

use crate::types::{
    ConsumerUuid, Filled, Generation, Given, LimitExcess, PartitionId, PartitionName, ProviderName,
    ProviderUuid, ResourceClassName, Route, Timestamp, TraitName,
};

/// The outcome of one [`crate::Stamped`] command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// The command was applied completely.
    Done(Reply),
    /// The command was refused. The state is unchanged, except where the [`Refusal`] documents
    /// otherwise.
    Refused(Refusal),
    /// A late duplicate of a write that was answered long ago. No client waits for it.
    AnsweredBefore,
}

/// The reply to an applied command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reply {
    /// The command was applied and returns no data.
    Done,
    /// The provider after a create or update.
    Provider(Provider),
    /// A provider's inventories, traits or aggregates were written.
    ProviderWritten {
        /// The provider's new generation.
        generation: Generation,
        /// Time of the write.
        at: Timestamp,
    },
    /// The result of creating a trait or resource class by name.
    Named {
        /// False if the name already existed.
        created: bool,
        /// Creation time of the name.
        modified: Timestamp,
    },
    /// The id of a new partition.
    Partition(PartitionId),
    /// Limits were written.
    LimitsWritten {
        /// The new generation of the limits.
        generation: Generation,
    },
    /// A claim was applied, now or before.
    Claimed {
        /// Index of the choice that the claimants hold.
        choice: u32,
        /// Whether the claimants held this choice already, so that nothing was changed.
        repeated: bool,
    },
    /// A write of allocations was applied although it exceeds limits, since their mode is
    /// [`LimitMode::Report`](crate::types::LimitMode::Report).
    OverLimits {
        /// The reply to the same write without limits.
        reply: Box<Reply>,
        /// The exceeded limits, at most [`LimitExcess::MOST`].
        excesses: Vec<LimitExcess>,
    },
}

impl Reply {
    /// The reply without the exceeded limits, and these limits.
    pub fn split_excesses(self) -> (Self, Vec<LimitExcess>) {
        match self {
            Self::OverLimits { reply, excesses } => (*reply, excesses),
            reply => (reply, Vec::new()),
        }
    }
}

/// A resource provider as readers see it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Provider {
    /// The UUID of the provider.
    pub uuid: ProviderUuid,
    /// The name, unique within the partition.
    pub name: ProviderName,
    /// The generation of the provider.
    pub generation: Generation,
    /// The parent; `None` for a root.
    pub parent: Option<ProviderUuid>,
    /// The root of the tree, which can be the provider itself.
    pub root: ProviderUuid,
    /// Time of the creation or the last update.
    pub modified: Timestamp,
}

/// Every reason for which the model refuses a command. Refusals are stored with outcomes, so
/// variants are append only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// No provider has this UUID (in a path).
    #[error("no resource provider {0}")]
    ProviderNotFound(ProviderUuid),
    /// A body refers to a provider that does not exist. The request's new consumers are still
    /// created, with generation 0, as in upstream.
    #[error("allocations name an unknown resource provider {0}")]
    AllocationProviderNotFound(Given<ProviderUuid>),
    /// The inventories of a reshape refer to a provider that does not exist.
    #[error("inventories name an unknown resource provider {0}")]
    ReshapeProviderNotFound(Given<ProviderUuid>),
    /// Another provider has this UUID.
    #[error("a resource provider with uuid {0} exists")]
    DuplicateProviderUuid(ProviderUuid),
    /// Another provider has this name.
    #[error("a resource provider named {0} exists")]
    DuplicateProviderName(ProviderName),
    /// The new parent does not exist.
    #[error("no parent resource provider {0}")]
    ParentNotFound(Given<ProviderUuid>),
    /// A provider cannot be its own ancestor.
    #[error("resource provider {0} would be its own ancestor")]
    ParentLoop(ProviderUuid),
    /// Below 1.37 an existing parent cannot be changed.
    #[error("resource provider {0} has a parent already")]
    ReparentForbidden(ProviderUuid),
    /// The provider has children.
    #[error("resource provider {0} has children")]
    ProviderHasChildren(ProviderUuid),
    /// The provider has allocations.
    #[error("resource provider {0} has allocations")]
    ProviderInUse(ProviderUuid),
    /// The provider's generation differs from the client's.
    #[error("resource provider {provider} is at generation {actual}, not {given}")]
    ProviderGenerationConflict {
        /// The UUID of the provider.
        provider: ProviderUuid,
        /// The generation that the client sent.
        given: Generation,
        /// The current generation in the state.
        actual: Generation,
    },
    /// No resource class has this name.
    #[error("no resource class {0}")]
    ResourceClassNotFound(Given<ResourceClassName>),
    /// The class already exists.
    #[error("resource class {0} exists")]
    ResourceClassExists(ResourceClassName),
    /// Some provider has an inventory of the class.
    #[error("resource class {0} is in use")]
    ResourceClassInUse(ResourceClassName),
    /// Standard classes cannot be deleted.
    #[error("resource class {0} is standard and cannot be deleted")]
    ResourceClassStandardDelete(ResourceClassName),
    /// Standard classes cannot be renamed.
    #[error("resource class {0} is standard and cannot be renamed")]
    ResourceClassStandardUpdate(ResourceClassName),
    /// These traits do not exist.
    #[error("no traits {0:?}")]
    TraitsNotFound(Vec<Given<TraitName>>),
    /// Some provider has the trait.
    #[error("trait {0} is in use")]
    TraitInUse(TraitName),
    /// Standard traits can be neither created nor deleted.
    #[error("trait {0} is standard")]
    TraitStandard(TraitName),
    /// The provider already has an inventory of this class (`POST …/inventories`).
    #[error("resource provider {0} has an inventory of {1} already")]
    InventoryExists(ProviderUuid, ResourceClassName),
    /// The provider has no inventory of this class.
    #[error("resource provider {0} has no inventory of {1}")]
    InventoryNotFound(ProviderUuid, ResourceClassName),
    /// An inventory to be deleted has allocations.
    #[error("inventories of {1:?} on resource provider {0} are in use")]
    InventoryInUse(ProviderUuid, Vec<ResourceClassName>),
    /// The capacity violates [`crate::command::CapacityRule`].
    #[error("inventory of {resource_class} on resource provider {provider} reserves too much")]
    InventoryCapacity {
        /// The UUID of the provider.
        provider: ProviderUuid,
        /// The class, which may not exist.
        resource_class: Given<ResourceClassName>,
        /// True from 1.26 on: `reserved` may equal the total, but not exceed it.
        may_reserve_all: bool,
    },
    /// The consumer's generation differs from the client's. `None` means that the consumer does not
    /// exist.
    #[error("consumer {consumer} is at generation {actual:?}, not {given:?}")]
    ConsumerGenerationConflict {
        /// The UUID of the consumer.
        consumer: ConsumerUuid,
        /// The generation that the client sent.
        given: Option<Generation>,
        /// The current generation in the state.
        actual: Option<Generation>,
    },
    /// The consumer has no allocations to delete.
    #[error("no allocations for consumer {0}")]
    ConsumerHasNoAllocations(ConsumerUuid),
    /// These providers have no inventory of the requested classes.
    #[error("no inventory of {0:?} on resource providers {1:?}")]
    AllocationWithoutInventory(Vec<ResourceClassName>, Vec<ProviderUuid>),
    /// The amount violates min_unit, max_unit or step_size.
    #[error("amount of {1} on resource provider {0} violates min_unit, max_unit or step_size")]
    AllocationConstraints(ProviderUuid, ResourceClassName),
    /// The amount exceeds the free capacity.
    #[error("amount of {1} on resource provider {0} exceeds its free capacity")]
    AllocationCapacity(ProviderUuid, ResourceClassName),
    /// All 32-bit ids are used up; ids are never reused.
    #[error("all internal ids of this cluster are used up, so nothing more can be created")]
    IdsExhausted,
    /// The partition of the command was deleted before the command was applied.
    #[error("partition {0} was deleted")]
    PartitionGone(PartitionId),
    /// No partition has this name.
    #[error("there is no partition {0}")]
    PartitionNotFound(PartitionName),
    /// A partition with this name already exists.
    #[error("partition {0} already exists")]
    PartitionExists(PartitionName),
    /// Consumers hold allocations in the partition, and the deletion is not forced.
    #[error("consumers hold allocations in partition {0}")]
    PartitionInUse(PartitionName),
    /// The default partition cannot be deleted.
    #[error("the default partition cannot be deleted")]
    PartitionDefault,
    /// The maximum number of partitions is reached, or all partition ids are used up.
    #[error("the cluster can have no more partitions")]
    PartitionsExhausted,
    /// Another partition has this route or an overlapping one.
    #[error("{0} already belongs to partition {1}")]
    RouteTaken(Route, PartitionName),
    /// If any partition has hosts, the default partition needs hosts of its own.
    #[error("the default partition has no host of its own, so no request would be routed to it")]
    DefaultWithoutHost,
    /// The default partition accepts no path prefix; `[api] prefix` of each node sets its path.
    #[error("the default partition can have no prefix; each node's [api] prefix sets its path")]
    DefaultPrefix,
    /// The routes of the partition changed after the node routed the write.
    #[error("the routes of partition {0} have changed in the meantime")]
    RoutesChanged(PartitionId),
    /// Rows cannot be imported into a partition that clients can use: the default one, or one with
    /// routes.
    #[error("requests are routed to partition {0}, so its clients would see a partial import")]
    PartitionRouted(PartitionId),
    /// The number of rows in the partition differs from the number that earlier commands imported.
    #[error(
        "the partition has {} resource providers and {} consumers, but {} and {} were imported", has.providers,
        has.consumers, expected.providers, expected.consumers
    )]
    PartitionNotEmpty {
        /// The rows of the partition.
        has: Filled,
        /// The rows imported by earlier commands.
        expected: Filled,
    },
    /// A provider cannot be imported.
    #[error("resource provider {0}: {1}")]
    ProviderUnfit(ProviderUuid, ImportConflict),
    /// A consumer cannot be imported.
    #[error("consumer {0}: {1}")]
    ConsumerUnfit(ConsumerUuid, ImportConflict),
    /// Every choice of a claim is refused, at least one of them because of its providers, classes
    /// or amounts. Contains at most [`RefusedChoice::MOST`] choices, these first.
    #[error("no choice of the claim has room")]
    ClaimRefused(Vec<RefusedChoice>),
    /// Choices of a claim exceed a ceiling, and the others violate the rule of a group.
    #[error("{used} are used and {requested} requested, but ceiling {ceiling} is {limit}")]
    OverCeiling {
        /// Index of the ceiling in the claim.
        ceiling: u32,
        /// The usage without that of the claimants.
        used: u64,
        /// The usage that the first of these choices adds.
        requested: u64,
        /// The limit of the ceiling.
        limit: u64,
    },
    /// Every choice of a claim violates the rule of a group.
    #[error("{members} members of group {group} would be in the tree of resource provider {root}")]
    GroupBroken {
        /// Index of the group in the claim.
        group: u32,
        /// The root of the tree.
        root: ProviderUuid,
        /// Number of members that would have allocations in the tree.
        members: u32,
    },
    /// The consumer has no hold.
    #[error("consumer {0} has no hold")]
    HoldNotFound(ConsumerUuid),
    /// A hold with a due time can only get another due time.
    #[error("the hold of consumer {0} has a due time and can only get another due time")]
    HoldIsDue(ConsumerUuid),
    /// Too many holds would be kept for the consumer.
    #[error("consumer {0} would have too many holds")]
    TooManyHolds(ConsumerUuid),
    /// The write exceeds a limit of a project.
    #[error(
        "project {} would use {} of {}, but its limit is {}", .0.project, .0.requested, .0.resource,
        .0.limit
    )]
    OverLimit(LimitExcess),
    /// The limits have another generation than the client's.
    #[error("the limits are at generation {actual}, not {given}")]
    LimitsGenerationConflict {
        /// The generation that the client sent.
        given: Generation,
        /// The current generation in the state.
        actual: Generation,
    },
}

/// A refused choice of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RefusedChoice {
    /// Index of the choice in the claim.
    pub choice: u32,
    /// Why the choice is refused: a refusal of `POST /allocations`, a ceiling or a group.
    pub refusal: Refusal,
    /// The amounts of [`Refusal::AllocationCapacity`].
    pub shortage: Option<Shortage>,
}

impl RefusedChoice {
    /// The highest number of choices in a refusal.
    pub const MOST: usize = 4;
}

/// The amounts of one class on one provider that a choice requests in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shortage {
    /// Units that all claimants request.
    pub requested: u64,
    /// Units that are free once the claimants have released their allocations.
    pub free: u64,
}

/// Why a row of another cluster cannot be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum ImportConflict {
    /// A row with this UUID exists.
    #[error("the UUID already exists")]
    Exists,
    /// A provider with this name exists.
    #[error("the name already exists")]
    NameTaken,
    /// The row refers to a provider, a class, a trait or an inventory that does not exist.
    #[error("it refers to a row that does not exist")]
    Dangling,
    /// The row contains an inventory or an amount outside the range that clients can write.
    #[error("it contains a number out of range")]
    OutOfRange,
    /// The provider already has a parent, or the new parent is its descendant.
    #[error("it cannot be a child of this parent")]
    Parent,
}
