//! What goes wrong as text for operators: a node does not start, or a change is refused.

use serde::{Deserialize, Serialize};

use crate::permissions::Exposed;
use crate::tls::NotSecured;
use placement_api::backend::Unavailable;
use placement_api::settings::Invalid;

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be used.
    #[error("configuration: {0}")]
    Config(#[from] Invalid),
    /// Others can read a file with secrets.
    #[error("secrets: {0}")]
    Exposed(#[from] Exposed),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] NotSecured),
    /// The policy files cannot be used.
    #[error("[policy]: {0}")]
    Policy(String),
    /// The data directory cannot be used.
    #[error(transparent)]
    Store(#[from] placement_raft_store::OpenError),
    /// The others know more of this node than its own data.
    #[error(
        "{}: {reason}. Put the data directory back as it was when the node last ran; if that is \
         impossible, {}",
        dir.display(), placement_raft_store::JOIN_AGAIN
    )]
    OlderCopy {
        /// Its data directory.
        dir: std::path::PathBuf,
        /// What the others know.
        reason: String,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address} for {purpose}: {error}")]
    Listen {
        /// What for.
        purpose: &'static str,
        /// Where.
        address: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// Raft could not be started on what the disk holds.
    #[error("cannot start replication: {0}")]
    Raft(String),
    /// The node was invited to a cluster, and is a member of another one.
    #[error("node {node} belongs to cluster {cluster} already")]
    Joined {
        /// This node.
        node: u64,
        /// Its cluster.
        cluster: uuid::Uuid,
    },
}

/// Why a change of the cluster was not carried out, as its leader or an operator learns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refused {
    /// There is no such node.
    #[error("{0}")]
    NotFound(String),
    /// The cluster is not in a state in which this can be done.
    #[error("{0}")]
    Conflict(String),
    /// This node does not lead: ask another.
    #[error("this node does not lead")]
    NotLeader,
    /// No leader could be asked, or the leader changed in the meantime.
    #[error("{0}")]
    Unavailable(String),
    /// Nothing was committed, so it is safe to ask again.
    #[error("{0}; nothing was committed")]
    NothingCommitted(String),
}

impl From<Unavailable> for Refused {
    fn from(unavailable: Unavailable) -> Self {
        match unavailable.reason_of_nothing() {
            Some(reason) => Self::NothingCommitted(reason),
            None => Self::Unavailable(unavailable.to_string()),
        }
    }
}
