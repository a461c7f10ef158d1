//! Why a data directory cannot be opened.

use std::io;
use std::path::{Path, PathBuf};

use placement_model::Level;
use uuid::Uuid;

use crate::identity::Identity;
use crate::wire::{RecordVersion, WireError};

pub(crate) type Result<T, E = OpenError> = std::result::Result<T, E>;

/// Advice for a node whose data cannot be trusted.
pub const JOIN_AGAIN: &str = "let this node join again with an empty directory: \
                             `placementctl replace` rebuilds it from the other nodes";

/// Why a data directory cannot be opened. The directory is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory belongs to no node yet.
    #[error("{0} is not the data directory of a node: form a cluster or join one first")]
    Missing(PathBuf),
    /// A node owns the directory already.
    #[error(
        "{0} is the data directory of node {node} of cluster {cluster} already: start it without forming or \
         joining a cluster, or choose another directory",
        node = .1.node, cluster = .1.cluster
    )]
    Exists(PathBuf, Identity),
    /// The directory contains data but no identity.
    #[error("{0} contains data but no node identity: choose another directory")]
    NotEmpty(PathBuf),
    /// A restore into the directory did not succeed.
    #[error(
        "{0} exists: `placementd restore` failed or did not finish here, and the node would start with an \
         empty state instead of the backup. Run the restore again, or remove that file to create an \
         empty node"
    )]
    RestoreUnfinished(PathBuf),
    /// Another process has the directory open.
    #[error(
        "the data directory {0} is in use by another placementd{1}: stop that one first, or \
         give each its own directory"
    )]
    Locked(PathBuf, String),
    /// The directory belongs to another cluster than configured.
    #[error("{0} belongs to cluster {found}, not to {2}: this is the wrong directory", found = .1.cluster)]
    OtherCluster(PathBuf, Identity, Uuid),
    /// The directory belongs to another node than configured.
    #[error("{0} belongs to node {found}, not to node {2}: this is the wrong directory", found = .1.node)]
    OtherNode(PathBuf, Identity, u64),
    /// A newer binary wrote the directory.
    #[error(
        "{0} has format {1}, but this placementd knows formats up to {newest}: start it \
         with the newer version that wrote it",
        newest = RecordVersion::NEWEST
    )]
    NewerFormat(PathBuf, u8),
    /// A binary of another version wrote a table that this binary does not know.
    #[error(
        "{0} holds the table {1:?}, which this placementd does not know: start it with the \
         version that wrote it, or {JOIN_AGAIN}"
    )]
    UnknownTable(PathBuf, String),
    /// The state has a feature level that this binary does not know.
    #[error(
        "{0} has feature level {1}, but this placementd knows levels up to {newest}: start the \
         newer version that the other nodes of the cluster run",
        newest = Level::NEWEST
    )]
    NewerLevel(PathBuf, Level),
    /// A newer binary wrote a record that this binary cannot read.
    #[error(
        "{0} cannot be read ({1}): start a version of placementd that is at least as new as the \
         version that wrote it"
    )]
    NewerRecord(PathBuf, WireError),
    /// Stored data does not read back as written.
    #[error("{0} is damaged ({1}): do not repair it by hand; {JOIN_AGAIN}")]
    Damaged(PathBuf, String),
    /// The node has started before, but its log is missing.
    #[error(
        "{0} is gone, but node {node} of cluster {cluster} has started before. Without its log the node \
         does not know how it voted and what it acknowledged; if it voted again, committed writes could be \
         lost. Put the whole data directory back as it was; if that is impossible, {JOIN_AGAIN}",
        node = .1.node, cluster = .1.cluster
    )]
    LogGone(PathBuf, Identity),
    /// The log lacks entries or a vote that are known to have been synced.
    #[error(
        "{0} has lost synced data: {1}. One of its files was damaged or replaced by an older \
         version, so entries or a vote that this node has acknowledged are missing. Put the whole \
         data directory back as it was when the node last ran; if that is impossible, {JOIN_AGAIN}"
    )]
    LogLost(PathBuf, String),
    /// The file `reached`, which records the last synced position of the log, is missing or
    /// damaged, so the node cannot check whether the log is complete.
    #[error(
        "{0} is {1}. This file records the last synced position of the log; without it a log that has lost \
         acknowledged writes or a vote looks complete. Put the whole data directory back as it was when the node last ran; if \
         that is impossible, {JOIN_AGAIN}. If the rest of the directory is certainly the same as when the node \
         last ran, or no other node remains, accept the log unchecked: printf unknown > {0}"
    )]
    ReachedLost(PathBuf, &'static str),
    /// The start count is missing, or older than the node's other data.
    #[error(
        "{0} records that node {node} of cluster {cluster} has started {1} times, but its data is of a \
         later start. This file, or another part of the directory, is missing or older than the \
         rest. Put the whole data directory back as it was when the node last ran; if that is \
         impossible, {JOIN_AGAIN}",
        node = .2.node, cluster = .2.cluster
    )]
    BootLost(PathBuf, u64, Identity),
    /// The node is quarantined.
    #[error(
        "the node of {0} is quarantined: {1}. Keep the directory for analysis, and {JOIN_AGAIN}"
    )]
    Left(PathBuf, String),
    /// An operating system error.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The attempted action, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl OpenError {
    /// The error for an unreadable record in the file or database at `path`.
    pub(crate) fn unreadable(path: &Path, error: &WireError) -> Self {
        match error {
            WireError::Newer(_) => Self::NewerRecord(path.to_owned(), error.clone()),
            WireError::Empty | WireError::Damaged(_) => Self::damaged(path, error.to_string()),
        }
    }

    pub(crate) fn damaged(path: &Path, reason: String) -> Self {
        Self::Damaged(path.to_owned(), reason)
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// Converts the text of a disk error or a RocksDB error into an error for openraft. Derives the
/// kind from the text if possible.
pub(crate) fn io_error(words: impl Into<String>) -> io::Error {
    let words = words.into();
    let kind = if words.contains("No space left") {
        io::ErrorKind::StorageFull
    } else if words.contains("Read-only file system") {
        io::ErrorKind::ReadOnlyFilesystem
    } else {
        io::ErrorKind::Other
    };
    io::Error::new(kind, words)
}
