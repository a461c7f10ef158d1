//! One number from which everything uncertain follows, in streams that do not disturb each other:
//! another fault more does not change what the clients do.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use uuid::{Builder, Uuid};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The seed of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream of randomness for one purpose (`"network"`, `"workload"`, `"faults"`, `"disk"`).
    pub fn stream(self, purpose: &str) -> SmallRng {
        SmallRng::seed_from_u64(self.number(purpose))
    }

    /// A number for one purpose.
    pub fn number(self, purpose: &str) -> u64 {
        xxh3_64_with_seed(purpose.as_bytes(), self.0)
    }
}

/// A UUID that follows from a stream.
pub fn uuid_from(random: &mut SmallRng) -> Uuid {
    Builder::from_random_bytes(random.random()).into_uuid()
}
