//! What happens to a node's log, reported to the simulation.

use crate::types::{Entry, LogId, Vote};

/// Looks at the log of one node from outside. The product has none; simulations hold the promises
/// of Raft against what it sees on all nodes together.
pub trait LogObserver: Send + Sync + 'static {
    /// Reported in the order of openraft's calls; a sync before all others learn of it.
    fn note(&self, event: LogEvent<'_>);
}

/// Something that happens to the log of a node, or to its vote.
#[derive(Debug)]
pub enum LogEvent<'a> {
    /// It was opened, and this was found in it: all of that is on disk.
    Opened {
        /// The last entry that was purged, with all before it.
        purged: Option<LogId>,
        /// What follows.
        entries: &'a [Entry],
    },
    /// The node is about to write down this vote.
    Voted(&'a Vote),
    /// An entry was taken behind the last one.
    Appended(&'a Entry),
    /// What follows this entry was removed.
    Truncated(Option<LogId>),
    /// Everything up to this entry was removed: the state has it, on disk.
    Purged(LogId),
    /// Everything up to this entry is on disk.
    Synced(Option<LogId>),
    /// The vote that is on disk, whenever it was written.
    VoteSynced(Vote),
    /// This node knows everything up to this entry to be committed.
    Committed(LogId),
    /// A snapshot of another node that covers everything up to this entry is on disk, and is
    /// installed by the next start if not before.
    SnapshotReceived(LogId),
    /// One of these was not needed, and is removed.
    SnapshotGivenUp(LogId),
}
