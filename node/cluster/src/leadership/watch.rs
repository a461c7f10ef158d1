//! Reactions to changes of the leader and the members, to failures of this node, and to peers that
//! are reachable again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::replica::Replica;
use placement_base::log_messages::log;
use placement_base::tasks::Tasks;
use placement_peer::raft::peers::Peers;

/// Logs and counts every change of the leader.
pub(crate) async fn watch(replica: Arc<Replica>) {
    let mut changes = replica.leadership_changes();
    let mut known = None;
    loop {
        let leader = replica.leader().map(|leader| leader.id);
        if leader != known {
            known = leader;
            replica.leader_changes.fetch_add(1, Ordering::Relaxed);
            match leader {
                Some(leader) => log!(
                    LEADER_CHANGED,
                    node = replica.me,
                    leader,
                    "the leader has changed"
                ),
                None => log!(LEADER_UNKNOWN, node = replica.me, "no leader is known"),
            }
        }
        changes.next().await;
    }
}

/// Updates the addresses of the peers when members move. openraft does not do so once it has a
/// connection to a member.
pub(crate) async fn follow_members(replica: Arc<Replica>, peers: Arc<Peers>) {
    let mut changes = replica.leadership_changes();
    loop {
        let members = replica.members().into_iter();
        peers.note_addresses(members.map(|(id, member)| (id, member.peer)).collect());
        changes.next().await;
    }
}

/// Quarantines this node when a vital task has ended.
pub(crate) async fn quarantine_on_task_end(replica: Arc<Replica>, tasks: Tasks) {
    let name = tasks.until_one_ended().await;
    replica.health.report(&format!(
        "the task of {name} has ended, which is a bug; restart this node"
    ));
}

/// Waits until the store fails or cannot read what it receives, and then stops Raft on this node,
/// so that another node leads. The state in memory remains readable.
pub(crate) async fn quarantine_on_failure(replica: Arc<Replica>) {
    replica.health.failed().await;
    if let Err(error) = replica.raft.shutdown().await {
        log!(REPLICATION_NOT_STOPPED, %error, "replication did not stop cleanly");
    }
}

/// As the leader: sends entries to a peer as soon as the peer is reachable again, which a heartbeat
/// usually detects. Otherwise the entries would wait for openraft's next attempt, one second later.
pub(crate) async fn send_to_those_found(replica: Arc<Replica>, peers: Arc<Peers>) {
    let mut changes = peers.lost();
    let mut lost = changes.borrow_and_update().clone();
    while changes.changed().await.is_ok() {
        let now = changes.borrow_and_update().clone();
        let is_found = |peer: &u64| !now.contains_key(peer);
        let found: Vec<u64> = lost.into_keys().filter(is_found).collect();
        lost = now;
        // An empty list would mean all peers. The call fails only if Raft has ended.
        if !found.is_empty() && replica.raft.trigger().reset_backoff(found).await.is_err() {
            return;
        }
    }
}
