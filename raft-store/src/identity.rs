//! The node that owns a data directory.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The node that owns a data directory. Written once, when the node forms or joins a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Id of the cluster.
    pub cluster: Uuid,
    /// Identifies the history of the cluster: a cluster restored from a backup has another epoch.
    pub epoch: u64,
    /// Node id. It is never reused for another directory: a node that lost its data joins under a
    /// new id.
    pub node: u64,
}

impl Identity {
    /// The identity of a node in a new history: a new cluster, or a recovered node that continues
    /// alone.
    pub fn for_new_cluster(cluster: Uuid, node: u64) -> Self {
        Self {
            cluster,
            // The upper 32 bits of the cluster id. Session tokens contain the epoch, so tokens of
            // different clusters differ, and they stay short.
            epoch: cluster.as_u64_pair().0 >> 32,
            node,
        }
    }
}
