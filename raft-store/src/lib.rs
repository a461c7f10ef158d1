//! The memory of a node: openraft's log and state machine over RocksDB.
//!
//! * [`create`] makes a data directory, [`open()`] opens it and gives a [`Store`].
//! * [`LogStore`] is the Raft log: appends are gathered and synced by one thread.
//! * [`StateMachine`] applies commands by the rules of `placement-model`, keeps the rows in RocksDB
//!   and the whole state in memory, and builds and installs snapshots.
//! * [`Views`] gives readers an immutable state and waits for an applied index.
//! * [`wire`] is how everything that lasts or travels is written.
//! * [`runtime`] is the async runtime for production and simulation.

mod applier;
#[cfg(test)]
mod fixtures;
mod health;
mod identity;
mod log;
mod machine;
mod metrics;
mod open;
mod options;
mod rocks;
pub mod runtime;
pub mod simulation;
mod tables;
mod types;
pub mod wire;

pub use applier::{Applier, Rules};
pub use health::Health;
pub use identity::{FORMAT, Identity, create, identity};
pub use log::{LogReader, LogStore};
pub use machine::{
    AppliedState, SnapshotBuilder, SnapshotDir, SnapshotFile, SnapshotReceiver, StateMachine,
    Stopped, Views,
};
pub use metrics::{DatabaseNumbers, Histogram, StoreMetrics, StoreNumbers};
pub use open::{OpenError, Store, in_use, open};
pub use options::{Disk, Faults, StoreOptions};
pub use types::{
    Applied, Entry, LogId, Member, Membership, Payload, Raft, Snapshot, SnapshotMeta,
    StoredMembership, TypeConfig, Vote,
};
