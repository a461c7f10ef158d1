//! Room on the disks: while a majority of the voters is short of it, the cluster takes nothing that
//! makes it grow, so that no disk fills up and room can still be made, by deleting and by
//! compaction.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::cluster::leadership::hand_over::try_to_hand_over;
use crate::cluster::running::Running;
use crate::rpc::message::Method;

/// How often the leader looks.
const EVERY: Duration = Duration::from_secs(5);
/// How long another node may take to take over.
const HAND_OVER: Duration = Duration::from_secs(5);

/// As the leader: looks after the room that the voters have. With a short disk of its own, it hands
/// leadership to a voter that has room.
pub(crate) async fn watch(node: Arc<Running>) {
    let replica = &node.replica;
    loop {
        sleep(EVERY).await;
        if !replica.leads() {
            replica.note_room(true);
            continue;
        }
        let mut others = replica.voters();
        others.retain(|id| *id != replica.me && replica.is_reachable(*id));
        let others: BTreeMap<u64, bool> = node.ask(others, Method::IsShort, &()).await;
        let mine = node.is_short_of_room().await;
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
            try_to_hand_over(replica, Some(*to), HAND_OVER).await;
        }
    }
}
