//! The wall clocks of other nodes, as they say with each answer to a ping that measures a round trip.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use placement_model::types::Timestamp;
use tokio::time::Instant;

/// For how long a report counts. Voters are asked every two seconds.
const RECENT: Duration = Duration::from_secs(10);

/// The clock of each node that has reported it.
#[derive(Default)]
pub(crate) struct Clocks {
    /// What it showed, and when.
    known: Mutex<BTreeMap<u64, (Timestamp, Instant)>>,
}

impl Clocks {
    /// Notes what a clock showed in the middle of a round trip that has just ended.
    pub(super) fn note(&self, node: u64, shown: Timestamp, round_trip: Duration) {
        let now = Instant::now();
        let at = now.checked_sub(round_trip / 2).unwrap_or(now);
        self.known.lock().insert(node, (shown, at));
    }

    /// What the clock of a node shows now, if it was reported lately.
    pub(crate) fn of(&self, node: u64) -> Option<Timestamp> {
        let (shown, at) = *self.known.lock().get(&node)?;
        let since = at.elapsed();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        (since <= RECENT).then(|| Timestamp(shown.0.saturating_add(micros)))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reported_clock_goes_on_and_counts_for_ten_seconds() {
        let clocks = Clocks::default();
        assert_eq!(clocks.of(2), None);
        clocks.note(2, Timestamp(1_000_000), Duration::from_secs(2));
        assert_eq!(clocks.of(2), Some(Timestamp(2_000_000)));
        advance(Duration::from_secs(9)).await;
        assert_eq!(clocks.of(2), Some(Timestamp(11_000_000)));
        advance(Duration::from_secs(1)).await;
        assert_eq!(clocks.of(2), None);
        clocks.note(2, Timestamp(i64::MAX), Duration::ZERO);
        advance(Duration::from_secs(1)).await;
        assert_eq!(clocks.of(2), Some(Timestamp(i64::MAX)));
    }
}
