//! A disk whose syncs take simulated time, and whose power can be cut.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use parking_lot::{Mutex, MutexGuard};
use rand_openraft::rngs::StdRng;
use rand_openraft::{RngExt, SeedableRng};

use crate::data_dir::{LOG_DIR, wal_files};
use crate::types::Vote;

/// One simulated node's disk. It outlives the node: keep it beside the data directory and give it
/// to every start of the node.
///
/// The bytes of the log are really written, so that RocksDB is the product's. A sync is a delay,
/// after which the lengths of the write-ahead log's files are noted as durable.
#[derive(Debug, Clone)]
pub struct SimulatedDisk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    random: StdRng,
    latency: RangeInclusive<Duration>,
    full: bool,
    // Durable length of each write-ahead log file, in bytes.
    synced: BTreeMap<PathBuf, u64>,
    // The highest vote that a node on this disk was told to be durable.
    acknowledged: Option<Vote>,
    lost_vote: Option<String>,
}

impl SimulatedDisk {
    /// A disk whose syncs take a time within `latency`; which one follows from `seed`.
    pub fn new(seed: u64, latency: RangeInclusive<Duration>) -> Self {
        let random = StdRng::seed_from_u64(seed);
        let inner = Inner {
            random,
            latency,
            full: false,
            synced: BTreeMap::new(),
            acknowledged: None,
            lost_vote: None,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Changes how long a sync takes from now on.
    pub fn set_latency(&self, latency: RangeInclusive<Duration>) {
        self.lock().latency = latency;
    }

    /// Fills the disk, so that every sync fails, or makes room on it again.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Cuts the log in the data directory `dir` back to what was synced, as a loss of power does.
    /// Every handle of the store must be gone. Returns how many bytes were lost.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn cut_power(&self, dir: &Path) -> io::Result<u64> {
        self.lock().cut(dir, |_random, _unsynced| 0)
    }

    /// As [`SimulatedDisk::cut_power`], but some of what was not synced has reached the disk all
    /// the same: a record may end anywhere.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn cut_power_torn(&self, dir: &Path) -> io::Result<u64> {
        self.lock()
            .cut(dir, |random, unsynced| random.random_range(0..=unsynced))
    }

    /// A vote that was called durable and was not there when the log was opened again, in words. Such
    /// a node may vote twice.
    pub fn lost_vote(&self) -> Option<String> {
        self.lock().lost_vote.clone()
    }

    /// Notes a vote that was called durable.
    pub(crate) fn acknowledged(&self, vote: Vote) {
        let mut inner = self.lock();
        if inner.acknowledged < Some(vote) {
            inner.acknowledged = Some(vote);
        }
    }

    /// Notes the vote with which the log was opened.
    pub(crate) fn opened(&self, found: Option<Vote>) {
        let mut inner = self.lock();
        if found < inner.acknowledged
            && let Some(acknowledged) = inner.acknowledged
        {
            let found = found.map_or_else(|| "no vote".to_owned(), |vote| vote.to_string());
            inner.lost_vote = Some(format!(
                "the log was opened with {found}, but {acknowledged} had been acknowledged"
            ));
        }
    }

    /// How long the next sync takes.
    pub(crate) fn next_latency(&self) -> Duration {
        let mut inner = self.lock();
        let latency = inner.latency.clone();
        inner.random.random_range(latency)
    }

    /// Notes what is in the write-ahead log of `log_dir` now as durable, unless the disk is full.
    pub(crate) fn sync(&self, log_dir: &Path) -> io::Result<()> {
        let files = wal_files(log_dir)?;
        let mut inner = self.lock();
        if inner.full {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "No space left on device (simulated)",
            ));
        }
        inner.synced = files;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    /// Cuts the newest file of the log, as RocksDB syncs each that it closes, to what was synced
    /// and what `kept` of the rest survives.
    fn cut(&mut self, dir: &Path, kept: impl Fn(&mut StdRng, u64) -> u64) -> io::Result<u64> {
        let files = wal_files(&dir.join(LOG_DIR))?;
        let Some((path, length)) = files.last_key_value() else {
            return Ok(0);
        };
        let synced = self.synced.get(path).copied().unwrap_or(0).min(*length);
        let durable = synced + kept(&mut self.random, length - synced);
        if durable < *length {
            fs::OpenOptions::new()
                .write(true)
                .open(path)?
                .set_len(durable)?;
        }
        Ok(length - durable)
    }
}
