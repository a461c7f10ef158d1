//! Compacts the log, on each node at different log indexes, and when an operator requests it.
//!
//! The node first makes the rows of the applied entries durable, which writes only the changed
//! rows. The durable rows are this node's snapshot, so the log entries up to there can be removed.
//! openraft does not start this by itself, because it stops a node if a snapshot fails. Here, a
//! full disk or a lack of file descriptors only delays the removal.
//!
//! A node that needs entries which the log no longer has must receive the whole state. So if the
//! state is large, entries are removed only when the log is at least half as long as the state.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use placement_base::log_messages::log;
use placement_base::runtime;
use placement_raft_store::TypeConfig;
use tokio::time::{Instant, sleep};

use super::Retries;
use crate::error::Refused;
use crate::replica::index;
use crate::running::Running;
use placement_peer::transport::method::Lane;

/// How long openraft may take to notice a built snapshot.
const DEADLINE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);
/// How often to check whether a snapshot is still being sent.
const SENDING: Duration = Duration::from_secs(1);
/// Estimated size of a log entry, in bytes.
const ENTRY_BYTES: u64 = 256;

/// Makes the rows durable each time the applied log reaches the next due index of this node. If the
/// log is long enough, also removes the entries that the rows contain.
pub(crate) async fn watch(node: Arc<Running>) {
    let mut retries = Retries::default();
    // Index up to which this task has made the rows durable. openraft learns of it only if a
    // snapshot was made as well.
    let mut flushed = 0;
    loop {
        // The due index depends on the members. They are read after the first wait, because a new
        // node does not know them earlier.
        for due in [Running::is_due_after, Running::is_due_at] {
            if (node.replica.views.wait_applied(due(&node, flushed)).await).is_err() {
                return;
            }
        }
        // If a snapshot was received in the meantime, the due index is now higher.
        let applied = node.replica.views.applied_index();
        if applied < Some(node.is_due_at(flushed)) {
            continue;
        }
        // A node that is receiving a snapshot will need the log after the snapshot.
        while node.sending.under_way().is_some() {
            sleep(SENDING).await;
            if node.sending.under_way().is_none() {
                // openraft notices the end of the transfer a little later, and then itself retains
                // the entries that it still has to send.
                sleep(SENDING).await;
            }
        }
        let done = if node.log_outweighs_the_state() {
            node.cover().await
        } else {
            node.make_rows_durable().await
        };
        match done {
            Ok(()) => {
                flushed = applied.unwrap_or_default();
                if retries.succeeded() {
                    log!(ROWS_DURABLE_AGAIN, "the rows are made durable again");
                }
            }
            Err(error) => {
                if node.replica.failure().is_some() {
                    return;
                }
                if !retries.have_begun() {
                    log!(
                        ROWS_NOT_DURABLE,
                        %error,
                        "cannot make the rows durable; the log grows; retrying"
                    );
                }
                sleep(retries.next_pause()).await;
            }
        }
    }
}

/// As the leader: sends a snapshot to a member that lacks more entries than the log should retain.
/// Runs forever.
///
/// While entries are sent to a member, openraft removes no entries that the member has not
/// acknowledged. With a member that cannot keep up with the writes, the log would grow without
/// bound. Closing the append stream to it lets openraft remove the entries, and the member receives
/// the state.
pub(crate) async fn end_streams_of_those_behind(node: Arc<Running>) {
    loop {
        sleep(SENDING).await;
        if !node.replica.leads() || node.sending.under_way().is_some() {
            continue;
        }
        if let Some((to, lag)) = node.keeps_the_log() {
            log!(
                MEMBER_FALLS_BEHIND,
                to,
                lag,
                "a member falls behind; sending it a snapshot instead of log entries"
            );
            node.replica
                .given_up_streams
                .fetch_add(1, Ordering::Relaxed);
            node.peers.close(
                to,
                Lane::Log,
                "it lacks more entries than the log should keep",
            );
        }
    }
}

/// Whether a log of `entries` entries is so long that it should be cut, given a snapshot of `bytes`
/// bytes.
fn outweighs(entries: u64, bytes: u64) -> bool {
    bytes <= runtime::limits().light_snapshot || entries.saturating_mul(ENTRY_BYTES) >= bytes / 2
}

/// The log index at which a node next makes its rows durable, if the rows up to `covered` are
/// durable. `place` is the node's position among the `places` members.
///
/// The log is divided into rounds of `after` entries. In each round every node is due at a
/// different index, so that the nodes are not all busy at the same time. An index that is less than
/// half a round after `covered` is skipped.
fn due_at(covered: u64, after: u64, (place, places): (u64, u64)) -> u64 {
    let moment = after / places * place;
    let earliest = due_after(covered, after);
    earliest + (moment + after - earliest % after) % after
}

fn due_after(covered: u64, after: u64) -> u64 {
    covered + after.div_ceil(2)
}

/// Log indexes that determine how much of the log can be removed.
#[derive(Debug, Clone, Copy)]
struct LogBounds {
    covered: Option<u64>,
    purged: Option<u64>,
    log_keep: u64,
}

impl LogBounds {
    /// Index of the snapshot at which the log was last cut; the cut retained `log_keep` entries
    /// before it. `covered` cannot be used instead: each start sets it to the applied index without
    /// cutting the log, so on a node that restarts often the log would never be cut.
    fn cut_behind(&self) -> u64 {
        let cut = self.purged.map_or(0, |purged| purged + self.log_keep);
        cut.min(self.covered.unwrap_or_default())
    }

    /// The last entry that should be removed from the log.
    fn removable_up_to(&self) -> u64 {
        self.covered
            .unwrap_or_default()
            .saturating_sub(self.log_keep)
    }
}

impl Running {
    fn ends(&self) -> LogBounds {
        (self.replica).raft_metrics(|metrics| LogBounds {
            covered: index(metrics.snapshot),
            purged: index(metrics.purged),
            log_keep: self.replica.config.raft.log_keep(),
        })
    }

    /// The member that prevents openraft from cutting the log, and the number of entries that it
    /// lacks.
    fn keeps_the_log(&self) -> Option<(u64, u64)> {
        let raft = &self.replica.config.raft;
        let ends = self.ends();
        if ends.purged.unwrap_or_default() + raft.snapshot_after >= ends.removable_up_to() {
            return None;
        }
        let members = self.replica.members().into_keys();
        let lags = members.filter_map(|id| Some((id, self.replica.lag(id)?)));
        let behind = lags.filter(|(id, lag)| {
            *id != self.replica.me
                && *lag > raft.snapshot_after + raft.log_keep()
                && self.replica.is_reachable(*id)
        });
        behind.max_by_key(|(_, lag)| *lag)
    }

    fn log_outweighs_the_state(&self) -> bool {
        let applied = self.replica.views.applied_index().unwrap_or_default();
        let entries = applied.saturating_sub(self.ends().cut_behind());
        outweighs(entries, self.room.snapshot_bytes())
    }

    fn is_due_after(&self, flushed: u64) -> u64 {
        let covered = self.ends().cut_behind().max(flushed);
        due_after(covered, self.replica.config.raft.snapshot_after)
    }

    fn is_due_at(&self, flushed: u64) -> u64 {
        let replica = &self.replica;
        let covered = self.ends().cut_behind().max(flushed);
        let members = replica.members();
        let place = members.range(..replica.me).count() as u64;
        let places = (members.len() as u64).max(place + 1);
        due_at(covered, replica.config.raft.snapshot_after, (place, places))
    }

    /// Makes the rows durable, and then makes openraft remove the log entries that they contain.
    async fn cover(&self) -> io::Result<()> {
        // Check the free space first: after a failed flush, RocksDB accepts no more writes.
        self.room.check(0).await?;
        self.drafts.cover().await?;
        let trigger = self.replica.raft.trigger();
        trigger.snapshot().await.map_err(io::Error::other)
    }

    /// Makes the rows durable, so that the next start has fewer log entries to apply again.
    async fn make_rows_durable(&self) -> io::Result<()> {
        self.room.check(0).await?;
        self.drafts.flush().await
    }

    /// Makes the rows durable and drops the log entries that they contain.
    ///
    /// # Errors
    /// A snapshot is being sent, or a step failed or took too long.
    pub async fn compact(&self) -> Result<(), Refused> {
        let stopped =
            |error: openraft::errors::Fatal<TypeConfig>| Refused::Unavailable(error.to_string());
        if let Some(to) = self.sending.under_way() {
            return Err(Refused::Unavailable(format!(
                "node {to} is receiving a snapshot and needs the log after it"
            )));
        }
        let replica = &self.replica;
        let applied = replica.views.applied_index();
        let failed = |error| Refused::Unavailable(format!("cannot make the rows durable: {error}"));
        self.cover().await.map_err(failed)?;
        let give_up = Instant::now() + DEADLINE;
        while self.ends().covered < applied {
            if Instant::now() >= give_up {
                return Err(Refused::Unavailable(
                    "the log is still being cut".to_owned(),
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
    fn each_node_has_one_moment_of_its_own_per_round() {
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

    /// Each start applies the whole log, and openraft then regards all of it as covered by the
    /// snapshot.
    #[test]
    fn node_that_restarts_often_still_cuts_its_log() {
        let (after, log_keep, bytes) = (20_000, 20_000, 50 << 20);
        let (mut applied, mut purged, mut longest) = (0, None, 0);
        for start in 0..200 {
            let ends = LogBounds {
                covered: Some(applied).filter(|_| start > 0),
                purged,
                log_keep,
            };
            applied += 9_000;
            let entries = applied - ends.cut_behind();
            let is_due = applied >= due_after(ends.cut_behind(), after);
            if is_due && outweighs(entries, bytes) {
                let covers = LogBounds {
                    covered: Some(applied),
                    ..ends
                };
                purged = Some(covers.removable_up_to());
            }
            longest = longest.max(applied - purged.unwrap_or_default());
        }
        let outweighs_it = (bytes / 2 / ENTRY_BYTES) + log_keep + after;
        assert!(longest < outweighs_it, "{longest} entries in the log");
    }

    #[test]
    fn log_is_weighed_from_a_received_snapshot() {
        let ends = LogBounds {
            covered: Some(500),
            purged: Some(500),
            log_keep: 100,
        };
        assert_eq!(ends.cut_behind(), 500);
    }

    #[test]
    fn log_of_a_large_state_is_cut_once_it_outweighs_the_state() {
        assert!(outweighs(1, 0) && outweighs(1, runtime::limits().light_snapshot));
        let bytes = 160 << 20;
        assert!(!outweighs(20_000, bytes), "5 MiB of log");
        assert!(!outweighs((80 << 12) - 1, bytes));
        assert!(outweighs(80 << 12, bytes), "80 MiB of log");
        assert!(outweighs(u64::MAX, u64::MAX));
    }

    #[test]
    fn node_that_just_received_a_snapshot_skips_its_next_moment() {
        assert_eq!(due_at(1_000, 1_000, (0, 2)), 2_000);
        assert_eq!(due_at(1_000, 1_000, (1, 2)), 1_500);
        assert_eq!(due_at(1_001, 1_000, (1, 2)), 2_500);
    }

    #[test]
    fn nodes_share_moments_if_a_round_has_fewer_entries() {
        assert_eq!(due_at(0, 2, (2, 3)), 2);
        assert_eq!(due_at(5, 1, (2, 3)), 6);
    }
}
