//! Errors for operators: why a node does not start, or why a change was refused.

use serde::{Deserialize, Serialize};

use placement_base::backend::Unavailable;
use placement_base::permissions::Exposed;
use placement_base::settings::Invalid;
use placement_peer::tls::NotSecured;

/// A reason for which a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid.
    #[error("configuration: {0}")]
    Config(#[from] Invalid),
    /// Other users can read a file with secrets.
    #[error("secrets: {0}")]
    Exposed(#[from] Exposed),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] NotSecured),
    /// The policy files have errors.
    #[error("[policy]: {0}")]
    Policy(String),
    /// The data directory cannot be opened.
    #[error(transparent)]
    Store(#[from] placement_raft_store::OpenError),
    /// The cluster has recorded a later start of this node than the data directory has.
    #[error(
        "{}: {reason}. Put the data directory back as it was when the node last ran; if that is \
         impossible, {}",
        dir.display(), placement_raft_store::JOIN_AGAIN
    )]
    OlderCopy {
        /// The node's data directory.
        dir: std::path::PathBuf,
        /// Says how many starts the node and the cluster have recorded.
        reason: String,
    },
    /// A listener could not be bound.
    #[error("cannot listen on {address} for {purpose}: {error}")]
    Listen {
        /// The listener's purpose, such as `the API`.
        purpose: &'static str,
        /// The address from the configuration.
        address: String,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// Raft could not be started on the data directory.
    #[error("cannot start replication: {0}")]
    Raft(String),
    /// The node was invited to a cluster but is already a member of another one.
    #[error("node {node} already belongs to cluster {cluster}")]
    Joined {
        /// Number of the invited node.
        node: u64,
        /// The cluster of its data directory.
        cluster: uuid::Uuid,
    },
}

/// A reason for which a cluster change was not carried out; also sent between nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refused {
    /// The node or token does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The state of the cluster does not allow the change.
    #[error("{0}")]
    Conflict(String),
    /// This node does not lead: ask another one.
    #[error("this node does not lead")]
    NotLeader,
    /// No leader was reachable, or leadership changed while the request ran.
    #[error("{0}")]
    Unavailable(String),
    /// Nothing was committed, so a retry is safe.
    #[error("{0}; nothing was committed")]
    NothingCommitted(String),
}

impl From<Unavailable> for Refused {
    fn from(unavailable: Unavailable) -> Self {
        match unavailable.uncommitted_reason() {
            Some(reason) => Self::NothingCommitted(reason),
            None => Self::Unavailable(unavailable.to_string()),
        }
    }
}
