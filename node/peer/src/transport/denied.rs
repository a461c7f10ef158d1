//! Errors with which a node answers the call of another node.

use std::error::Error;

use placement_base::record::WireError;
use serde::{Deserialize, Serialize};

/// Why a call was not carried out. The reason is sent to the caller as text.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// The called node is not a member of a cluster yet.
    #[error("the called node does not belong to a cluster")]
    NoCluster,
    /// The called node rejects the caller, or cannot carry out the call.
    #[error("{0}")]
    Refused(String),
    /// The caller was removed from this cluster.
    #[error(
        "node {node} was removed from this cluster: it is not in the membership at index {index}"
    )]
    Removed { node: u64, index: u64 },
    /// As far as the called node knows, the node that forwarded an operator's request is not a
    /// member.
    #[error(
        "node {node} is not in the membership at index {index}, the newest membership that the \
         called node knows: if node {node} was added later, retry once the called node has caught up"
    )]
    NotAMember { node: u64, index: u64 },
    /// The call is not allowed on this connection or in this state of a transfer.
    #[error("{0}")]
    Misused(&'static str),
    /// This binary does not know the method.
    #[error("the called node does not support method {0}")]
    UnknownMethod(u8),
    /// The body cannot be decoded.
    #[error("cannot decode the call: {0}")]
    Malformed(#[from] WireError),
    /// Raft has stopped on the called node.
    #[error("the called node has stopped replicating: {0}")]
    Stopped(Box<dyn Error + Send + Sync>),
    /// The incoming snapshot cannot be received.
    #[error("cannot receive the snapshot: {0}")]
    Snapshot(String),
    /// The call was dropped before it was answered, because this node stops.
    #[error("the call was cancelled because the called node is stopping")]
    GivenUp,
}

impl Denied {
    /// The message for the caller.
    pub(super) fn failure(&self) -> Failure {
        Failure {
            message: self.to_string(),
            unreadable: matches!(self, Self::Malformed(_)),
            removed: matches!(self, Self::Removed { .. }),
        }
    }

    /// Converts an error of the Raft library, which always means that Raft has stopped.
    pub fn stopped(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Stopped(Box::new(error))
    }
}

/// The failure of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The reason, as text.
    pub(crate) message: String,
    /// Whether the call could not be decoded.
    pub(crate) unreadable: bool,
    /// Whether the caller was removed from the cluster.
    pub(crate) removed: bool,
}

#[cfg(test)]
mod tests {
    use super::super::greeting::samples::check;
    use super::*;

    #[test]
    fn failure_is_decoded_as_it_was_encoded() {
        check(&[Failure {
            message: "why".to_owned(),
            unreadable: true,
            removed: true,
        }]);
    }
}
