//! Clock, ids and offloaded computations of a simulated node.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use placement_base::runtime;
use placement_base::world::{Clock, Offload, UuidSource};
use rand::rngs::SmallRng;
use uuid::Uuid;

use crate::seed::uuid_from;

/// Wall-clock start of every simulation: 2026-01-01T00:00:00Z, in seconds since 1970.
const EPOCH_S: u64 = 1_767_225_600;

/// Wall-clock start of every simulation.
pub fn epoch() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH_S)
}

/// The wall clock of one machine. It continues while the node is down, and can be stepped and
/// drift. All times in microseconds.
#[derive(Debug)]
pub struct WallClock(Mutex<Wall>);

#[derive(Debug, Clone, Copy)]
struct Wall {
    /// Lead over simulated time at `since`.
    ahead: i64,
    since: Duration,
    /// Gain over simulated time per second.
    gains: i64,
}

impl Wall {
    fn ahead_at(&self, now: Duration) -> i64 {
        let passed = i64::try_from(now.saturating_sub(self.since).as_millis()).expect("hours");
        self.ahead + passed * self.gains / 1000
    }
}

impl WallClock {
    /// A clock that is ahead of simulated time by `skew`.
    pub fn new(skew: Duration) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Wall {
            ahead: i64::try_from(skew.as_micros()).expect("seconds"),
            since: Duration::ZERO,
            gains: 0,
        })))
    }

    /// The clock's time at a simulated time.
    pub fn at(&self, now: Duration) -> SystemTime {
        let ahead = self.0.lock().ahead_at(now);
        let by = Duration::from_micros(ahead.unsigned_abs());
        if ahead < 0 {
            epoch() + now - by
        } else {
            epoch() + now + by
        }
    }

    /// Steps the clock forward, or back if negative.
    pub fn step(&self, by_ms: i64) {
        self.0.lock().ahead += by_ms * 1000;
    }

    /// Adds to the clock's gain per second, from `now` on.
    pub fn drift(&self, now: Duration, by: i64) {
        let mut wall = self.0.lock();
        *wall = Wall {
            ahead: wall.ahead_at(now),
            since: now,
            gains: wall.gains + by,
        };
    }
}

/// The environment of one node apart from network and disk.
#[derive(Debug)]
pub struct SimulatedWorld {
    wall: Arc<WallClock>,
    ids: Mutex<SmallRng>,
}

impl SimulatedWorld {
    /// An environment with this clock.
    pub fn new(wall: Arc<WallClock>, ids: SmallRng) -> Self {
        Self {
            wall,
            ids: Mutex::new(ids),
        }
    }
}

impl Clock for SimulatedWorld {
    fn now(&self) -> SystemTime {
        self.wall.at(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        turmoil::sim_elapsed().unwrap_or_default()
    }
}

impl UuidSource for SimulatedWorld {
    fn uuid(&self) -> Uuid {
        let mut ids = self.ids.lock();
        uuid_from(&mut ids)
    }
}

impl Offload for SimulatedWorld {
    fn run(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        Box::pin(runtime::blocking(work))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_steps_and_drifts() {
        let s = Duration::from_secs;
        let clock = WallClock::new(s(3));
        assert_eq!(clock.at(s(10)), epoch() + s(13));
        clock.step(-60_000);
        assert_eq!(clock.at(s(10)), epoch() - s(47));
        clock.drift(s(10), 500_000);
        clock.drift(s(12), 250_000);
        assert_eq!(clock.at(s(16)), epoch() - s(57) + s(16 + 1 + 3));
        clock.drift(s(16), -750_000);
        assert_eq!(clock.at(s(99)), epoch() - s(57) + s(99 + 1 + 3));
    }
}
