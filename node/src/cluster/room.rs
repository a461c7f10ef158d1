//! Room on the disks: while a majority of the voters is short of it, the cluster takes nothing that
//! makes it grow, so that no disk fills up and room can still be made, by deleting and by compaction.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use placement_raft_store::runtime;
use tokio::time::sleep;

use super::leadership::hand_over;
use super::running::Running;
use crate::disk_space;
use crate::rpc::channel::Lane;
use crate::rpc::message::Method;

/// How often the leader looks.
const EVERY: Duration = Duration::from_secs(5);
/// How long another node may take to answer.
const CALL: Duration = Duration::from_secs(1);
/// How long another node may take to take over.
const HAND_OVER: Duration = Duration::from_secs(5);

/// Whether this node's disk has less room than `[disk] min_free_bytes`.
pub(super) async fn is_short(node: &Running) -> bool {
    let config = &node.replica.config;
    if config.disk.min_free_bytes == 0 {
        return false;
    }
    let dir = config.data_dir.clone();
    let free = runtime::blocking(move || disk_space::free(&dir)).await;
    // A system that does not say has no limit that could be held.
    free.is_some_and(|free| free < config.disk.min_free_bytes)
}

/// As the leader: looks after the room that the voters have. With a short disk of its own, it hands
/// leadership to a voter that has room.
pub(super) async fn watch(node: Arc<Running>) {
    let replica = &node.replica;
    loop {
        sleep(EVERY).await;
        if !replica.leads() {
            replica.note_room(true);
            continue;
        }
        let others = ask(&node).await;
        let mine = is_short(&node).await;
        let voters = replica.voters().len();
        let short = usize::from(mine) + others.values().filter(|short| **short).count();
        let room = short <= voters / 2;
        if replica.note_room(room) != room {
            match room {
                true => tracing::info!("a majority of the disks has room again"),
                false => tracing::error!(
                    short,
                    voters,
                    min_free_bytes = replica.config.disk.min_free_bytes,
                    "the disks are nearly full: nothing is taken that needs room"
                ),
            }
        }
        let roomy = (others.iter()).find(|(id, short)| !**short && replica.may_take_over(**id));
        if mine && let Some((to, _)) = roomy {
            tracing::warn!(
                to,
                "this node's disk is nearly full: another node is to lead"
            );
            if let Err(reason) = hand_over(replica, Some(*to), HAND_OVER).await {
                tracing::warn!(reason, "leadership was not handed over");
            }
        }
    }
}

/// Whether the other voters are short of room; those that are heard and say so.
async fn ask(node: &Running) -> BTreeMap<u64, bool> {
    let Running { replica, peers, .. } = node;
    let voters = replica.voters();
    let mut short = BTreeMap::new();
    for (id, member) in replica.members() {
        if id == replica.me || !voters.contains(&id) || !replica.is_heard(id) {
            continue;
        }
        let to = (id, member.peer.as_str());
        let call = peers.call(to, Lane::Control, Method::IsShort, &(), CALL);
        if let Ok(answer) = call.await {
            short.insert(id, answer);
        }
    }
    short
}
