//! This node's snapshots: when they are built, and an operator's compaction of the log.
//!
//! They are built here and not by openraft, which stops a node when a snapshot cannot be written: a
//! full disk or a lack of descriptors passes, and until then the log is kept.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use placement_raft_store::{TypeConfig, runtime};
use tokio::time::{Instant, sleep};

use super::error::Refused;
use super::running::Running;
use crate::disk_space;

/// How long openraft may take to hear of a snapshot that is built.
const DEADLINE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);
/// How often it is looked whether a snapshot is still being sent.
const SENDING: Duration = Duration::from_secs(1);
/// How long a snapshot that could not be built waits for the next attempt, at first and at most.
const RETRY_MIN: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(300);
/// Room that a snapshot leaves for the log, in bytes.
const RESERVE_BYTES: u64 = 32 << 20;

/// Builds a snapshot whenever it is this node's turn.
pub(super) async fn watch(node: Arc<Running>) {
    let mut failures = 0;
    loop {
        // Who the members are is looked up late: a new node does not know it yet.
        for due in [Running::snapshot_is_due_after, Running::snapshot_is_due_at] {
            if node.replica.views.wait_applied(due(&node)).await.is_err() {
                return;
            }
        }
        // A snapshot that came in meanwhile has put it off.
        if node.replica.views.applied_index() < Some(node.snapshot_is_due_at()) {
            continue;
        }
        // Whoever is being sent a snapshot needs it, and the log behind it, to the end.
        while node.sending.under_way().is_some() {
            sleep(SENDING).await;
            if node.sending.under_way().is_none() {
                // openraft, which hears of it later, then keeps the log that it sends from.
                sleep(SENDING).await;
            }
        }
        match node.write_down().await {
            Ok(()) => {
                if failures > 0 {
                    tracing::info!("snapshots can be built again");
                }
                failures = 0;
            }
            Err(error) => {
                if node.replica.failure().is_some() {
                    return;
                }
                if failures == 0 {
                    tracing::error!(%error, "no snapshot can be built; it is tried again, and until then the log grows");
                }
                sleep((RETRY_MIN * 2_u32.pow(failures.min(10))).min(RETRY_MAX)).await;
                failures += 1;
            }
        }
    }
}

/// The entry after which the node at one of the `places` of the cluster builds its next snapshot, if
/// its last one covers `covered`.
///
/// The log is cut into rounds of `after` entries, and in each of them every node has a moment of its
/// own, so that not all of them are busy with it at once. A moment that follows too soon is left out.
fn due_at(covered: u64, after: u64, (place, places): (u64, u64)) -> u64 {
    let moment = after / places * place;
    let earliest = due_after(covered, after);
    earliest + (moment + after - earliest % after) % after
}

fn due_after(covered: u64, after: u64) -> u64 {
    covered + after.div_ceil(2)
}

impl Running {
    fn covered(&self) -> u64 {
        self.snapshots.newest().map_or(0, |(covered, _)| covered)
    }

    fn snapshot_is_due_after(&self) -> u64 {
        due_after(self.covered(), self.replica.config.raft.snapshot_after)
    }

    fn snapshot_is_due_at(&self) -> u64 {
        let replica = &self.replica;
        let covered = self.covered();
        let members = replica.members();
        let place = members.range(..replica.me).count() as u64;
        let places = (members.len() as u64).max(place + 1);
        due_at(covered, replica.config.raft.snapshot_after, (place, places))
    }

    /// Writes this node's state down, and tells openraft.
    async fn write_down(&self) -> io::Result<()> {
        self.check_room().await?;
        self.drafts.build().await?;
        let trigger = self.replica.raft.trigger();
        trigger.snapshot().await.map_err(io::Error::other)
    }

    /// A snapshot that fills the disk would take from the log what it needs.
    async fn check_room(&self) -> io::Result<()> {
        let config = &self.replica.config;
        if config.disk.min_free_bytes == 0 {
            return Ok(());
        }
        let dir = config.data_dir.clone();
        let last = self.snapshots.newest().map_or(0, |(_, bytes)| bytes);
        let needed = last + self.store_metrics.read().state.memtable_bytes + RESERVE_BYTES;
        match runtime::blocking(move || disk_space::free(&dir)).await {
            Some(free) if free < needed => Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("it needs about {needed} bytes, and the disk has {free} left"),
            )),
            _ => Ok(()),
        }
    }

    /// Writes this node's state down and drops the log entries that it covers. Returns once it is
    /// done.
    pub(crate) async fn compact(&self) -> Result<(), Refused> {
        let stopped =
            |error: openraft::errors::Fatal<TypeConfig>| Refused::Unavailable(error.to_string());
        if let Some(to) = self.sending.under_way() {
            return Err(Refused::Unavailable(format!(
                "node {to} is being sent a snapshot, and needs the log behind it"
            )));
        }
        let replica = &self.replica;
        let applied = replica.views.applied_index();
        let failed = |error| Refused::Unavailable(format!("no snapshot can be built: {error}"));
        self.write_down().await.map_err(failed)?;
        let give_up = Instant::now() + DEADLINE;
        while replica.raft_metrics(|metrics| metrics.snapshot.map(|id| id.index())) < applied {
            if Instant::now() >= give_up {
                return Err(Refused::Unavailable(
                    "the snapshot is still being made".to_owned(),
                ));
            }
            sleep(PAUSE).await;
        }
        if let Some(applied) = applied {
            let trigger = replica.raft.trigger();
            trigger.purge_log(applied).await.map_err(stopped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_node_has_its_own_moments_and_as_many_as_there_are_rounds() {
        for (after, places) in [(20_000, 3), (50, 5), (10, 3), (7, 1)] {
            let mut all = BTreeSet::new();
            for place in 0..places {
                let mut covered = 0;
                for _ in 0..20 {
                    let due = due_at(covered, after, (place, places));
                    assert!(due >= covered + after / 2 && due <= covered + 2 * after);
                    covered = due;
                    assert!(all.insert(due), "{due} belongs to two nodes");
                }
                assert!(covered <= 21 * after, "{covered}");
            }
        }
    }

    #[test]
    fn a_node_that_was_just_sent_a_snapshot_lets_its_next_moment_pass() {
        assert_eq!(due_at(1_000, 1_000, (0, 2)), 2_000);
        assert_eq!(due_at(1_000, 1_000, (1, 2)), 1_500);
        assert_eq!(due_at(1_001, 1_000, (1, 2)), 2_500);
    }

    #[test]
    fn more_nodes_than_entries_in_a_round_build_at_the_same_moment() {
        assert_eq!(due_at(0, 2, (2, 3)), 2);
        assert_eq!(due_at(5, 1, (2, 3)), 6);
    }
}
