//! One node, from its listeners to its disk.

use crate::cluster::doors::{ReadDoor, WriteDoor};
use crate::config::Config;
use crate::env::Env;
use std::sync::Arc;

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be used.
    #[error("configuration: {0}")]
    Config(#[from] crate::config::ConfigError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Store(#[from] placement_raft_store::OpenError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address} for {purpose}: {error}")]
    Listen {
        /// What for.
        purpose: &'static str,
        /// Where.
        address: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// Raft could not be started on what the disk holds.
    #[error("cannot start replication: {0}")]
    Raft(String),
}

/// Where a node listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// The REST API.
    pub api: String,
    /// The other nodes.
    pub peer: String,
    /// Operators.
    pub admin: String,
}

/// What a node says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// Its Raft term.
    pub term: u64,
    /// Whether it believes that it leads in that term.
    pub leads: bool,
}

/// A running node.
pub struct Node {
    addresses: Addresses,
    write: Arc<dyn WriteDoor>,
    read: Arc<dyn ReadDoor>,
}

impl Node {
    /// Starts a node. Returns once it listens; a node that belongs to no cluster yet answers 503
    /// until its cluster is formed or it is added to one.
    ///
    /// # Errors
    /// [`StartError`], in words for an operator.
    pub async fn start(env: Env, config: Config) -> Result<Self, StartError> {
        let _ = (env, config);
        Err(StartError::Raft("not written yet".to_owned()))
    }

    /// Where this node listens, with real port numbers.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The door for writes.
    pub fn write_door(&self) -> Arc<dyn WriteDoor> {
        self.write.clone()
    }

    /// The door for reads.
    pub fn read_door(&self) -> Arc<dyn ReadDoor> {
        self.read.clone()
    }

    /// What this node says of itself now, without asking anybody; `None` before it belongs to a
    /// cluster. Simulations look at it between two steps.
    pub fn role(&self) -> Option<Role> {
        None
    }

    /// What this node has applied; `None` before it belongs to a cluster. Holds no disk open.
    pub fn views(&self) -> Option<placement_raft_store::Views> {
        None
    }

    /// Hands leadership over, answers what is being asked, then stops and closes the disk.
    pub async fn shutdown(self) {}

    /// Stops at once, as if the process had been killed, but waits until the disk is closed.
    pub async fn kill(self) {}
}
