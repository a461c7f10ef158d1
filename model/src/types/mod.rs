//! Validated values, parsed once at the edge and trusted everywhere else.

mod consumer_uuid;
mod given;
mod hold;
mod ids;
mod inventory;
mod limits;
mod names;
mod partition;
mod route;

pub use consumer_uuid::ConsumerUuid;
pub use given::Given;
pub use hold::{Hold, HoldEnd, HoldTerm};
pub use ids::{
    AggregateUuid, Generation, NotCanonical, ProjectId, ProviderUuid, Timestamp, UserId, WriteId,
};
pub use inventory::{Capacity, Inventory};
pub use limits::{LimitExcess, LimitMode, LimitedResource, Limits, ProjectLimits, ResourceLimits};
pub use names::{
    ConsumerTypeName, InvalidName, ProviderName, ResourceClassName, TraitName, is_upper_byte,
};
pub use partition::{Destination, Filled, PartitionId, PartitionName};
pub use route::{HostName, PathPrefix, RESERVED_SEGMENTS, Route, RoutePrefix, Routes};
