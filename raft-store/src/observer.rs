//! Events of a node's log, reported to simulations.

use crate::types::{Entry, LogId, Vote};

/// Observes the log of one node. The product has none; simulations check Raft's guarantees against
/// the events of all nodes.
pub trait LogObserver: Send + Sync + 'static {
    /// Reports an event, in the order of openraft's calls. A sync is reported before it is
    /// acknowledged.
    fn note(&self, event: LogEvent<'_>);
}

/// An event of a node's log or vote.
#[derive(Debug)]
pub enum LogEvent<'a> {
    /// The log was opened. Its content is on disk.
    Opened {
        /// The last purged entry; all earlier entries are purged, too.
        purged: Option<LogId>,
        /// The entries that are not purged.
        entries: &'a [Entry],
    },
    /// The node is about to store this vote.
    Voted(&'a Vote),
    /// An entry was appended.
    Appended(&'a Entry),
    /// The entries after this one were removed.
    Truncated(Option<LogId>),
    /// The entries up to this one were removed: the state on disk contains them.
    Purged(LogId),
    /// The entries up to this one are on disk.
    Synced(Option<LogId>),
    /// This vote is on disk.
    VoteSynced(Vote),
    /// This node knows that the entries up to this one are committed.
    Committed(LogId),
    /// A received snapshot that covers the entries up to this one is on disk. The next start
    /// installs it if it is not installed before.
    SnapshotReceived(LogId),
    /// A received snapshot was not needed and is removed.
    SnapshotGivenUp(LogId),
}
