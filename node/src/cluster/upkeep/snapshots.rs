//! When the log is cut: at moments of each node's own, and by an operator's compaction.
//!
//! It is cut behind rows that are durable: they are this node's snapshot, and cost what has
//! changed. That is done here and not by openraft, which stops a node when it fails: a full disk or
//! a lack of descriptors passes, and until then the log is kept.
//!
//! A node that needs more than the log has is sent the whole state. So the log is cut only where it
//! outweighs that.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use placement_raft_store::{TypeConfig, runtime};
use tokio::time::{Instant, sleep};

use super::Retries;
use crate::cluster::error::Refused;
use crate::cluster::replica::index;
use crate::cluster::running::Running;
use crate::rpc::message::Lane;

/// How long openraft may take to notice a snapshot that is built.
const DEADLINE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);
/// How often it is looked whether a snapshot is still being sent.
const SENDING: Duration = Duration::from_secs(1);
/// What an entry of the log weighs, about, in bytes.
const ENTRY_BYTES: u64 = 256;

/// Makes the rows durable whenever it is this node's turn, and cuts the log behind them where it is
/// long enough.
pub(crate) async fn watch(node: Arc<Running>) {
    let mut retries = Retries::default();
    // The last entry whose rows are durable, though no snapshot covers it.
    let mut flushed = 0;
    loop {
        // Who the members are is looked up late: a new node does not know it yet.
        for due in [Running::is_due_after, Running::is_due_at] {
            if (node.replica.views.wait_applied(due(&node, flushed)).await).is_err() {
                return;
            }
        }
        // A snapshot that came in in the meantime has put it off.
        let applied = node.replica.views.applied_index();
        if applied < Some(node.is_due_at(flushed)) {
            continue;
        }
        // A node that receives a snapshot needs it, and the log behind it, to the end.
        while node.sending.under_way().is_some() {
            sleep(SENDING).await;
            if node.sending.under_way().is_none() {
                // openraft, which notices it later, then keeps the log that it sends from.
                sleep(SENDING).await;
            }
        }
        let done = match node.log_outweighs_the_state() {
            true => node.cover().await,
            false => node.make_rows_durable().await,
        };
        match done {
            Ok(()) => {
                flushed = applied.unwrap_or_default();
                retries.are_over("the rows can be made durable");
            }
            Err(error) => {
                if node.replica.failure().is_some() {
                    return;
                }
                let what = "the rows cannot be made durable, and the log grows";
                sleep(retries.after(what, error)).await;
            }
        }
    }
}

/// As the leader: has a member that lacks more than the log is to keep be sent a snapshot.
///
/// While entries are sent to a member, openraft removes none that it has not acknowledged. One that
/// takes them more slowly than they come would keep all of the log. Once its stream has ended, the
/// log is cut, and the member is sent the state.
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
                "the log was kept for a member that takes entries more slowly than they come; it is to be sent a snapshot"
            );
            node.replica
                .given_up_streams
                .fetch_add(1, Ordering::Relaxed);
            node.peers
                .close(to, Lane::Log, "it lacks more than the log is to keep");
        }
    }
}

/// Whether so many entries of the log outweigh a snapshot of so many bytes.
fn outweighs(entries: u64, bytes: u64) -> bool {
    bytes <= runtime::limits().light_snapshot || entries.saturating_mul(ENTRY_BYTES) >= bytes / 2
}

/// The entry after which the node at one of the `places` of the cluster makes its rows durable, if
/// it has done so for those up to `covered`.
///
/// The log is cut into rounds of `after` entries, and in each of them every node has a moment of
/// its own, so that not all of them are busy with it at once. A moment that follows too soon is
/// left out.
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
struct Ends {
    covered: Option<u64>,
    purged: Option<u64>,
    log_keep: u64,
}

impl Ends {
    /// The last entry that the log was cut behind, with `log_keep` entries kept before it. A start
    /// covers all that it has applied without cutting anything, so what is covered does not show
    /// it: the log of a node that restarts often would never be cut.
    fn cut_behind(&self) -> u64 {
        let cut = self.purged.map_or(0, |purged| purged + self.log_keep);
        cut.min(self.covered.unwrap_or_default())
    }

    /// The last entry that is to be removed from the log.
    fn removable_up_to(&self) -> u64 {
        self.covered
            .unwrap_or_default()
            .saturating_sub(self.log_keep)
    }
}

impl Running {
    fn ends(&self) -> Ends {
        (self.replica).raft_metrics(|metrics| Ends {
            covered: index(metrics.snapshot),
            purged: index(metrics.purged),
            log_keep: self.replica.config.raft.log_keep(),
        })
    }

    /// The member for which the log is kept that was to be cut, and how many entries it lacks.
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

    /// Makes the rows durable, and has openraft cut the log behind them.
    async fn cover(&self) -> io::Result<()> {
        // Without room RocksDB is not tried: it could take no writes any more.
        self.room.check(0).await?;
        self.drafts.cover().await?;
        let trigger = self.replica.raft.trigger();
        trigger.snapshot().await.map_err(io::Error::other)
    }

    /// Has the next start apply less of the log again.
    async fn make_rows_durable(&self) -> io::Result<()> {
        self.room.check(0).await?;
        self.drafts.flush().await
    }

    /// Makes the rows durable and drops the log entries that they hold. Returns once it is done.
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
        let failed =
            |error| Refused::Unavailable(format!("the rows cannot be made durable: {error}"));
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

    /// Each start finds its whole log applied, and openraft takes that for its snapshot.
    #[test]
    fn a_node_that_restarts_often_still_cuts_its_log() {
        let (after, log_keep, bytes) = (20_000, 20_000, 50 << 20);
        let (mut applied, mut purged, mut longest) = (0, None, 0);
        for start in 0..200 {
            let ends = Ends {
                covered: Some(applied).filter(|_| start > 0),
                purged,
                log_keep,
            };
            applied += 9_000;
            let entries = applied - ends.cut_behind();
            let is_due = applied >= due_after(ends.cut_behind(), after);
            if is_due && outweighs(entries, bytes) {
                let covers = Ends {
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
    fn after_a_snapshot_came_in_the_log_is_weighed_from_there() {
        let ends = Ends {
            covered: Some(500),
            purged: Some(500),
            log_keep: 100,
        };
        assert_eq!(ends.cut_behind(), 500);
    }

    #[test]
    fn the_log_of_a_large_state_is_cut_where_it_outweighs_it() {
        assert!(outweighs(1, 0) && outweighs(1, runtime::limits().light_snapshot));
        let bytes = 160 << 20;
        assert!(!outweighs(20_000, bytes), "5 MiB of log");
        assert!(!outweighs((80 << 12) - 1, bytes));
        assert!(outweighs(80 << 12, bytes), "80 MiB of log");
        assert!(outweighs(u64::MAX, u64::MAX));
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
