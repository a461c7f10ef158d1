//! The time that the leader puts on commands.

use std::sync::Arc;

use placement_model::types::Timestamp;

use crate::world::Clock;

/// Stamps commands with a time that never goes back, not even from leader to leader.
pub(super) struct Stamper {
    clock: Arc<dyn Clock>,
    last: Timestamp,
}

impl Stamper {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            last: Timestamp(0),
        }
    }

    /// The time for the next command of the log, in microseconds since 1970: after all of its own,
    /// and after that of the last command that was applied, whoever stamped it.
    pub(super) fn stamp(&mut self, applied: Option<Timestamp>) -> Timestamp {
        let since = self
            .clock
            .now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let now = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        let before = self.last.max(applied.unwrap_or(Timestamp(0)));
        self.last = Timestamp(now.max(before.0.saturating_add(1)));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// A clock that says what it is told, in seconds since 1970.
    struct Told(Mutex<u64>);

    impl Clock for Told {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH + Duration::from_secs(*self.0.lock().unwrap())
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[test]
    fn stamps_rise_although_the_clock_goes_back_and_an_earlier_leader_was_ahead() {
        let clock = Arc::new(Told(Mutex::new(1_000)));
        let mut stamper = Stamper::new(clock.clone());
        assert_eq!(stamper.stamp(None), Timestamp(1_000_000_000));
        *clock.0.lock().unwrap() = 900;
        assert_eq!(stamper.stamp(None), Timestamp(1_000_000_001));
        // Applied, loaded or installed: another leader's clock was ahead.
        let ahead = Some(Timestamp(2_000_000_000));
        assert_eq!(stamper.stamp(ahead), Timestamp(2_000_000_001));
        assert_eq!(stamper.stamp(ahead), Timestamp(2_000_000_002));
        *clock.0.lock().unwrap() = 3_000;
        assert_eq!(stamper.stamp(ahead), Timestamp(3_000_000_000));
    }
}
