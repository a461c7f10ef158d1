//! A thread that is a simulation: tasks stay on its `LocalSet`, blocking work runs in place, random
//! numbers are derived from a seed, and files are on simulated disks.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use placement_base::coverage::RarePath;
use placement_base::platform::{Installed, Platform, Steps};
use placement_base::runtime::{self, Limits};
use rand_openraft::rngs::StdRng;
use rand_openraft::{Rng, SeedableRng};
use tokio::task::JoinHandle;

use crate::gate::{Gate, NoGate};
use crate::{coverage, files};

/// Random scheduling delay of the product's own threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulingDelay {
    /// One in this many threads is delayed.
    pub one_in: u64,
    /// Longest delay of a thread.
    pub most: Duration,
}

impl Default for SchedulingDelay {
    fn default() -> Self {
        Self {
            one_in: 16,
            most: Duration::from_millis(8),
        }
    }
}

/// Maximum number of times that a simulated thread yields to other tasks before it starts, and
/// before its result is visible.
const TURNS_MAX: u64 = 3;

/// Preallocating space and opening files with many threads would dominate the run time, as
/// RocksDB's files are in memory, few and small. Log files must not be recycled: the simulated disk
/// tracks the lengths of files and does not notice overwritten bytes.
const ROCKSDB: &str = "allow_fallocate=false;max_file_opening_threads=1;recycle_log_file_num=0";

/// Turns the calling thread into a simulation until the guard is dropped. All randomness from
/// [`runtime`] on this thread is derived from `seed`.
pub fn simulate(seed: u64) -> Installed {
    simulate_within(seed, Limits::PRODUCT, SchedulingDelay::default())
}

/// Like [`simulate`], with other limits and delays.
pub fn simulate_within(seed: u64, limits: Limits, lateness: SchedulingDelay) -> Installed {
    let simulation = Simulation {
        random: RefCell::new(StdRng::seed_from_u64(seed)),
        limits,
        lateness,
    };
    placement_base::platform::install(Rc::new(simulation))
}

struct Simulation {
    random: RefCell<StdRng>,
    limits: Limits,
    lateness: SchedulingDelay,
}

impl Platform for Simulation {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn random(&self, draw: &mut dyn FnMut(&mut dyn Rng)) {
        draw(&mut *self.random.borrow_mut());
    }

    fn steps(&self) -> Option<Rc<dyn Steps>> {
        Some(match Gate::current() {
            Some(gate) => Rc::new(gate),
            None => Rc::new(NoGate),
        })
    }

    fn scheduled(&self) -> Option<BoxFuture<'static, ()>> {
        Some(scheduled(self.lateness).boxed())
    }

    fn blocking(&self, work: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
        let lateness = self.lateness;
        runtime::spawn(async move {
            scheduled(lateness).await;
            if files::until_power_fails(work).is_none() {
                // The machine has lost its power: the task never ends.
                std::future::pending::<()>().await;
            }
        })
    }

    fn yielding(&self, work: &mut (dyn FnMut() + Send)) {
        work();
    }

    fn thread(
        &self,
        _name: &'static str,
        work: BoxFuture<'static, ()>,
    ) -> io::Result<Option<thread::JoinHandle<()>>> {
        drop(runtime::spawn(work));
        Ok(None)
    }

    /// Does nothing: no work blocks a thread in a simulation.
    fn watchdog(&self, _name: &'static str, _watch: Box<dyn FnOnce() + Send>) {}

    fn sync(&self, file: &File) -> io::Result<()> {
        files::sync(file)
    }

    fn sync_dir(&self, _handle: Option<&File>, dir: &Path) -> io::Result<()> {
        files::sync_dir(dir)
    }

    fn power_fails(&self, point: &'static str, path: &Path) -> bool {
        files::power_fails(point, path)
    }

    fn shown(&self, path: &Path) -> PathBuf {
        files::shown(path)
    }

    fn ran(&self, path: RarePath) {
        coverage::note(path);
    }

    fn rocksdb_options(&self) -> &'static str {
        ROCKSDB
    }
}

/// Yields for a random number of turns, and once in `one_in` times sleeps for up to `most`: the
/// delay before a thread runs.
async fn scheduled(lateness: SchedulingDelay) {
    let drawn = runtime::random_u64();
    for _ in 0..drawn % (TURNS_MAX + 1) {
        tokio::task::yield_now().await;
    }
    let drawn = drawn / (TURNS_MAX + 1);
    if drawn.is_multiple_of(lateness.one_in) {
        let thousandths = drawn / lateness.one_in % 1000;
        tokio::time::sleep(lateness.most.mul_f64(thousandths as f64 / 1000.0)).await;
    }
}

#[cfg(test)]
mod tests {
    use placement_base::runtime::random_u64;

    use super::*;

    #[test]
    fn one_seed_gives_one_sequence_of_random_numbers() {
        let sequence = |seed| {
            let _simulation = simulate(seed);
            [random_u64(), random_u64(), random_u64()]
        };
        assert_eq!(sequence(7), sequence(7));
        assert_ne!(sequence(7), sequence(8));
        // Dropping the guard ends the simulation.
        assert_ne!([random_u64(), random_u64()], [random_u64(), random_u64()]);
    }
}
