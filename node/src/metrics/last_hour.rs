//! Requests of the last hour, by minute.

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

const MINUTES: usize = 60;

/// Answered requests, and how many of them with 503.
type Counts = (u64, u64);

/// Counts per minute, the oldest first.
pub(super) struct LastHour {
    since: Instant,
    minutes: Mutex<Minutes>,
}

struct Minutes {
    /// Number of minutes before the current one.
    passed: u64,
    counts: [Counts; MINUTES],
}

impl LastHour {
    pub(super) fn new() -> Self {
        let counts = [(0, 0); MINUTES];
        Self {
            since: Instant::now(),
            minutes: Mutex::new(Minutes { passed: 0, counts }),
        }
    }

    fn now(&self) -> MutexGuard<'_, Minutes> {
        let mut minutes = self.minutes.lock();
        let passed = self.since.elapsed().as_secs() / 60;
        for _ in (minutes.passed..passed).take(MINUTES) {
            minutes.counts.rotate_left(1);
            minutes.counts[MINUTES - 1] = (0, 0);
        }
        minutes.passed = passed;
        minutes
    }

    pub(super) fn count(&self, is_unavailable: bool) {
        let (all, unavailable) = &mut self.now().counts[MINUTES - 1];
        *all += 1;
        *unavailable += u64::from(is_unavailable);
    }

    /// The counts of each minute, the oldest first. The last minute is the current one.
    pub(super) fn by_minute(&self) -> Vec<Counts> {
        self.now().counts.into()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn minutes_pass_and_are_forgotten_after_an_hour() {
        let hour = LastHour::new();
        hour.count(false);
        hour.count(true);
        advance(Duration::from_secs(60)).await;
        hour.count(false);
        let counts = hour.by_minute();
        assert_eq!(counts.len(), 60);
        assert_eq!(counts[58..], [(2, 1), (1, 0)]);
        advance(Duration::from_secs(59 * 60)).await;
        let counts = hour.by_minute();
        assert_eq!((counts[0], counts[59]), ((1, 0), (0, 0)));
        // Longer than the ring.
        advance(Duration::from_secs(100 * 60)).await;
        hour.count(false);
        let counts = hour.by_minute();
        assert_eq!(counts[59], (1, 0));
        assert!(counts[..59].iter().all(|one| *one == (0, 0)));
    }
}
