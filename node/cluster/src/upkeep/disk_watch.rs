//! Detects a disk that hangs without an error. A leader hands leadership over. If the disk still
//! hangs after `[disk] hung_after_ms`, the process ends. Then the other nodes see that this node
//! has failed, and do not wait for it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use placement_base::log_messages::log;
use placement_base::runtime;
use placement_raft_store::StoreMetrics;
use tokio::time::sleep;

use crate::leadership::hand_over::try_to_hand_over;
use crate::running::Running;

/// Interval between checks of the disk.
const EVERY: Duration = Duration::from_millis(250);
/// Longer disk operations are logged.
const SLOW: Duration = Duration::from_millis(500);
/// Deadline for another node to take over.
const HAND_OVER: Duration = Duration::from_secs(5);

/// Watches pending disk operations. Not started if `[disk] hung_after_ms` is 0.
pub(crate) async fn watch(node: Arc<Running>) {
    let replica = &node.replica;
    let hung = Duration::from_millis(replica.config.disk.hung_after_ms);
    end_when_hung(Arc::downgrade(&node), node.store_metrics.clone(), hung);
    let mut logged = Duration::ZERO;
    loop {
        sleep(EVERY).await;
        let Some(waits) = node.store_metrics.waits_for_disk() else {
            logged = Duration::ZERO;
            continue;
        };
        let waits_ms = waits.as_millis() as u64;
        if waits >= SLOW.max(logged * 2) {
            logged = waits;
            log!(DISK_SLOW, waits_ms, "a disk operation has not returned");
        }
        if waits >= hung / 10 && replica.leads() {
            log!(
                DISK_HANGS,
                waits_ms,
                "the disk hangs: handing leadership over"
            );
            // Prefers voters that have this node's last entries.
            try_to_hand_over(replica, None, HAND_OVER.min(hung / 10)).await;
        }
    }
}

/// Ends the process once the disk hangs. Runs on a separate thread, because Raft's threads read the
/// log and hang together with the disk.
#[expect(
    clippy::disallowed_methods,
    reason = "not in a simulation, where nothing blocks a thread"
)]
fn end_when_hung(node: Weak<Running>, store: StoreMetrics, hung: Duration) {
    let watch = move || {
        while node.strong_count() > 0 {
            std::thread::sleep(EVERY);
            let Some(waits) = store.waits_for_disk().filter(|waits| *waits >= hung) else {
                continue;
            };
            log!(
                DISK_HUNG,
                waits_ms = waits.as_millis() as u64,
                "the disk hangs; the process ends, so that the others need not wait for this node"
            );
            runtime::end_process();
        }
    };
    runtime::watchdog("disk-watch", watch);
}
