//! What the store and the node ask of the machine that they run on, besides its network and its
//! clock. In the product that is the operating system; `simulations/machine` puts another platform
//! in its place, for one thread.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::Context;
use std::thread;

use futures::executor::block_on;
use futures::future::BoxFuture;
use rand_openraft::Rng;
use tokio::task::JoinHandle;

use crate::coverage::RarePath;

/// Sizes at which work is split, in bytes. The product has one set; a simulation draws smaller
/// ones, so that small states reach the code behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A frame between nodes that is longer goes in pieces of this size.
    pub piece: usize,
    /// Rows in one frame of a snapshot or backup.
    pub snapshot_frame: usize,
    /// Rows in one write when a whole state is put in place.
    pub install_batch: usize,
    /// Log entries in one write.
    pub log_batch: usize,
    /// A file of the archived log that is longer is followed by another one.
    pub archive_file: u64,
    /// Entries in a message that are longer are read off the async threads.
    pub read_inline: usize,
    /// Records of commands that are longer together are applied off the async threads.
    pub apply_inline: usize,
    /// Rows that are written and not flushed, until they are flushed. In the product RocksDB
    /// flushes its write buffers in threads of its own, and what is on disk would depend on when
    /// they run.
    pub rows_buffer: usize,
    /// The log is cut at each of a node's moments if a snapshot has this length at most. Behind a
    /// longer one it is cut once it has half of that length.
    pub light_snapshot: u64,
}

impl Limits {
    /// Those of the product.
    pub const PRODUCT: Self = Self {
        piece: 16 << 10,
        snapshot_frame: 1 << 20,
        install_batch: 4 << 20,
        log_batch: 16 << 20,
        archive_file: 8 << 20,
        read_inline: 64 << 10,
        apply_inline: 16 << 10,
        rows_buffer: usize::MAX,
        light_snapshot: 16 << 20,
    };
}

/// How much a thread of [`Platform::yielding`] work stands back, as `nice` counts: a tenth of what
/// others get.
pub(crate) const NICENESS: i32 = 10;

/// The machine, as a thread of the node sees it. What is given here is the product's.
#[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
pub trait Platform {
    /// Sizes at which work is split.
    fn limits(&self) -> Limits {
        Limits::PRODUCT
    }

    /// Lends the source of random numbers.
    fn random(&self, draw: &mut dyn FnMut(&mut dyn Rng)) {
        draw(&mut rand_openraft::rng());
    }

    /// What each step of a task passes where tasks stay on the thread that spawns them. `None`:
    /// tokio's workers run tasks.
    fn steps(&self) -> Option<Rc<dyn Steps>> {
        None
    }

    /// Waits for as long as a thread may take to come to its work. `None`: threads do that of
    /// themselves.
    fn scheduled(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Does blocking work off the async threads.
    fn blocking(&self, work: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
        tokio::task::spawn_blocking(work)
    }

    /// Does long work on a thread that stands back behind all others of the machine, and waits for
    /// it.
    fn yielding(&self, work: &mut (dyn FnMut() + Send)) {
        let done = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // On Linux this is about the calling thread alone. If it may not, it is in the way
                // of others.
                let _ = rustix::process::setpriority_process(None, NICENESS);
                work();
            });
            thread.join()
        });
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }

    /// Runs a future that waits for the disk on a thread of its own. `None`: on a task.
    ///
    /// # Errors
    /// There is no thread to be had.
    fn thread(
        &self,
        name: &'static str,
        work: BoxFuture<'static, ()>,
    ) -> io::Result<Option<thread::JoinHandle<()>>> {
        let thread = thread::Builder::new().name(name.to_owned());
        thread.spawn(move || block_on(work)).map(Some)
    }

    /// Has a thread of its own look, by the machine's own clock, whether others hang.
    ///
    /// # Panics
    /// If there is no thread to be had.
    fn watchdog(&self, name: &'static str, watch: Box<dyn FnOnce() + Send>) {
        let thread = thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(watch);
        started.expect("a process that starts has room for one more thread");
    }

    /// Makes a file's bytes durable, and what is needed to find them again.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    /// Makes the names in a directory durable, through a handle if it is open already.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync_dir(&self, handle: Option<&File>, dir: &Path) -> io::Result<()> {
        match handle {
            Some(handle) => handle.sync_all(),
            None => File::open(dir)?.sync_all(),
        }
    }

    /// Whether the power of the machine fails at this point of its work on `path`.
    fn power_fails(&self, _point: &'static str, _path: &Path) -> bool {
        false
    }

    /// A path, as messages show it.
    fn shown(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    /// A rare path runs.
    fn ran(&self, _path: RarePath) {}

    /// What RocksDB is opened with, besides the options that hold everywhere.
    fn rocksdb_options(&self) -> &'static str {
        ""
    }
}

/// Lets tasks that stay on their thread take their steps.
pub trait Steps {
    /// Polls a task once, or has its waker called when it may go on.
    fn step(&self, context: &mut Context<'_>, poll: &mut dyn FnMut(&mut Context<'_>));
}

/// What unwinds the work of a machine whose power fails in the middle of it.
#[derive(Debug)]
pub struct PowerFails;

struct OperatingSystem;

impl Platform for OperatingSystem {}

thread_local! {
    static INSTALLED: RefCell<Option<Rc<dyn Platform>>> = const { RefCell::new(None) };
}

/// Asks the platform of the calling thread.
pub(crate) fn here<R>(ask: impl FnOnce(&dyn Platform) -> R) -> R {
    match INSTALLED.with_borrow(Clone::clone) {
        Some(platform) => ask(&*platform),
        None => ask(&OperatingSystem),
    }
}

/// Puts a platform in the place of the operating system for the calling thread, until the guard is
/// dropped.
pub fn install(platform: Rc<dyn Platform>) -> Installed {
    let before = INSTALLED.replace(Some(platform));
    Installed { before }
}

/// Puts back the platform from before when dropped.
#[must_use = "the platform goes when this is dropped"]
pub struct Installed {
    // What is counted by `Rc` stays on its thread.
    before: Option<Rc<dyn Platform>>,
}

impl Drop for Installed {
    fn drop(&mut self) {
        INSTALLED.set(self.before.take());
    }
}

impl RarePath {
    /// Says that the path runs.
    pub fn ran(self) {
        here(|platform| platform.ran(self));
    }
}
