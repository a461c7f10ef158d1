//! Detects that this node was removed from its cluster.
//!
//! The other nodes send nothing to a removed node, so its own log does not show the removal.
//! Without this check the node would wait for a leader forever. So it asks the members that it
//! knows.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::replica::Replica;
use placement_peer::raft::peers::Peers;
use placement_peer::transport::channel::CallError;
use placement_peer::transport::method::Method;

/// How often a node without a leader asks the others.
const EVERY: Duration = Duration::from_secs(2);
/// Deadline for the answer of one member.
const CALL: Duration = Duration::from_secs(1);

/// Asks the known members one after another, until one knows whether this node was removed.
async fn ask_whether_removed(replica: &Replica, peers: &Arc<Peers>) {
    for (id, member) in replica.members() {
        if id == replica.me {
            continue;
        }
        let asked = peers.call(id, &member.peer, Method::ReadIndex, &(), CALL);
        let answer: Result<Result<u64, String>, CallError> = asked.await;
        match answer {
            Err(CallError::Removed(_)) => return replica.note_removed(true),
            Ok(Ok(_)) => return replica.note_removed(false),
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

/// Asks the members whenever no leader has confirmed this node's state for a while.
pub(crate) async fn watch(replica: Arc<Replica>, peers: Arc<Peers>) {
    loop {
        sleep(EVERY).await;
        let age = replica.freshness.staleness();
        if age.is_none_or(|age| age >= EVERY) && replica.failure().is_none() {
            ask_whether_removed(&replica, &peers).await;
        }
    }
}
