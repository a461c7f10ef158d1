//! The node that owns a data directory.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The node that owns a data directory. Written once, when the node forms or joins a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Id of the cluster.
    pub cluster: Uuid,
    /// Identifies the history: a cluster restored from a backup has another epoch.
    pub epoch: u64,
    /// Node id. It is never reused for another directory: a node that lost its data joins under a
    /// new id.
    pub node: u64,
}

impl Identity {
    /// A node of a new history: of a new cluster, or of a recovered node that continues alone.
    pub fn for_new_cluster(cluster: Uuid, node: u64) -> Self {
        Self {
            cluster,
            // Part of the id, so that tokens of different clusters differ and stay short.
            epoch: cluster.as_u64_pair().0 >> 32,
            node,
        }
    }
}
