//! Limits the number of unanswered writes. Each node counts the writes of its clients; the leader
//! also counts the writes of all nodes. When more writes wait than can be answered soon, further
//! writes are rejected immediately: if a client times out while its write is queued, the write is
//! wasted work and delays the writes after it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::settings::Settings;

/// The completion rate is measured only while more writes than this wait. This many writes may
/// always wait, however slow the node is, because they fit into one batch.
const CROWD: usize = 64;
/// Number of writes that may wait while the completion rate is unknown.
const BURST: usize = 1024;
/// For this many seconds a measured rate is not replaced by a lower one. So after a short outage
/// the node does not reject the clients that waited for the outage to end. A rate is forgotten if
/// no measurement confirms it for twice this time.
const REMEMBERED_S: u64 = 10;
/// Minimum duration of a measurement; shorter measurements are too inaccurate.
const MEANINGFUL: Duration = Duration::from_millis(250);

/// Admission control for writes that wait for their outcome.
#[derive(Clone)]
pub struct Backlog {
    whose: &'static str,
    bytes_max: usize,
    wait_max: Duration,
    begun: Instant,
    taken: Arc<Mutex<QueueUsage>>,
}

#[derive(Default)]
struct QueueUsage {
    waiting: usize,
    bytes: usize,
    /// The current second, counted from `begun`.
    second: u64,
    /// Set while a measurement is running: when it began, within this second, and the number of
    /// writes completed since then.
    crowded: Option<(Duration, usize)>,
    /// Highest rate of completed writes per second under load, and the second in which it was
    /// measured.
    per_second: Option<(usize, u64)>,
}

impl QueueUsage {
    /// At the first call in a new second of the clock: ends the measurement of the earlier second,
    /// records its rate if it is usable, and forgets a rate that is too old. Begins a measurement
    /// if more than `CROWD` writes wait and no measurement is running.
    fn look(&mut self, now: Duration) {
        const SECOND: Duration = Duration::from_secs(1);
        let second = now.as_secs();
        if second > self.second {
            let passed = self.crowded.take();
            let lasted = passed.map_or(Duration::ZERO, |(since, _)| SECOND - since);
            if let Some((_, count @ 1..)) = passed.filter(|_| lasted >= MEANINGFUL) {
                let rate = (count as f64 / lasted.as_secs_f64()) as usize;
                let is_old =
                    |(before, at): (usize, u64)| before <= rate || at + REMEMBERED_S < self.second;
                if self.per_second.is_none_or(is_old) {
                    self.per_second = Some((rate, self.second));
                }
            }
            if (self.per_second).is_some_and(|(_, at)| at + 2 * REMEMBERED_S < second) {
                self.per_second = None;
            }
            self.second = second;
        }
        if self.waiting > CROWD && self.crowded.is_none() {
            self.crowded = Some((now - Duration::from_secs(second), 0));
        }
    }
}

/// Permission for one write to wait. Dropping it lets another write wait.
pub(crate) struct Permit {
    backlog: Backlog,
    bytes: usize,
}

impl Backlog {
    /// A backlog with the limits of `[cluster]`. `whose` names its owner in messages.
    pub fn new(whose: &'static str, config: &Settings) -> Self {
        Self {
            whose,
            bytes_max: config.cluster.backlog_bytes,
            wait_max: Duration::from_millis(config.cluster.backlog_ms),
            begun: Instant::now(),
            taken: Arc::default(),
        }
    }

    /// Returns a permit for a write with a record of `bytes` bytes, or the reason for the
    /// rejection. If no other write waits, any write is admitted.
    pub(crate) fn permit(&self, bytes: usize) -> Result<Permit, String> {
        let mut taken = self.lock();
        let most = match taken.per_second {
            Some((rate, _)) => CROWD.max((rate as f64 * self.wait_max.as_secs_f64()) as usize),
            None => BURST,
        };
        if !self.wait_max.is_zero() && taken.waiting >= most {
            let rate = taken.per_second.map(|(rate, _)| rate).unwrap_or_default();
            return Err(format!(
                "{} has {} writes before this one and completes {rate} per second",
                self.whose, taken.waiting
            ));
        }
        if taken.waiting > 0 && taken.bytes + bytes > self.bytes_max {
            return Err(format!(
                "{} has {} bytes of writes before this one",
                self.whose, taken.bytes
            ));
        }
        taken.waiting += 1;
        taken.bytes += bytes;
        Ok(Permit {
            backlog: self.clone(),
            bytes,
        })
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, QueueUsage> {
        let mut taken = self.taken.lock();
        taken.look(self.begun.elapsed());
        taken
    }
}

impl Permit {
    /// Counts the write as completed, and lets another write wait.
    pub(crate) fn answered(self) {
        let mut taken = self.backlog.lock();
        if let Some((_, carried_out)) = &mut taken.crowded {
            *carried_out += 1;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.backlog.taken.lock();
        taken.waiting -= 1;
        taken.bytes -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn backlog(wait_max: Duration) -> Backlog {
        let mut config = Settings::default();
        config.cluster.backlog_bytes = 2000;
        config.cluster.backlog_ms = wait_max.as_millis() as u64;
        Backlog::new("the leader", &config)
    }

    fn fill(backlog: &Backlog) -> Vec<Permit> {
        std::iter::from_fn(|| backlog.permit(1).ok()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn queue_is_bounded_by_best_recent_rate() {
        let backlog = backlog(SECOND / 2);
        // The rate is unknown yet: a burst is admitted.
        let mut crowd = fill(&backlog);
        assert_eq!(crowd.len(), BURST);
        tokio::time::advance(SECOND / 2).await;
        for permit in crowd.drain(..400) {
            permit.answered();
        }
        tokio::time::advance(SECOND).await;
        let why = backlog.permit(1).err().unwrap();
        assert!(why.contains("400 per second"), "{why}");
        drop(crowd);
        let crowd = fill(&backlog);
        assert_eq!(crowd.len(), 200);

        // A short outage does not make the backlog reject writes that wait for its end; a long one
        // is forgotten.
        tokio::time::advance(5 * SECOND).await;
        assert_eq!(fill(&backlog).len(), 0);
        drop(crowd);
        assert_eq!(fill(&backlog).len(), 200);
        tokio::time::advance(30 * SECOND).await;
        assert_eq!(fill(&backlog).len(), BURST);
    }

    #[tokio::test(start_paused = true)]
    async fn rate_without_crowd_is_not_a_bound() {
        let backlog = backlog(SECOND);
        for _ in 0..5 {
            backlog.permit(1).ok().unwrap().answered();
            tokio::time::advance(SECOND).await;
        }
        assert_eq!(fill(&backlog).len(), BURST);
    }

    #[tokio::test]
    async fn bytes_are_bounded_and_one_write_is_always_admitted() {
        let backlog = backlog(Duration::ZERO);
        let large = backlog.permit(5000).ok().unwrap();
        assert!(backlog.permit(1).is_err());
        drop(large);
        let _some = backlog.permit(1200).ok().unwrap();
        assert!(backlog.permit(1200).is_err());
        assert!(backlog.permit(800).is_ok());
    }
}
