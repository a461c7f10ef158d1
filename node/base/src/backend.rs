//! The traits between the REST API and the replicated state. Handlers use the cluster only through
//! these traits; they do not depend on openraft or RocksDB.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use placement_model::cluster::RoutedBy;
pub use placement_model::ledger::Floor;
use placement_model::ledger::LedgerEntry;
use placement_model::types::{Destination, PartitionId, PartitionName};
use placement_model::{Changes, Cluster, Command, Outcome, Stamped, State};
use serde::Serialize;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// A position in the history of the cluster: `epoch.index`, opaque to clients.
///
/// The epoch distinguishes histories that do not continue each other: those of another cluster, or
/// of a cluster restored from a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct PlacementIndex {
    /// Identifies the history of a cluster.
    pub epoch: u64,
    /// Index in the Raft log.
    pub index: u64,
}

/// Formats as in the header `Placement-Index`: `epoch.index`.
impl fmt::Display for PlacementIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.index)
    }
}

/// Consistency of a read (`Placement-Consistency`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Consistency {
    /// Includes every write that was acknowledged anywhere before the request arrived.
    Linearizable,
    /// Includes every write up to this position, the client's token; does not contact the leader.
    Session(PlacementIndex),
    /// The state is at most this old; the node verifies this.
    Bounded(Duration),
    /// The state of this node, with or without a quorum.
    Local,
    /// The state is at most this old or, while this node is disconnected from the cluster, its
    /// current state. The response shows which of the two.
    BoundedOrLocal(Duration),
}

/// Position of the state in an answer, sent in the headers of every response.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    /// The position of the state; `None` on a node that belongs to no cluster.
    pub index: Option<PlacementIndex>,
    /// Id of this node.
    pub node: u64,
    /// The leader, as far as this node knows.
    pub known_leader: Option<u64>,
    /// Maximum age of the state; `None` if unknown.
    pub staleness: Option<Duration>,
}

/// The state of a partition, shared by concurrent requests.
#[derive(Debug, Clone)]
pub struct SharedState {
    cluster: Arc<Cluster>,
    /// A partition that exists in `cluster`.
    partition: PartitionId,
}

impl Deref for SharedState {
    type Target = State;

    fn deref(&self) -> &State {
        let state = self.cluster.partition(self.partition);
        state.expect("the partition existed when this was created")
    }
}

impl SharedState {
    /// Applies a command to this copy of the state. Returns the outcome, and the changes as ledger
    /// entries of log index `index`.
    pub fn apply(&mut self, index: u64, command: &Stamped) -> (Outcome, Vec<LedgerEntry>) {
        let mut cluster = Cluster::clone(&self.cluster);
        let (outcome, changes) = cluster.apply(command);
        let changed = LedgerEntry::for_command(index, command, &cluster, &changes);
        cluster.commit(&changes);
        self.cluster = Arc::new(cluster);
        (outcome, changed)
    }

    /// Reverts changes in this copy of the state.
    pub fn undo(&mut self, undone: Changes) {
        Arc::make_mut(&mut self.cluster).commit(&vec![(self.partition, undone)]);
    }
}

/// Selects the default partition.
impl From<Arc<Cluster>> for SharedState {
    fn from(cluster: Arc<Cluster>) -> Self {
        Self {
            cluster,
            partition: PartitionId::DEFAULT,
        }
    }
}

/// An immutable state with its position.
#[derive(Debug, Clone)]
pub struct View {
    /// The partition at `position.index`.
    pub state: SharedState,
    /// The position of the state.
    pub position: Position,
}

impl View {
    /// The state of the partition with this name at the same position.
    ///
    /// # Errors
    /// [`Unavailable::NoPartition`].
    pub fn in_named_partition(mut self, partition: &PartitionName) -> Result<Self, Unavailable> {
        let found = self.state.cluster.partition_named(partition.as_str());
        let missing = || Unavailable::NoPartition(partition.clone());
        (self.state.partition, _) = found.ok_or_else(missing)?;
        Ok(self)
    }

    /// The state of the partition with this id at the same position; `None` if it does not exist.
    pub fn in_partition(mut self, partition: PartitionId) -> Option<Self> {
        self.state.cluster.partition(partition)?;
        self.state.partition = partition;
        Some(self)
    }

    /// The partition and the number of its route changes so far, for a command.
    pub fn destination(&self) -> Destination {
        let SharedState { cluster, partition } = &self.state;
        Destination {
            partition: *partition,
            routes: cluster.routing(*partition).changes,
        }
    }

    /// Whether a request routed by `by` belongs to this partition at this position.
    pub fn is_routed(&self, by: &RoutedBy) -> bool {
        let SharedState { cluster, partition } = &self.state;
        cluster.is_routed(by, *partition)
    }
}

/// A write that a majority committed and this node applied.
#[derive(Debug, Clone)]
pub struct AppliedWrite {
    /// The model's answer, possibly a refusal.
    pub outcome: Outcome,
    /// Log position of the write; the position of `view` may be later. The response has it in
    /// `Placement-Index`: it is the smallest token that includes the write, and its position in the
    /// total order of writes.
    pub index: PlacementIndex,
    /// Term of the log entry of the write.
    pub term: u64,
    /// A state of this node that contains the write.
    pub view: View,
}

/// Why a request got no answer from the cluster; never a conflict. The texts are for people.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unavailable {
    /// The write is not committed and never will be, or the read was not answered: it is safe to
    /// repeat the request.
    #[error("{0}; nothing was committed")]
    NothingCommitted(String),
    /// The write may or may not be committed.
    #[error("{0}; the outcome of the write is unknown")]
    OutcomeUnknown(String),
    /// The disks have no space for the write, which was not committed.
    #[error("{0}; nothing was committed")]
    NoSpace(String),
    /// Too many writes are waiting in the cluster. The write was not committed.
    #[error("{0}; nothing was committed")]
    Busy(String),
    /// The record of the write exceeds the cluster's limit. The write was not committed.
    #[error("the request takes {bytes} bytes in the log; the maximum is {bytes_max}")]
    TooLarge {
        /// Length of the record in bytes.
        bytes: u64,
        /// Maximum length in bytes.
        bytes_max: u64,
    },
    /// The token in `Placement-Min-Index` has another epoch than this cluster, so waiting for it is
    /// useless. Contains the epoch of this cluster.
    #[error("the index token belongs to another history than this cluster's ({0})")]
    ForeignIndex(u64),
    /// The state is read-only: it is restored from a backup, up to this entry. The write was not
    /// committed.
    #[error("this is the state of a backup after entry {0}; it is read-only")]
    Past(u64),
    /// The cluster has no partition of this name. The write was not committed.
    #[error("this cluster has no partition {0}")]
    NoPartition(PartitionName),
    /// The routes of the partition have changed, and the request may belong to another partition.
    /// The write was not committed.
    #[error(
        "the routes of this cluster's partitions changed during the request; nothing was committed"
    )]
    Rerouted,
}

impl Unavailable {
    /// An error for a write that is not committed and never will be, or a read that was not
    /// answered.
    pub fn nothing_committed(reason: impl Into<String>) -> Self {
        Self::NothingCommitted(reason.into())
    }

    /// The reason if nothing was committed; `None` if the write may be in the log.
    pub fn uncommitted_reason(&self) -> Option<String> {
        match self {
            Self::OutcomeUnknown(_) => None,
            Self::NothingCommitted(reason) | Self::NoSpace(reason) | Self::Busy(reason) => {
                Some(reason.clone())
            }
            other => Some(other.to_string()),
        }
    }

    /// An error for a write that may be in the log.
    pub fn outcome_unknown(reason: impl Into<String>) -> Self {
        Self::OutcomeUnknown(reason.into())
    }
}

/// Commits commands to the log.
pub trait WriteBackend: Send + Sync {
    /// Checks that the node accepts another write. If too many writes are waiting, another one
    /// would only time out.
    ///
    /// # Errors
    /// [`Unavailable::Busy`].
    fn has_room(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Commits the command exactly once, even if the leader changes, and waits until this node has
    /// applied it. Waits for a leader up to the configured time.
    ///
    /// `request_id` is the id of the HTTP request, `req-UUID`. It appears in the log files of all
    /// nodes and in the ledger. An id of another form appears only in the log files.
    fn submit(
        &self,
        command: Command,
        request_id: String,
    ) -> BoxFuture<'_, Result<AppliedWrite, Unavailable>>;
}

/// The UUID in a request id, which is `req-` and 36 characters.
pub fn uuid_of_request(id: &str) -> Option<Uuid> {
    let uuid = id.strip_prefix("req-")?;
    let is_hyphenated = uuid.len() == Hyphenated::LENGTH;
    Uuid::try_parse(uuid).ok().filter(|_| is_hyphenated)
}

/// Provides states to read.
pub trait ReadBackend: Send + Sync {
    /// A state of this node with the given consistency. Waits for it up to the configured time.
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>>;

    /// The position of this node, for responses to requests that read no state, such as errors.
    fn position(&self) -> Position;
}

/// Whether this node can serve requests, for `/readyz`.
pub trait Readiness: Send + Sync {
    /// Why this node is not ready, as text for operators; `None` if it is ready.
    fn why_not(&self) -> BoxFuture<'_, Option<String>>;
}

/// Why ledger entries cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerUnavailable {
    /// The ledger no longer contains some of the entries.
    #[error("the changes up to entry {} are not kept any more", .0.index)]
    Gone(Floor),
    /// The disk failed or the ledger is damaged; the text is for operators.
    #[error("{0}")]
    Failed(String),
}

/// The ledger of this node, with the changes of all partitions. Reads may block on the disk.
pub trait LedgerBackend: Send + Sync {
    /// The entry after which the ledger begins.
    fn floor(&self) -> Floor;

    /// The entries after `after` up to and including `up_to`, in order, about `at_most_bytes`, and
    /// at least one if there is one. This node must have applied `up_to`.
    ///
    /// # Errors
    /// [`LedgerUnavailable`].
    fn forward(
        &self,
        after: u64,
        up_to: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable>;

    /// The entries up to `from`, newest first, about `at_most_bytes`; none if all are below the
    /// floor.
    ///
    /// # Errors
    /// [`LedgerUnavailable`].
    fn backward(
        &self,
        from: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable>;

    /// Waits until this node has applied an entry after this index.
    fn applied_after(&self, index: u64) -> BoxFuture<'_, ()>;

    /// Waits until this node begins to shut down.
    fn shutdown_begun(&self) -> BoxFuture<'_, ()>;
}
