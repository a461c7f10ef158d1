//! Cuts the log, at moments of each node's own and when an operator compacts.
//!
//! The log is cut before rows that are durable: these are this node's snapshot, and cost only as
//! much as has changed. openraft does not trigger this, because it stops a node when a snapshot
//! fails: a full disk or a lack of descriptors passes, and until then the log is kept.
//!
//! A node that needs more than the log has must receive the whole state. So the log is cut only
//! once it outweighs the state.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

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

/// Makes the rows durable whenever it is this node's turn, and cuts the log before them if it is
/// long enough.
pub(crate) async fn watch(node: Arc<Running>) {
    let mut retries = Retries::default();
    // The last entry with durable rows that no snapshot covers.
    let mut flushed = 0;
    loop {
        // The members decide whose turn it is. They are read only after the first wait, as a new
        // node does not know them before.
        for due in [Running::is_due_after, Running::is_due_at] {
            if (node.replica.views.wait_applied(due(&node, flushed)).await).is_err() {
                return;
            }
        }
        // A received snapshot has postponed the turn.
        let applied = node.replica.views.applied_index();
        if applied < Some(node.is_due_at(flushed)) {
            continue;
        }
        // A node that receives a snapshot needs it, and the log after it, until the end.
        while node.sending.under_way().is_some() {
            sleep(SENDING).await;
            if node.sending.under_way().is_none() {
                // openraft notices the end of the transfer a little later, and then itself keeps
                // the entries that it goes on to send.
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
                retries.succeeded("the rows are made durable");
            }
            Err(error) => {
                if node.replica.failure().is_some() {
                    return;
                }
                let what = "cannot make the rows durable; the log grows";
                sleep(retries.next_pause(what, error)).await;
            }
        }
    }
}

/// As the leader: makes a member that lags by more than the log should keep receive a snapshot.
///
/// While entries are sent to a member, openraft removes none that the member has not acknowledged,
/// so a member that is slower than the writes would keep the whole log. Once its stream has ended,
/// the log is cut and the member receives the state.
pub(crate) async fn end_streams_of_those_behind(node: Arc<Running>) {
    loop {
        sleep(SENDING).await;
        if !node.replica.leads() || node.sending.under_way().is_some() {
            continue;
        }
        if let Some((to, lag)) = node.keeps_the_log() {
            tracing::warn!(
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

/// Whether `entries` log entries outweigh a snapshot of `bytes` bytes.
fn outweighs(entries: u64, bytes: u64) -> bool {
    bytes <= runtime::limits().light_snapshot || entries.saturating_mul(ENTRY_BYTES) >= bytes / 2
}

/// The entry after which a node makes its rows durable, given that those up to `covered` are
/// durable. `place` is the node's position among the `places` members.
///
/// The log is divided into rounds of `after` entries. In each round every node has a moment of its
/// own, so that not all are busy at once. A moment that follows too soon is skipped.
fn due_at(covered: u64, after: u64, (place, places): (u64, u64)) -> u64 {
    let moment = after / places * place;
    let earliest = due_after(covered, after);
    earliest + (moment + after - earliest % after) % after
}

fn due_after(covered: u64, after: u64) -> u64 {
    covered + after.div_ceil(2)
}

/// Where the log begins, and where it may begin.
#[derive(Debug, Clone, Copy)]
struct LogBounds {
    covered: Option<u64>,
    purged: Option<u64>,
    log_keep: u64,
}

impl LogBounds {
    /// The last entry that the log was cut before, with `log_keep` entries kept in front of it. A
    /// start covers everything that it has applied without cutting anything, so `covered` does not
    /// show it: the log of a node that restarts often would never be cut.
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

    /// The member for which the log is kept although it should be cut, and how many entries the
    /// member lacks.
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

    /// Makes the rows durable, and makes openraft cut the log before them.
    async fn cover(&self) -> io::Result<()> {
        // Without room, do not try RocksDB: after a failed flush it would accept no more writes.
        self.room.check(0).await?;
        self.drafts.cover().await?;
        let trigger = self.replica.raft.trigger();
        trigger.snapshot().await.map_err(io::Error::other)
    }

    /// Makes the rows durable, so that the next start applies less of the log again.
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

    /// Each start applies its whole log, which openraft takes for its snapshot.
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
