//! Values that cannot be wrong: parsed once at the edge, trusted everywhere else.

mod ids;
mod inventory;
mod names;

pub use ids::{
    AggregateUuid, ConsumerUuid, Generation, GivenUuid, ProjectId, ProviderUuid, Timestamp, UserId,
};
pub use inventory::{Capacity, Inventory};
pub use names::{ConsumerTypeName, InvalidName, ProviderName, ResourceClassName, TraitName};
