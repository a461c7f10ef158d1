//! Free space on the disks: while the disks of a majority of the voters are nearly full, the
//! cluster rejects writes that need space, so that no disk fills up, and deletions and compaction
//! can still free space.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::leadership::hand_over::try_to_hand_over;
use crate::running::Running;
use placement_base::log_messages::log;
use placement_peer::transport::method::Method;

/// How often the leader checks.
const EVERY: Duration = Duration::from_secs(5);
/// Deadline for another node to take over.
const HAND_OVER: Duration = Duration::from_secs(5);

/// Checks the free space of this node's disk; as the leader, also that of the other voters. If the
/// disk of the leader is nearly full, it hands leadership to a voter with enough space.
pub(crate) async fn watch(node: Arc<Running>) {
    let replica = &node.replica;
    let mut was_full = false;
    loop {
        sleep(EVERY).await;
        let mine = node.is_disk_nearly_full().await;
        if mine && !was_full {
            log!(
                DISK_NEARLY_FULL,
                min_free_bytes = replica.config.disk.min_free_bytes,
                "this node's disk is nearly full"
            );
        }
        was_full = mine;
        if !replica.leads() {
            replica.note_room(true);
            continue;
        }
        let mut others = replica.voters();
        others.retain(|id| *id != replica.me && replica.is_reachable(*id));
        let others: BTreeMap<u64, bool> = node.ask(others, Method::IsShort, &()).await;
        let voters = replica.voters().len();
        let short = usize::from(mine) + others.values().filter(|short| **short).count();
        let room = short <= voters / 2;
        if replica.note_room(room) != room {
            if room {
                log!(
                    DISKS_HAVE_SPACE,
                    "writes that need disk space are accepted again: the disks of at most half of \
                    the voters are nearly full"
                )
            } else {
                log!(
                    DISKS_NEARLY_FULL,
                    short,
                    voters,
                    min_free_bytes = replica.config.disk.min_free_bytes,
                    "the disks of a majority of the voters are nearly full: writes that need disk \
                    space are rejected"
                )
            }
        }
        let roomy = (others.iter()).find(|(id, short)| !**short && replica.may_take_over(**id));
        if mine && let Some((to, _)) = roomy {
            log!(
                DISK_NEARLY_FULL,
                to,
                "this node's disk is nearly full: handing leadership over"
            );
            try_to_hand_over(replica, Some(*to), HAND_OVER).await;
        }
    }
}
