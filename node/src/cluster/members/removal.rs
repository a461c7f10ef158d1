//! How a node learns that it was removed from its cluster.
//!
//! The others send a removed node nothing any more, so its own log does not show it. It would wait
//! for a leader forever, and report only that. Instead it asks the members that it knows.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::cluster::replica::Replica;
use crate::rpc::channel::CallError;
use crate::rpc::message::Method;
use crate::rpc::peers::Peers;

/// How often a node without a leader asks the others.
const EVERY: Duration = Duration::from_secs(2);
/// How long one of them may take to answer.
const CALL: Duration = Duration::from_secs(1);

/// Asks the members that this node knows, until one of them can tell.
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

/// Asks whenever no leader has confirmed anything for a while.
pub(crate) async fn watch(replica: Arc<Replica>, peers: Arc<Peers>) {
    loop {
        sleep(EVERY).await;
        let age = replica.freshness.staleness();
        if age.is_none_or(|age| age >= EVERY) && replica.failure().is_none() {
            ask_whether_removed(&replica, &peers).await;
        }
    }
}
