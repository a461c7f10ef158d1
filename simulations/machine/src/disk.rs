//! A disk whose syncs take simulated time, and whose power can be cut.

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
use placement_raft_store::{LOG_DIR, LogDisk, STATE_DIR, Vote, runtime, wal_files};
use rand_openraft::rngs::StdRng;
use rand_openraft::{RngExt, SeedableRng};
use rocksdb::DB;

use crate::files;

/// How often it is looked whether a disk still hangs.
const HANGING: Duration = Duration::from_millis(5);

/// One simulated node's disk. It outlives the node: keep it next to the data directory and give it
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
    // The next sync fails.
    fails_once: bool,
    hangs: bool,
    // Where the disk is mounted, if its plain files are simulated too.
    top: Option<PathBuf>,
    lost_files: u64,
    // Durable length of each write-ahead log file, in bytes.
    synced: BTreeMap<PathBuf, u64>,
    // The highest vote that was reported to a node on this disk as durable.
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

    /// Changes how long a sync takes from now on.
    pub fn set_latency(&self, latency: RangeInclusive<Duration>) {
        self.lock().latency = latency;
    }

    /// Fills the disk, so that every sync fails, or makes room on it again.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Has the next sync fail, with an error of the disk, or not. What it was to make durable may
    /// be lost.
    pub fn set_failing_once(&self, fails: bool) {
        self.lock().fails_once = fails;
    }

    /// Lets no sync come back, or all that wait.
    pub fn set_hanging(&self, hangs: bool) {
        self.lock().hangs = hangs;
    }

    /// Simulates the plain files below `top` too: what of them is not synced is lost with the
    /// power. For the calling thread; `top` must be there, and the data directory below it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn mount(&self, top: &Path) -> io::Result<()> {
        files::mount(top)?;
        self.lock().top = Some(top.to_owned());
        Ok(())
    }

    /// Puts an empty disk in the place of this one: the data directory `dir` is gone. The node must
    /// not run.
    ///
    /// # Errors
    /// Those of the file system.
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

    /// Has the power fail when the node next comes to a point of [`POINTS`](crate::POINTS), or not
    /// at all.
    pub fn fail_at(&self, point: Option<&'static str>) {
        if let Some(top) = &self.lock().top {
            files::arm(top, point);
        }
    }

    /// The point at which the power has failed: the node takes no step any more.
    pub fn failed_at(&self) -> Option<&'static str> {
        files::failed_at(self.lock().top.as_ref()?)
    }

    /// Files and names that were lost with the power so far.
    pub fn lost_files(&self) -> u64 {
        self.lock().lost_files
    }

    /// Turns a bit of the log that was synced. The node must not run. False if there is nothing
    /// yet.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn rot_log(&self, dir: &Path) -> io::Result<bool> {
        self.lock().rot(dir)
    }

    /// Cuts the log in the data directory `dir` back to what was synced, as a loss of power does.
    /// If it is `torn`, some of what was not synced has reached the disk: a record may end
    /// anywhere. Every handle of the store must be gone. Returns how many bytes were lost.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn cut_power(&self, dir: &Path, torn: bool) -> io::Result<u64> {
        self.lock().cut(dir, |random, unsynced| match torn {
            true => random.random_range(0..=unsynced),
            false => 0,
        })
    }

    /// A vote that was called durable and was not there when the log was opened again, as text.
    /// Such a node may vote twice.
    pub fn lost_vote(&self) -> Option<String> {
        self.lock().lost_vote.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl LogDisk for SimulatedDisk {
    /// A task of the simulated node.
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

    /// Notes what is in the write-ahead log now as durable, unless the disk is full.
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
    /// Cuts the newest file of the log, as RocksDB syncs each that it closes, to what was synced
    /// and what `kept` of the rest survives.
    fn cut(&mut self, dir: &Path, kept: impl Fn(&mut StdRng, u64) -> u64) -> io::Result<u64> {
        let lost = self.cut_log(dir, &kept)?;
        if let Some(top) = &self.top {
            // Of one byte none is kept by a disk that keeps nothing.
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
