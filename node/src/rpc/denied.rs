//! Why a node does not do what another node asks of it.

use std::error::Error;

use placement_raft_store::wire::WireError;

use super::message::Failure;

/// Why a call was not carried out. It travels as its text ([`super::message::Failure`]).
#[derive(Debug, thiserror::Error)]
pub(crate) enum Denied {
    /// It is no member of a cluster yet.
    #[error("this node does not belong to a cluster")]
    NoCluster,
    /// This node does not speak with the caller, or cannot do what it asks.
    #[error("{0}")]
    Refused(String),
    /// The caller was removed from this cluster.
    #[error(
        "node {node} was removed from this cluster: the membership at index {index} is without it"
    )]
    Removed { node: u64, index: u64 },
    /// An order of a node that this one does not know as a member.
    #[error(
        "node {node} is not a member by the membership at index {index}, the last that this node \
         knows: if it was added later, try again once this node has caught up"
    )]
    NotAMember { node: u64, index: u64 },
    /// The call does not fit the connection or the state of a transfer.
    #[error("{0}")]
    Misused(&'static str),
    /// A method that this binary does not have.
    #[error("this node knows no method {0}")]
    UnknownMethod(u8),
    /// The body cannot be read.
    #[error("the call cannot be read: {0}")]
    Malformed(#[from] WireError),
    /// Raft does not run here any more.
    #[error("replication has stopped on this node: {0}")]
    Stopped(Box<dyn Error + Send + Sync>),
    /// The snapshot that comes in cannot be taken.
    #[error("the snapshot cannot be taken: {0}")]
    Snapshot(String),
    /// The call was dropped before it was answered: this node is stopping.
    #[error("the call was given up")]
    GivenUp,
}

impl Denied {
    /// As it travels.
    pub(super) fn failure(&self) -> Failure {
        Failure {
            message: self.to_string(),
            unreadable: matches!(self, Self::Malformed(_)),
            removed: matches!(self, Self::Removed { .. }),
        }
    }

    /// Raft's own error, which is always that it has stopped.
    pub(crate) fn stopped(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Stopped(Box::new(error))
    }
}
