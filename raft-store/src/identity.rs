//! The node that owns a data directory.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The layout of the data directory that this binary writes.
pub const FORMAT: u32 = 1;

/// The node that owns a data directory. Written once, when the cluster is formed or the node joins it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The cluster.
    pub cluster: Uuid,
    /// Which history of the cluster: another one after a snapshot is restored into it.
    pub epoch: u64,
    /// The node. Never given to another directory: a node that lost its data joins under a new id.
    pub node: u64,
}
