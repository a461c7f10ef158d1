//! The seed of all randomness, split into independent streams: an additional fault does not change
//! the choices of clients.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use uuid::{Builder, Uuid};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The seed of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The random stream for one purpose (`"network"`, `"workload"`, `"faults"`, `"disk"`).
    pub fn stream(self, purpose: &str) -> SmallRng {
        SmallRng::seed_from_u64(self.number(purpose))
    }

    /// A random number for one purpose.
    pub fn number(self, purpose: &str) -> u64 {
        xxh3_64_with_seed(purpose.as_bytes(), self.0)
    }
}

/// Draws a UUID from a stream.
pub fn uuid_from(random: &mut SmallRng) -> Uuid {
    Builder::from_random_bytes(random.random()).into_uuid()
}
