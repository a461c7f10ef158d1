//! What a node does because it leads, and when it may not lead any longer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::group::Group;

/// How long to wait before something that failed is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Tells the log whenever another node leads.
pub(crate) async fn watch(group: Arc<Group>) {
    let mut turns = group.turns();
    let mut known = None;
    loop {
        let leader = group.leader().map(|leader| leader.id);
        if leader != known {
            known = leader;
            group.leader_changes.fetch_add(1, Ordering::Relaxed);
            match leader {
                Some(leader) => tracing::info!(node = group.me, leader, "a node leads"),
                None => tracing::warn!(node = group.me, "no leader is known"),
            }
        }
        turns.next().await;
    }
}

/// When the disk fails: stops taking part in the cluster, so that another node leads. What is in
/// memory can still be read.
pub(crate) async fn leave_on_failure(group: Arc<Group>) {
    let failure = group.health.clone().failed().await;
    tracing::error!(%failure, "this node stops taking part in the cluster; restart it when the disk is well");
    if let Err(error) = group.raft.shutdown().await {
        tracing::error!(%error, "replication did not stop cleanly");
    }
}

/// Hands leadership to the voter that is furthest, if this node leads. Waits until another node
/// leads, `patience` at most.
pub(crate) async fn hand_over(
    group: &Group,
    to: Option<u64>,
    patience: Duration,
) -> Result<u64, String> {
    if !group.leads() {
        return Err("this node does not lead".to_owned());
    }
    let to = match to {
        Some(to) => to,
        None => group.best_successor().ok_or("there is no other voter")?,
    };
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        group
            .raft
            .trigger()
            .transfer_leader(to)
            .await
            .map_err(|error| error.to_string())?;
        let attempt = (tokio::time::Instant::now() + PAUSE * 5).min(deadline);
        group.other_leader(Some(group.me), attempt).await;
        match group.leader() {
            Some(leader) if leader.id != group.me => return Ok(leader.id),
            _ if tokio::time::Instant::now() >= deadline => {
                return Err(format!("node {to} did not take over within {patience:?}"));
            }
            _ => {}
        }
    }
}
