//! Storage of a node: openraft's log and state machine on RocksDB.
//!
//! * [`create`] creates a data directory; [`open()`] opens it and returns a [`Store`].
//! * [`inspect()`] reads the data directory of a stopped node and changes nothing.
//! * [`recover()`] turns a node into the only member of a new cluster after its own cluster lost
//!   the majority.
//! * [`skip_entry`] replaces an entry that no node can apply by a blank entry, in the log of a
//!   stopped node.
//! * [`write_backup`] writes a state as a backup; [`imported`] makes a backup of a state that was
//!   built outside a cluster. A new cluster can start from a [`Backup`].
//! * [`LogStore`] is the Raft log: one thread batches and syncs appends.
//! * [`StateMachine`] applies commands by the rules of `placement-model`, keeps the rows in RocksDB
//!   and the whole state in memory, and builds and installs snapshots.
//! * [`Views`] gives readers an immutable state and waits for an applied index.
//! * [`wire`] defines the encoding of everything that is stored or sent.
//! * [`disk_space`] measures the size of the data and the free space of the disk.

mod applier;
mod archive;
mod base;
mod blob;
mod counters;
mod data_dir;
pub mod disk_space;
mod disk_wait;
mod endless_file;
mod error;
mod files;
#[cfg(test)]
mod fixtures;
mod health;
mod identity;
mod inspect;
mod kept_files;
mod log;
mod log_disk;
mod logged;
mod machine;
mod metrics;
mod observer;
mod options;
mod recover;
mod restore;
mod rocks;
mod runtime;
mod skip;
mod store;
mod synced_file;
mod tables;
mod types;
pub mod wire;

pub use applier::{Applier, Rules};
pub use archive::{
    ArchiveError, BackupDir, LogArchive, SkippedEntries, Stamp, Until, inspect_kept_log,
};
pub use counters::Counters;
pub use data_dir::{
    LOG_DIR, STATE_DIR, begin_restore, boots, check_restored, create, former_clusters, identity,
    in_use, join_nonce, leave, make_durably, wal_files,
};
pub use error::{JOIN_AGAIN, OpenError};
pub use health::Health;
pub use identity::Identity;
pub use inspect::{Inspection, LogPart, Problem, StatePart, inspect, inspect_log, inspect_rows};
pub use kept_files::{KeptFile, superfluous};
pub use log::{LogLine, LogReader, LogStore};
pub use log_disk::LogDisk;
pub use logged::LoggedCommand;
pub use machine::{
    AppliedState, BackupInfo, Checkpoints, Committed, Drafts, Expected, Floor, Ledger, LedgerError,
    Snapshot, SnapshotBuilder, SnapshotData, SnapshotDir, SnapshotError, SnapshotFile,
    SnapshotPart, SnapshotReceiver, StateMachine, Stopped, TablePart, Views, applying,
    check_backup, imported, receive_backup, write_backup,
};
pub use metrics::{DatabaseNumbers, StoreMetrics};
pub use observer::{LogEvent, LogObserver};
pub use options::StoreOptions;
pub use recover::{Plan, RecoverError, Recovered, plan_recovery, recover};
pub use restore::{Backup, NewCluster, RestoreError};
pub use skip::{SkipError, SkippedEntry, skip_entry, skipped};
pub use store::{Raft, Store, open};
pub use types::{
    Applied, Entry, LABEL_MAX, LogId, Member, Membership, NodeName, Payload, Site, SnapshotMeta,
    StoredMembership, TypeConfig, Vote, is_label,
};
