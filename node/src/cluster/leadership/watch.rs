//! What a node does because it leads, and when it may not lead any longer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cluster::replica::Replica;
use crate::rpc::peers::Peers;
use crate::tasks::Tasks;

/// Logs whenever another node leads.
pub(crate) async fn watch(replica: Arc<Replica>) {
    let mut changes = replica.leadership_changes();
    let mut known = None;
    loop {
        let leader = replica.leader().map(|leader| leader.id);
        if leader != known {
            known = leader;
            replica.leader_changes.fetch_add(1, Ordering::Relaxed);
            match leader {
                Some(leader) => tracing::info!(node = replica.me, leader, "a node leads"),
                None => tracing::warn!(node = replica.me, "no leader is known"),
            }
        }
        changes.next().await;
    }
}

/// Follows members that move: openraft does not, once it has a way to one of them.
pub(crate) async fn follow_members(replica: Arc<Replica>, peers: Arc<Peers>) {
    let mut changes = replica.leadership_changes();
    loop {
        let members = replica.members().into_iter();
        peers.note_addresses(members.map(|(id, member)| (id, member.peer)).collect());
        changes.next().await;
    }
}

/// When a vital task has ended: this node must not lead, and reports why.
pub(crate) async fn leave_without(replica: Arc<Replica>, tasks: Tasks) {
    let name = tasks.until_one_ended().await;
    replica.health.report(&format!(
        "its task of {name} has ended, which is a bug; restart it"
    ));
}

/// When the store fails, or cannot read what it is given: stops taking part in the cluster, so that
/// another node leads. What is in memory can still be read.
pub(crate) async fn leave_on_failure(replica: Arc<Replica>) {
    let failure = replica.health.clone().failed().await;
    tracing::error!(%failure, "this node stops taking part in the cluster; restart it when the cause is removed");
    if let Err(error) = replica.raft.shutdown().await {
        tracing::error!(%error, "replication did not stop cleanly");
    }
}

/// Has a leader send entries to a peer as soon as it is found again, by a heartbeat mostly: else
/// they wait until openraft's next attempt, a second later.
pub(crate) async fn send_to_those_found(replica: Arc<Replica>, peers: Arc<Peers>) {
    let mut changes = peers.lost();
    let mut lost = changes.borrow_and_update().clone();
    while changes.changed().await.is_ok() {
        let now = changes.borrow_and_update().clone();
        let is_found = |peer: &u64| !now.contains_key(peer);
        let found: Vec<u64> = lost.into_keys().filter(is_found).collect();
        lost = now;
        // None would be all of them. It is refused only once Raft has ended.
        if !found.is_empty() && replica.raft.trigger().reset_backoff(found).await.is_err() {
            return;
        }
    }
}
