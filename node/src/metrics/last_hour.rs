//! Requests of the last hour, by minute.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const MINUTES: u64 = 60;

/// Requests that were answered, and how many of these with 503.
type Counts = (u64, u64);

/// A ring of minutes.
pub(super) struct LastHour {
    since: Instant,
    ring: Mutex<Ring>,
}

struct Ring {
    /// The present minute, since the first.
    minute: u64,
    counts: [Counts; MINUTES as usize],
}

impl LastHour {
    pub(super) fn new() -> Self {
        let counts = [(0, 0); MINUTES as usize];
        Self {
            since: Instant::now(),
            ring: Mutex::new(Ring { minute: 0, counts }),
        }
    }

    pub(super) fn count(&self, is_unavailable: bool) {
        let mut ring = self.ring.lock();
        let (all, unavailable) = ring.at(self.since.elapsed());
        *all += 1;
        *unavailable += u64::from(is_unavailable);
    }

    /// Of each minute, the oldest first; the last one goes on.
    pub(super) fn by_minute(&self) -> Vec<Counts> {
        let mut ring = self.ring.lock();
        ring.at(self.since.elapsed());
        let oldest = (ring.minute + 1) % MINUTES;
        let (newer, older) = ring.counts.split_at(oldest as usize);
        [older, newer].concat()
    }
}

impl Ring {
    /// The counts of the minute that it is now; forgets those that are an hour old.
    fn at(&mut self, elapsed: Duration) -> &mut Counts {
        let minute = elapsed.as_secs() / 60;
        for passed in self.minute + 1..=minute.min(self.minute + MINUTES) {
            self.counts[(passed % MINUTES) as usize] = (0, 0);
        }
        self.minute = self.minute.max(minute);
        &mut self.counts[(self.minute % MINUTES) as usize]
    }
}

#[cfg(test)]
mod tests {
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
        // More than a ring.
        advance(Duration::from_secs(100 * 60)).await;
        hour.count(false);
        let counts = hour.by_minute();
        assert_eq!(counts[59], (1, 0));
        assert!(counts[..59].iter().all(|one| *one == (0, 0)));
    }
}
