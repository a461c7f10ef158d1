//! How long a word to another node and its answer take, measured by the pings of the connection that
//! heartbeats use: they wait behind nothing on this side, and the other answers them at once.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// For how long the shortest of the round trips is remembered, at least; at most twice as long.
const RECENT: Duration = Duration::from_secs(60);
/// What one measurement counts in the mean, as RFC 6298 has it.
const WEIGHT: u32 = 8;

/// What is known of the way to another node. It stays known while nothing is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    /// The shortest of the last minute or two: what the distance takes.
    pub(crate) least: Duration,
    /// The smoothed mean, with what waits on the way.
    pub(crate) mean: Duration,
}

/// The way to each node that was measured.
#[derive(Default)]
pub(crate) struct RoundTrips {
    known: Mutex<BTreeMap<u64, Known>>,
}

struct Known {
    mean: Duration,
    least: Duration,
    least_before: Duration,
    since: Instant,
}

impl RoundTrips {
    /// Notes one measurement.
    pub(super) fn note(&self, node: u64, took: Duration) {
        let mut known = self.known.lock();
        let known = known.entry(node).or_insert_with(|| Known {
            mean: took,
            least: took,
            least_before: took,
            since: Instant::now(),
        });
        if known.since.elapsed() >= RECENT {
            known.since = Instant::now();
            known.least_before = known.least;
            known.least = took;
        }
        known.least = known.least.min(took);
        known.mean = (known.mean * (WEIGHT - 1) + took) / WEIGHT;
    }

    /// The way to one node, if it was measured.
    pub(crate) fn to(&self, node: u64) -> Option<RoundTrip> {
        self.known.lock().get(&node).map(Known::read)
    }

    /// The ways to all nodes that were measured.
    pub(crate) fn all(&self) -> BTreeMap<u64, RoundTrip> {
        let known = self.known.lock();
        known
            .iter()
            .map(|(node, way)| (*node, way.read()))
            .collect()
    }

    /// Forgets all nodes but those.
    pub(crate) fn keep(&self, is_of_use: impl Fn(u64) -> bool) {
        self.known.lock().retain(|node, _| is_of_use(*node));
    }
}

impl Known {
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
    async fn the_least_is_of_the_last_minutes_and_the_mean_follows_slowly() {
        let ways = RoundTrips::default();
        assert!(ways.all().is_empty());
        ways.note(2, ms(100));
        ways.note(2, ms(180));
        let way = ways.all()[&2];
        assert_eq!((way.least, way.mean), (ms(100), ms(110)));
        // The way has become longer: that is believed once the short ones are minutes ago.
        for (pause, least) in [(RECENT / 2, ms(100)), (RECENT, ms(100)), (RECENT, ms(150))] {
            advance(pause).await;
            ways.note(2, ms(150));
            assert_eq!(ways.all()[&2].least, least);
        }
        // A shorter one is believed at once.
        ways.note(2, ms(30));
        assert_eq!(ways.all()[&2].least, ms(30));
        ways.keep(|node| node != 2);
        assert!(ways.all().is_empty());
    }
}
