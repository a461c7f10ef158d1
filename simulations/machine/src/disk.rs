//! A disk with simulated sync latency, faults and loss of power.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io, thread};

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use placement_base::runtime;
use placement_raft_store::{LOG_DIR, LogDisk, STATE_DIR, Vote, wal_files};
use rand_openraft::rngs::StdRng;
use rand_openraft::{RngExt, SeedableRng};
use rocksdb::DB;

use crate::files;

/// Interval at which a sync on a hanging disk checks whether the disk works again.
const HANGING: Duration = Duration::from_millis(5);

/// One simulated node's disk. It outlives the node: keep it next to the data directory and give it
/// to every start of the node.
///
/// The log is written to real files by the product's RocksDB. A sync waits and then records the
/// lengths of the write-ahead log files as durable.
#[derive(Debug, Clone)]
pub struct SimulatedDisk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    random: StdRng,
    latency: RangeInclusive<Duration>,
    full: bool,
    // The next sync fails.
    fails_once: bool,
    hangs: bool,
    // Mount point, if plain files are simulated too.
    top: Option<PathBuf>,
    lost_files: u64,
    // Durable length of each write-ahead log file, in bytes.
    synced: BTreeMap<PathBuf, u64>,
    // The highest vote that was reported as durable to a node on this disk.
    acknowledged: Option<Vote>,
    lost_vote: Option<String>,
}

impl SimulatedDisk {
    /// A disk whose sync latency is drawn from `latency` by a generator with this `seed`.
    pub fn new(seed: u64, latency: RangeInclusive<Duration>) -> Self {
        let random = StdRng::seed_from_u64(seed);
        let inner = Inner {
            random,
            latency,
            full: false,
            fails_once: false,
            hangs: false,
            top: None,
            lost_files: 0,
            synced: BTreeMap::new(),
            acknowledged: None,
            lost_vote: None,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Changes the sync latency.
    pub fn set_latency(&self, latency: RangeInclusive<Duration>) {
        self.lock().latency = latency;
    }

    /// Fills the disk, so that every sync fails, or frees space on it.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Makes the next sync fail with an I/O error if `fails`. The data of that sync may be lost.
    pub fn set_failing_once(&self, fails: bool) {
        self.lock().fails_once = fails;
    }

    /// Makes syncs hang, or lets all hanging syncs return.
    pub fn set_hanging(&self, hangs: bool) {
        self.lock().hangs = hangs;
    }

    /// Simulates the plain files below `top` too: a loss of power discards their unsynced content.
    /// Applies to the calling thread. `top` must exist; the data directory must be below it.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn mount(&self, top: &Path) -> io::Result<()> {
        files::mount(top)?;
        self.lock().top = Some(top.to_owned());
        Ok(())
    }

    /// Replaces the disk by an empty one: removes the data directory `dir`. The node must not run.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn wipe(&self, dir: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        inner.synced.clear();
        inner.acknowledged = None;
        match &inner.top {
            Some(top) => files::mount(top),
            None => Ok(()),
        }
    }

    /// Cuts the power when the node next reaches this point of [`POINTS`](crate::POINTS); `None`
    /// disarms it.
    pub fn fail_at(&self, point: Option<&'static str>) {
        if let Some(top) = &self.lock().top {
            files::arm(top, point);
        }
    }

    /// The point at which the power failed. The node executes nothing after it.
    pub fn failed_at(&self) -> Option<&'static str> {
        files::failed_at(self.lock().top.as_ref()?)
    }

    /// Number of files and names that losses of power have discarded so far.
    pub fn lost_files(&self) -> u64 {
        self.lock().lost_files
    }

    /// Flips a bit in the synced part of the log. The node must not run. Returns false if the log
    /// is still empty.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn rot_log(&self, dir: &Path) -> io::Result<bool> {
        self.lock().rot(dir)
    }

    /// Truncates the log in the data directory `dir` to its synced length, as a loss of power does.
    /// With `torn`, a random part of the unsynced bytes survives, so a record may end anywhere. All
    /// handles of the store must be closed. Returns the number of bytes lost.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn cut_power(&self, dir: &Path, torn: bool) -> io::Result<u64> {
        self.lock().cut(dir, |random, unsynced| {
            if torn {
                random.random_range(0..=unsynced)
            } else {
                0
            }
        })
    }

    /// Description of an acknowledged vote that was missing when the log was opened again. A node
    /// that loses its vote may vote twice in a term.
    pub fn lost_vote(&self) -> Option<String> {
        self.lock().lost_vote.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl LogDisk for SimulatedDisk {
    /// Spawns the writer as a task of the simulated node.
    fn run(&self, writer: BoxFuture<'static, ()>) -> io::Result<Option<thread::JoinHandle<()>>> {
        drop(runtime::spawn(writer));
        Ok(None)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        let waits = async {
            let latency = {
                let mut inner = self.lock();
                let latency = inner.latency.clone();
                inner.random.random_range(latency)
            };
            tokio::time::sleep(latency).await;
            while self.lock().hangs {
                tokio::time::sleep(HANGING).await;
            }
        };
        waits.boxed()
    }

    /// Records the current write-ahead log as durable, unless the disk is full or fails.
    fn sync(&self, log: &DB) -> io::Result<()> {
        let files = wal_files(log.path())?;
        let mut inner = self.lock();
        if inner.full {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "No space left on device (simulated)",
            ));
        }
        if std::mem::take(&mut inner.fails_once) {
            return Err(io::Error::other("Input/output error (simulated)"));
        }
        inner.synced = files;
        Ok(())
    }

    fn acknowledged(&self, vote: Vote) {
        let mut inner = self.lock();
        if inner.acknowledged < Some(vote) {
            inner.acknowledged = Some(vote);
        }
    }

    fn opened(&self, found: Option<Vote>) {
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
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(top) = &self.top {
            files::unmount(top);
        }
    }
}

impl Inner {
    /// Truncates the newest log file to its synced length plus the part of the rest that `kept`
    /// lets survive. RocksDB syncs each file when it closes it, so only the newest has unsynced
    /// bytes.
    fn cut(&mut self, dir: &Path, kept: impl Fn(&mut StdRng, u64) -> u64) -> io::Result<u64> {
        let lost = self.cut_log(dir, &kept)?;
        if let Some(top) = &self.top {
            // Each file or name counts as one unsynced byte: it survives if `kept` returns 1.
            let mut is_kept = || kept(&mut self.random, 1) == 1;
            self.lost_files += files::lose_unsynced(top, &[LOG_DIR, STATE_DIR], &mut is_kept)?;
        }
        Ok(lost)
    }

    fn rot(&mut self, dir: &Path) -> io::Result<bool> {
        let files = wal_files(&dir.join(LOG_DIR))?;
        let Some((path, length)) = files.last_key_value() else {
            return Ok(false);
        };
        let synced = self.synced.get(path).copied().unwrap_or(0).min(*length);
        if synced == 0 {
            return Ok(false);
        }
        let at = self.random.random_range(0..synced);
        let file = fs::OpenOptions::new().read(true).write(true).open(path)?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, at)?;
        byte[0] ^= 1 << self.random.random_range(0..8);
        file.write_all_at(&byte, at)?;
        Ok(true)
    }

    fn cut_log(&mut self, dir: &Path, kept: &impl Fn(&mut StdRng, u64) -> u64) -> io::Result<u64> {
        let log = dir.join(LOG_DIR);
        if !log.exists() {
            return Ok(0);
        }
        let files = wal_files(&log)?;
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
