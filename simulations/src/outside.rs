//! Clock, ids and computations of a simulated node.

use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use placement_node::world::{Clock, Offload, UuidSource};
use rand::Rng;
use rand::rngs::SmallRng;
use uuid::{Builder, Uuid};

/// When every simulation begins: 2026-01-01T00:00:00Z, in seconds since 1970.
const EPOCH_S: u64 = 1_767_225_600;

/// The moment at which every simulation begins.
pub fn epoch() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH_S)
}

/// What one node sees of the world beside network and disk.
#[derive(Debug)]
pub struct SimulatedWorld {
    skew: Duration,
    ids: Mutex<SmallRng>,
}

impl SimulatedWorld {
    /// A world whose clock is ahead of simulated time by `skew`.
    pub fn new(skew: Duration, ids: SmallRng) -> Self {
        Self {
            skew,
            ids: Mutex::new(ids),
        }
    }
}

impl Clock for SimulatedWorld {
    fn now(&self) -> SystemTime {
        epoch() + self.monotonic() + self.skew
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

/// A random UUID from a stream of the seed.
pub fn uuid_from(random: &mut SmallRng) -> Uuid {
    Builder::from_random_bytes(random.random()).into_uuid()
}

impl Offload for SimulatedWorld {
    fn run(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        work();
        Box::pin(std::future::ready(()))
    }
}
