//! Why a data directory cannot be opened.

use std::io;
use std::path::{Path, PathBuf};

use placement_model::Level;
use uuid::Uuid;

use crate::identity::Identity;
use crate::wire::{RecordVersion, WireError};

pub(crate) type Result<T, E = OpenError> = std::result::Result<T, E>;

/// The way out for a node whose data cannot be trusted.
pub const JOIN_AGAIN: &str = "let its machine join again, with an empty directory: \
                             `placementctl replace` rebuilds it from the others";

/// Why a data directory cannot be opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Not the data directory of a node yet.
    #[error("{0} is not the data directory of a node: form a cluster or join one first")]
    Missing(PathBuf),
    /// A new node was to be made where there is one.
    #[error(
        "{0} is the data directory of node {node} of cluster {cluster} already: start it without forming or \
         joining a cluster, or choose another directory",
        node = .1.node, cluster = .1.cluster
    )]
    Exists(PathBuf, Identity),
    /// A new node was to be made where data is, but no identity.
    #[error("{0} holds data, but does not say of which node: choose another directory")]
    NotEmpty(PathBuf),
    /// A new node was to be made where a restore did not succeed.
    #[error(
        "{0} says that `placementd restore` was refused here or did not finish: the node would begin \
         with an empty state instead of the backup. Run the restore again; if an empty node is what is \
         meant, remove that file"
    )]
    RestoreUnfinished(PathBuf),
    /// Another process has it open.
    #[error(
        "the data directory {0} is in use by another placementd{1}: stop that one first, or \
         give each its own directory"
    )]
    Locked(PathBuf, String),
    /// The directory of a node of another cluster than the one that is named.
    #[error("{0} belongs to cluster {found}, not to {2}: this is the wrong directory", found = .1.cluster)]
    OtherCluster(PathBuf, Identity, Uuid),
    /// The directory of another node than the one that is named.
    #[error("{0} belongs to node {found}, not to node {2}: this is the wrong directory", found = .1.node)]
    OtherNode(PathBuf, Identity, u64),
    /// Written by a newer binary.
    #[error(
        "{0} has format {1}, but this placementd knows formats up to {newest}: start it \
         with the newer version that wrote it",
        newest = RecordVersion::NEWEST
    )]
    NewerFormat(PathBuf, u8),
    /// A binary of another version has written a table that this one does not know.
    #[error(
        "{0} holds the table {1:?}, which this placementd does not know: start it with the \
         version that wrote it, or {JOIN_AGAIN}"
    )]
    UnknownTable(PathBuf, String),
    /// The state is of a feature level that this binary does not know.
    #[error(
        "{0} is of feature level {1}, but this placementd knows levels up to {newest}: start it \
         with a newer version, the one that the rest of the cluster runs",
        newest = Level::NEWEST
    )]
    NewerLevel(PathBuf, Level),
    /// A newer binary has written a record that this one cannot read.
    #[error(
        "{0} cannot be read ({1}): start it with a version that is at least as new as the \
         one that wrote it"
    )]
    NewerRecord(PathBuf, WireError),
    /// What was written is not what is read.
    #[error("{0} is damaged ({1}): do not repair it by hand; {JOIN_AGAIN}")]
    Damaged(PathBuf, String),
    /// The node has started before, and its log is not there.
    #[error(
        "{0} is gone, but node {node} of cluster {cluster} has started before: without its log it no longer \
         knows how it voted and what it acknowledged, and by voting again it could lose committed \
         writes. Put the whole data directory back as it was; if that is impossible, {JOIN_AGAIN}",
        node = .1.node, cluster = .1.cluster
    )]
    LogGone(PathBuf, Identity),
    /// The log does not hold what is known to have been on disk.
    #[error(
        "{0} has lost what was on disk: {1}. A file of it was damaged, or replaced by an older \
         one, and what this node has acknowledged and promised is not there any more. Put the whole \
         data directory back as it was when the node last ran; if that is impossible, {JOIN_AGAIN}"
    )]
    LogLost(PathBuf, String),
    /// The note of how far the log has come is gone or damaged, so it is not known whether the log
    /// is whole.
    #[error(
        "{0} is {1}: it says how far the log has come, and without it a log that has lost acknowledged writes \
         or a vote looks like a whole one. Put the whole data directory back as it was when the node last ran; if \
         that is impossible, {JOIN_AGAIN}. If the rest of the directory is sure to be as the node left it, or no other \
         node is left, have the log accepted unchecked: printf unknown > {0}"
    )]
    ReachedLost(PathBuf, &'static str),
    /// The count of the node's starts is gone, or older than the rest.
    #[error(
        "{0} says that node {node} of cluster {cluster} has started {1} times, but its data are of a \
         later start: the file, or another part of the directory, is missing or older than the \
         rest. Put the whole data directory back as it was when the node last ran; if that is \
         impossible, {JOIN_AGAIN}",
        node = .2.node, cluster = .2.cluster
    )]
    BootLost(PathBuf, u64, Identity),
    /// The node has found that it cannot be vouched for.
    #[error(
        "the node of {0} is quarantined: {1}. Keep the directory for analysis, and {JOIN_AGAIN}"
    )]
    Left(PathBuf, String),
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
}

impl OpenError {
    /// Of a record in the file or database at `path`.
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

/// An error of the disk or of RocksDB, as openraft takes it.
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
