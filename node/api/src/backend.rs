//! The two traits between the REST API and the replicated state. Handlers know nothing else of the
//! cluster: neither openraft nor RocksDB.

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

/// Where a state stands in the history of the cluster: `epoch.index`, opaque to clients.
///
/// The index is the Raft log index. The epoch tells histories apart that do not continue each
/// other (another cluster, a restored snapshot).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct PlacementIndex {
    /// Which history.
    pub epoch: u64,
    /// How far in it.
    pub index: u64,
}

/// What a read promises (`Placement-Consistency`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Consistency {
    /// At or after every write that was acknowledged anywhere before the request came in.
    Linearizable,
    /// At or after the token, without contact to the leader.
    Session(PlacementIndex),
    /// Provably at most this old.
    Bounded(Duration),
    /// What this node has, quorum or not.
    Local,
    /// At most this old, but what this node has while it is cut off from the cluster: the answer
    /// says which.
    BoundedOrLocal(Duration),
}

/// Where an answer stands; every response carries it in its headers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    /// The state that was asked; `None` on a node that belongs to no cluster and so to no history.
    pub index: Option<PlacementIndex>,
    /// This node.
    pub node: u64,
    /// The leader as far as this node knows.
    pub known_leader: Option<u64>,
    /// How old the state may be at most; `None`: it is not known.
    pub staleness: Option<Duration>,
}

/// The state of a partition that all who ask at the same moment share.
#[derive(Debug, Clone)]
pub struct SharedState {
    cluster: Arc<Cluster>,
    /// One that is there.
    partition: PartitionId,
}

impl Deref for SharedState {
    type Target = State;

    fn deref(&self) -> &State {
        let state = self.cluster.partition(self.partition);
        state.expect("a partition that is there stays in its state")
    }
}

impl SharedState {
    /// Becomes the state after a command, for those who have this one; with what the command
    /// changes, as the entry with this index.
    pub(crate) fn apply(&mut self, index: u64, command: &Stamped) -> (Outcome, Vec<LedgerEntry>) {
        let mut cluster = Cluster::clone(&self.cluster);
        let (outcome, changes) = cluster.apply(command);
        let changed = LedgerEntry::of(index, command, &cluster, &changes);
        cluster.commit(&changes);
        self.cluster = Arc::new(cluster);
        (outcome, changed)
    }

    /// Becomes the state before changes, for those who have this one.
    pub(crate) fn undo(&mut self, undone: Changes) {
        Arc::make_mut(&mut self.cluster).commit(&vec![(self.partition, undone)]);
    }
}

/// The default partition.
impl From<Arc<Cluster>> for SharedState {
    fn from(cluster: Arc<Cluster>) -> Self {
        Self {
            cluster,
            partition: PartitionId::DEFAULT,
        }
    }
}

/// An immutable state together with where it stands.
#[derive(Debug, Clone)]
pub struct View {
    /// A partition at `position.index`.
    pub state: SharedState,
    /// Where it stands.
    pub position: Position,
}

impl View {
    /// The same moment in the partition of this name.
    ///
    /// # Errors
    /// [`Unavailable::NoPartition`].
    pub fn within(mut self, partition: &PartitionName) -> Result<Self, Unavailable> {
        let found = self.state.cluster.partition_named(partition.as_str());
        let missing = || Unavailable::NoPartition(partition.clone());
        (self.state.partition, _) = found.ok_or_else(missing)?;
        Ok(self)
    }

    /// The same moment in the partition with this id; `None` if it does not exist.
    pub fn of(mut self, partition: PartitionId) -> Option<Self> {
        self.state.cluster.partition(partition)?;
        self.state.partition = partition;
        Some(self)
    }

    /// The partition that it is of, with its routes at that moment.
    pub fn destination(&self) -> Destination {
        let SharedState { cluster, partition } = &self.state;
        Destination {
            partition: *partition,
            routes: cluster.routing(*partition).changes,
        }
    }

    /// Whether what was routed so to its partition is its own at that moment.
    pub fn is_routed(&self, by: &RoutedBy) -> bool {
        let SharedState { cluster, partition } = &self.state;
        cluster.is_routed(by, *partition)
    }
}

/// A write that was committed by a majority and applied by this node.
#[derive(Debug, Clone)]
pub struct Written {
    /// What the model answered; a refusal is an answer.
    pub outcome: Outcome,
    /// Where the write itself stands in the log; `view` may be further. The response carries this
    /// as its `Placement-Index`: the smallest token that sees the write, and its place in the one
    /// order of all writes.
    pub index: PlacementIndex,
    /// The term of its entry.
    pub term: u64,
    /// A state that contains the write, of this node.
    pub view: View,
}

/// No node could answer. Never a conflict. Reasons are for a person.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unavailable {
    /// The write provably never entered the log, or the read was never answered: safe to repeat.
    #[error("{0}; nothing was committed")]
    NothingCommitted(String),
    /// The write may or may not be committed.
    #[error("{0}; the outcome of the write is unknown")]
    OutcomeUnknown(String),
    /// The disks have no room for what the write adds. Nothing was committed.
    #[error("{0}; nothing was committed")]
    NoSpace(String),
    /// The cluster has too many writes to answer already. Nothing was committed.
    #[error("{0}; nothing was committed")]
    Busy(String),
    /// The write has a longer record than the cluster takes. Nothing was committed.
    #[error("the request takes {bytes} bytes in the log, and {bytes_max} are the most")]
    TooLarge {
        /// How long it is.
        bytes: u64,
        /// How long it may be.
        bytes_max: u64,
    },
    /// The `Placement-Min-Index` token is not of this cluster's epoch, which is named: no wait will
    /// make it true.
    #[error("the index token belongs to another history than this cluster's ({0})")]
    ForeignIndex(u64),
    /// The state is that of this entry of a backup, and stays so. Nothing was committed.
    #[error(
        "this is the state after entry {0}, as a backup has it: it can be read, and not changed"
    )]
    Past(u64),
    /// The cluster has no partition of this name. Nothing was committed.
    #[error("this cluster has no partition {0}")]
    NoPartition(PartitionName),
    /// The routes of the partition have changed, and the request may be another partition's.
    /// Nothing was committed.
    #[error(
        "the routes of this cluster's partitions have changed while the request was under way; nothing was committed"
    )]
    Rerouted,
}

impl Unavailable {
    /// The write never entered the log, or the read was not answered.
    pub fn nothing_committed(reason: impl Into<String>) -> Self {
        Self::NothingCommitted(reason.into())
    }

    /// Why nothing was committed; `None` if the write may be in the log.
    pub fn reason_of_nothing(&self) -> Option<String> {
        match self {
            Self::OutcomeUnknown(_) => None,
            Self::NothingCommitted(reason) | Self::NoSpace(reason) | Self::Busy(reason) => {
                Some(reason.clone())
            }
            other => Some(other.to_string()),
        }
    }

    /// The write may be in the log.
    pub fn outcome_unknown(reason: impl Into<String>) -> Self {
        Self::OutcomeUnknown(reason.into())
    }
}

/// What commits commands.
pub trait WriteBackend: Send + Sync {
    /// Whether this node has more writes to answer than it can while their clients wait; one more
    /// would only be turned away.
    ///
    /// # Errors
    /// [`Unavailable::Busy`].
    fn has_room(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Has the command committed by the cluster and applied here, once, under any leader. Waits for
    /// a leader up to the configured time.
    ///
    /// `request_id` is that of the HTTP request, `req-UUID`, for the logs of all nodes and for the
    /// ledger. What is no such id stands in the logs alone.
    fn submit(
        &self,
        command: Command,
        request_id: String,
    ) -> BoxFuture<'_, Result<Written, Unavailable>>;
}

/// The UUID in a request id: `req-` and 36 characters.
pub fn uuid_of_request(id: &str) -> Option<Uuid> {
    let uuid = id.strip_prefix("req-")?;
    let is_hyphenated = uuid.len() == Hyphenated::LENGTH;
    Uuid::try_parse(uuid).ok().filter(|_| is_hyphenated)
}

/// What gives states to read.
pub trait ReadBackend: Send + Sync {
    /// A state of this node that keeps the promise. Waits for it up to the configured time.
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>>;

    /// Where this node stands, for responses that asked for no state (errors).
    fn position(&self) -> Position;
}

/// Whether this node can serve what it promises: what `/readyz` asks.
pub trait Readiness: Send + Sync {
    /// Why not, as text for operators; `None` if it can.
    fn why_not(&self) -> BoxFuture<'_, Option<String>>;
}

/// Why changes cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerUnavailable {
    /// They are not kept any more.
    #[error("the changes up to entry {} are not kept any more", .0.index)]
    Gone(Floor),
    /// The disk has failed, or what it has is damaged; as text for operators.
    #[error("{0}")]
    Failed(String),
}

/// What this node keeps of what was changed, of all partitions. Reading may take as long as its
/// disk does.
pub trait LedgerBackend: Send + Sync {
    /// Where it begins.
    fn floor(&self) -> Floor;

    /// The entries after `after` up to `up_to`, in order, of about so many bytes at most; one at
    /// least, if there is one. `up_to` is applied on this node.
    ///
    /// # Errors
    /// [`LedgerUnavailable`].
    fn forward(
        &self,
        after: u64,
        up_to: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable>;

    /// The entries up to `from`, the newest first, of about so many bytes at most; nothing, if none
    /// is left above the floor.
    ///
    /// # Errors
    /// [`LedgerUnavailable`].
    fn backward(
        &self,
        from: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable>;

    /// Waits until this node has applied more than this index.
    fn applied_after(&self, index: u64) -> BoxFuture<'_, ()>;

    /// Waits until this node is about to go.
    fn going(&self) -> BoxFuture<'_, ()>;
}
