//! Why a data directory cannot be opened.

use std::io;
use std::path::{Path, PathBuf};

use placement_model::Level;
use uuid::Uuid;

use crate::identity::{FORMAT, Identity};
use crate::wire::WireError;

/// The way out for a node whose data cannot be trusted.
pub const JOIN_ANEW: &str = "let its machine join anew, under a new id and with an empty directory: \
                             `placementctl members replace` rebuilds it from the others";

/// Why a data directory cannot be opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Not the data directory of a node yet.
    #[error("{dir} is not the data directory of a node: form a cluster or join one first")]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// A new node was to be made where there is one.
    #[error(
        "{dir} is the data directory of node {} of cluster {} already: start it without forming or \
         joining a cluster, or choose another directory",
        found.node, found.cluster
    )]
    Exists {
        /// The directory.
        dir: PathBuf,
        /// The node that owns it.
        found: Identity,
    },
    /// A new node was to be made where data is, but no identity.
    #[error("{dir} holds data, but does not say of which node: choose another directory")]
    NotEmpty {
        /// The directory.
        dir: PathBuf,
    },
    /// A new node was to be made where a restore did not succeed.
    #[error(
        "{path} says that `placementd restore` was refused here or did not finish: the node would begin \
         with an empty state instead of the backup. Run the restore again; if an empty node is what is \
         meant, remove that file"
    )]
    RestoreUnfinished {
        /// What the restore has left.
        path: PathBuf,
    },
    /// Another process has it open.
    #[error(
        "the data directory {dir} is in use by another placementd{holder}: stop that one first, or \
         give each its own directory"
    )]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// ` (process 4711)`, if that is known.
        holder: String,
    },
    /// The directory of another cluster.
    #[error("{dir} belongs to cluster {found}, not to {expected}: this is the wrong directory")]
    OtherCluster {
        /// The directory.
        dir: PathBuf,
        /// The cluster it belongs to.
        found: Uuid,
        /// The cluster it was to belong to.
        expected: Uuid,
    },
    /// The directory of another node.
    #[error("{dir} belongs to node {found}, not to node {expected}: this is the wrong directory")]
    OtherNode {
        /// The directory.
        dir: PathBuf,
        /// The node it belongs to.
        found: u64,
        /// The node it was to belong to.
        expected: u64,
    },
    /// Written by a newer binary.
    #[error(
        "{dir} has format {format}, but this placementd knows formats up to {FORMAT}: start it \
         with the newer version that wrote it"
    )]
    NewerFormat {
        /// The directory.
        dir: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A newer binary has written a table that this one does not know.
    #[error(
        "{path} holds the table {table:?}, which this placementd does not know: start it with the \
         newer version that wrote it"
    )]
    NewerTable {
        /// The database.
        path: PathBuf,
        /// The table.
        table: String,
    },
    /// The state is of a feature level that this binary does not know.
    #[error(
        "{path} is of feature level {level}, but this placementd knows levels up to {}: start it \
         with a newer version, the one that the rest of the cluster runs",
        Level::NEWEST
    )]
    NewerLevel {
        /// The database.
        path: PathBuf,
        /// Its level.
        level: Level,
    },
    /// A newer binary has written a record that this one cannot read.
    #[error(
        "{path} cannot be read ({error}): start it with a version that is at least as new as the \
         one that wrote it"
    )]
    NewerRecord {
        /// The file or database.
        path: PathBuf,
        /// Which version it has.
        error: WireError,
    },
    /// What was written is not what is read.
    #[error(
        "{path} is damaged ({reason}): do not repair it by hand; {}",
        JOIN_ANEW
    )]
    Damaged {
        /// The file or database.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The node has started before, and its log is not there.
    #[error(
        "{log} is gone, but node {} of cluster {} has started before: without its log it no longer \
         knows how it voted and what it acknowledged, and by voting again it could lose committed \
         writes. Put the whole data directory back as it was; if that is impossible, {}",
        identity.node, identity.cluster, JOIN_ANEW
    )]
    LogGone {
        /// The directory of the log.
        log: PathBuf,
        /// The node that owns the directory.
        identity: Identity,
    },
    /// The log does not hold what is known to have been on disk.
    #[error(
        "{log} has lost what was on disk: {lost}. A file of it was damaged, or replaced by an older \
         one, and what this node has acknowledged and promised is not there any more. Put the whole \
         data directory back as it was when the node last ran; if that is impossible, {}",
        JOIN_ANEW
    )]
    LogLost {
        /// The directory of the log.
        log: PathBuf,
        /// What it lacks.
        lost: String,
    },
    /// The note of how far the log has come is gone or damaged, so it is not known whether the log is whole.
    #[error(
        "{path} is {what}: it says how far the log has come, and without it a log that has lost acknowledged writes \
         or a vote looks like a whole one. Put the whole data directory back as it was when the node last ran; if \
         that is impossible, {}. If the rest of the directory is sure to be as the node left it, or no other \
         node is left, have the log taken as it is: printf unknown > {path}",
        JOIN_ANEW
    )]
    ReachedLost {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The count of the node's starts is gone, or older than the rest.
    #[error(
        "{path} says that node {} of cluster {} has started {boots} times, but its data are of a \
         later start: the file, or another part of the directory, is missing or older than the \
         rest. Put the whole data directory back as it was when the node last ran; if that is \
         impossible, {}",
        identity.node, identity.cluster, JOIN_ANEW
    )]
    BootLost {
        /// The file.
        path: PathBuf,
        /// What it says, or 0 without it.
        boots: u64,
        /// The node that owns the directory.
        identity: Identity,
    },
    /// The node has found that it cannot be vouched for.
    #[error(
        "the node of {dir} takes no part any more: {reason}. Keep the directory for whoever looks \
         for the cause, and {}",
        JOIN_ANEW
    )]
    Left {
        /// The directory.
        dir: PathBuf,
        /// What it has found.
        reason: String,
    },
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
        let path = path.to_owned();
        match error {
            WireError::Newer(_) => Self::NewerRecord {
                path,
                error: error.clone(),
            },
            WireError::Empty | WireError::Damaged(_) => Self::Damaged {
                path,
                reason: error.to_string(),
            },
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
