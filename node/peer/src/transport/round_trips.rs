//! Round trips to other nodes, and the wall clocks of these nodes. Both are measured by pings on
//! the connection for heartbeats. On this connection pings need not wait for other messages, and
//! are answered immediately.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long the shortest round trip is remembered: at least this, at most twice as long.
const RECENT: Duration = Duration::from_secs(60);
/// One measurement contributes 1/8 to the mean, as in RFC 6298.
const WEIGHT: u32 = 8;
/// How long a reported clock remains valid. Voters are pinged every two seconds.
const CLOCK_RECENT: Duration = Duration::from_secs(10);

/// The round trip to another node. It does not expire if the node stops answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// The shortest round trip of the last one to two minutes. It depends only on the distance, not
    /// on queues.
    pub least: Duration,
    /// The smoothed mean, including delays in queues on the path.
    pub mean: Duration,
}

/// Round trips to all measured nodes.
#[derive(Default)]
pub struct RoundTrips {
    measured: Mutex<BTreeMap<u64, PeerMeasurements>>,
}

struct PeerMeasurements {
    mean: Duration,
    least: Duration,
    least_before: Duration,
    since: Instant,
    /// The wall clock of the node, in microseconds since 1970, and the local time at which it was
    /// read.
    clock: Option<(i64, Instant)>,
}

impl RoundTrips {
    /// Records a measurement that has just ended. `shown` is the clock of the other node, which was
    /// read about half a round trip ago.
    pub(super) fn note(&self, node: u64, took: Duration, shown: Option<i64>) {
        let now = Instant::now();
        let mut measured = self.measured.lock();
        let measured = measured.entry(node).or_insert_with(|| PeerMeasurements {
            mean: took,
            least: took,
            least_before: took,
            since: now,
            clock: None,
        });
        if measured.since.elapsed() >= RECENT {
            measured.since = now;
            measured.least_before = measured.least;
            measured.least = took;
        }
        measured.least = measured.least.min(took);
        measured.mean = (measured.mean * (WEIGHT - 1) + took) / WEIGHT;
        let shown = shown.map(|shown| (shown, now.checked_sub(took / 2).unwrap_or(now)));
        measured.clock = shown.or(measured.clock);
    }

    /// The round trip to one node, if it was measured.
    pub fn to(&self, node: u64) -> Option<RoundTrip> {
        self.measured.lock().get(&node).map(PeerMeasurements::read)
    }

    /// The round trips to all measured nodes.
    pub fn all(&self) -> BTreeMap<u64, RoundTrip> {
        let measured = self.measured.lock();
        measured
            .iter()
            .map(|(node, way)| (*node, way.read()))
            .collect()
    }

    /// The current wall clock of a node, in microseconds since 1970, if it was reported recently.
    pub fn clock_of(&self, node: u64) -> Option<i64> {
        let (shown, at) = self.measured.lock().get(&node)?.clock?;
        let since = at.elapsed();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        (since <= CLOCK_RECENT).then(|| shown.saturating_add(micros))
    }

    /// Forgets all nodes except those for which `is_kept` holds.
    pub fn keep(&self, is_kept: impl Fn(u64) -> bool) {
        self.measured.lock().retain(|node, _| is_kept(*node));
    }
}

impl PeerMeasurements {
    fn read(&self) -> RoundTrip {
        RoundTrip {
            least: self.least.min(self.least_before),
            mean: self.mean,
        }
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
    async fn least_round_trip_covers_the_last_minutes_and_the_mean_follows_slowly() {
        let ways = RoundTrips::default();
        assert!(ways.all().is_empty());
        ways.note(2, ms(100), None);
        ways.note(2, ms(180), None);
        let way = ways.all()[&2];
        assert_eq!((way.least, way.mean), (ms(100), ms(110)));
        // The path has become longer: the minimum follows when the short measurements are older
        // than one to two minutes.
        for (pause, least) in [(RECENT / 2, ms(100)), (RECENT, ms(100)), (RECENT, ms(150))] {
            advance(pause).await;
            ways.note(2, ms(150), None);
            assert_eq!(ways.all()[&2].least, least);
        }
        // The minimum follows a shorter round trip at once.
        ways.note(2, ms(30), None);
        assert_eq!(ways.all()[&2].least, ms(30));
        ways.keep(|node| node != 2);
        assert!(ways.all().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn reported_clock_advances_and_expires_after_ten_seconds() {
        let ways = RoundTrips::default();
        assert_eq!(ways.clock_of(2), None);
        ways.note(2, ms(2_000), Some(1_000_000));
        assert_eq!(ways.clock_of(2), Some(2_000_000));
        advance(ms(9_000)).await;
        ways.note(2, ms(2_000), None);
        assert_eq!(ways.clock_of(2), Some(11_000_000));
        advance(ms(1_000)).await;
        assert_eq!(ways.clock_of(2), None);
        ways.note(2, Duration::ZERO, Some(i64::MAX));
        advance(ms(1_000)).await;
        assert_eq!(ways.clock_of(2), Some(i64::MAX));
    }
}
