//! A node that is a member of a cluster: what it knows, and the owners of what it does.

use std::sync::Arc;

use placement_raft_store::{SnapshotDir, StoreMetrics};

use super::read_index::ReadIndex;
use super::replica::Replica;
use super::standards::Standards;
use super::write_path::WritePath;
use crate::rpc::peers::Peers;

/// What a running member is made of.
pub(crate) struct Running {
    pub(crate) replica: Arc<Replica>,
    pub(crate) writes: WritePath,
    pub(crate) read_index: ReadIndex,
    pub(crate) standards: Standards,
    pub(crate) store_metrics: StoreMetrics,
    pub(super) snapshots: SnapshotDir,
    pub(super) peers: Arc<Peers>,
}

impl Running {
    /// Stops Raft; the disk is closed soon after.
    pub(crate) async fn stop(&self) {
        if let Err(error) = self.replica.raft.shutdown().await {
            tracing::warn!(%error, "replication did not stop cleanly");
        }
    }
}
