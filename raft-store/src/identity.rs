//! The node that owns a data directory.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The node that owns a data directory. Written once, when the cluster is formed or the node joins
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The cluster.
    pub cluster: Uuid,
    /// Which history this is: a cluster that begins with a backup has another one.
    pub epoch: u64,
    /// The node. Never given to another directory: a node that lost its data joins under a new id.
    pub node: u64,
}

impl Identity {
    /// A node of a history that begins now, or goes on alone: of a cluster that no other node
    /// belongs to yet.
    pub fn of_new_cluster(cluster: Uuid, node: u64) -> Self {
        Self {
            cluster,
            // Some of the id, so that tokens of different clusters differ, and stay short.
            epoch: cluster.as_u64_pair().0 >> 32,
            node,
        }
    }
}
