//! How long other nodes take to acknowledge log entries, as measured by the leader.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Measurements older than this are ignored.
const RECENT: Duration = Duration::from_secs(60);
/// Measurements within this time count as one, so that a busy second weighs as much as another: a
/// node that is stopped most of the time acknowledges many entries in the remaining time.
const TOGETHER: Duration = Duration::from_secs(1);
/// With fewer seconds, a single stall of a disk would count as a slow node.
const SECONDS_MIN: usize = 10;

/// Times from sending log entries to their acknowledgement, by node.
#[derive(Debug, Default)]
pub struct Acknowledgements {
    measured: Mutex<BTreeMap<u64, VecDeque<Second>>>,
}

/// The measurements of one second.
#[derive(Debug)]
struct Second {
    begun: Instant,
    sum: Duration,
    count: u32,
}

impl Acknowledgements {
    /// Records that a node has just acknowledged entries that were sent this long ago.
    pub(super) fn note(&self, node: u64, took: Duration) {
        let now = Instant::now();
        let mut measured = self.measured.lock();
        let seconds = measured.entry(node).or_default();
        while (seconds.front()).is_some_and(|one| now.duration_since(one.begun) > RECENT) {
            seconds.pop_front();
        }
        match seconds.back_mut() {
            Some(last) if now.duration_since(last.begun) < TOGETHER => {
                last.sum += took;
                last.count = last.count.saturating_add(1);
            }
            _ => seconds.push_back(Second {
                begun: now,
                sum: took,
                count: 1,
            }),
        }
    }

    /// The median over the seconds of the last minute, of the mean time in each. Nodes that
    /// acknowledged entries in fewer than ten seconds are omitted.
    pub fn typical(&self) -> BTreeMap<u64, Duration> {
        let measured = self.measured.lock();
        let of_node = |seconds: &VecDeque<Second>| {
            let recent = seconds.iter().filter(|one| one.begun.elapsed() <= RECENT);
            let mut means: Vec<Duration> = recent.map(|one| one.sum / one.count).collect();
            means.sort_unstable();
            (means.len() >= SECONDS_MIN).then(|| means[means.len() / 2])
        };
        let known = measured.iter();
        known
            .filter_map(|(node, seconds)| Some((*node, of_node(seconds)?)))
            .collect()
    }

    /// Forgets all nodes except those for which `is_kept` holds.
    pub fn keep(&self, is_kept: impl Fn(u64) -> bool) {
        self.measured.lock().retain(|node, _| is_kept(*node));
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_stopped_most_of_the_time_is_slow_under_any_load() {
        let measured = Acknowledgements::default();
        for _ in 0..20 {
            // What arrived while it was stopped, and what it acknowledges while it runs.
            for stopped in [800, 600, 400, 200] {
                measured.note(2, ms(stopped));
            }
            measured.note(2, ms(1));
            measured.note(3, ms(1));
            advance(TOGETHER).await;
        }
        let typical = measured.typical();
        assert_eq!((typical[&2], typical[&3]), (ms(2001) / 5, ms(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_stall_and_few_or_old_measurements_do_not_count() {
        let measured = Acknowledgements::default();
        for second in 0..SECONDS_MIN {
            assert_eq!(measured.typical(), BTreeMap::new());
            measured.note(2, if second == 3 { ms(9000) } else { ms(2) });
            advance(TOGETHER).await;
        }
        assert_eq!(measured.typical(), BTreeMap::from([(2, ms(2))]));
        advance(RECENT).await;
        assert_eq!(measured.typical(), BTreeMap::new());
        measured.keep(|node| node != 2);
        assert!(measured.measured.lock().is_empty());
    }
}
