//! The machine on which the store and the node run, except its network and clock. In production
//! this is the operating system; `simulations/machine` installs another platform for one thread.

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

/// Sizes at which work is split, in bytes. Production has one set of sizes. Simulations choose
/// smaller random sizes, so that small states run the code for large ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longer frames between nodes are sent in pieces of this size.
    pub piece: usize,
    /// Encoded rows per frame of a snapshot or backup.
    pub snapshot_frame: usize,
    /// Encoded rows per batch when a whole state is replaced.
    pub install_batch: usize,
    /// Encoded log entries per batch.
    pub log_batch: usize,
    /// A file of the archived log is closed at this length.
    pub archive_file: u64,
    /// Messages with longer entries are decoded off the async threads.
    pub read_inline: usize,
    /// Batches with longer command records are applied off the async threads.
    pub apply_inline: usize,
    /// Unflushed rows that trigger a flush; used only by simulations. In production, RocksDB
    /// flushes its write buffers in its own threads, so the content on disk depends on their
    /// timing.
    pub rows_buffer: usize,
    /// Up to this snapshot length, each scheduled snapshot purges the log. If the snapshot would be
    /// longer, the log is purged only when it has at least half the length of the snapshot.
    pub light_snapshot: u64,
}

impl Limits {
    /// The limits in production.
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

/// Niceness of the threads of [`Platform::yielding`]: they get about a tenth of the processor time
/// that other threads get.
pub(crate) const NICENESS: i32 = 10;

/// The machine, as seen by a thread of the node. Production uses the default methods.
#[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
pub trait Platform {
    /// Sizes at which work is split.
    fn limits(&self) -> Limits {
        Limits::PRODUCT
    }

    /// Calls `draw` with the source of random numbers.
    fn random(&self, draw: &mut dyn FnMut(&mut dyn Rng)) {
        draw(&mut rand_openraft::rng());
    }

    /// Controls each step of the tasks, which then stay on the thread that spawns them. `None`:
    /// tokio's worker threads run the tasks.
    fn steps(&self) -> Option<Rc<dyn Steps>> {
        None
    }

    /// A simulated delay before a thread starts its work; `None` for real threads.
    fn scheduled(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Runs blocking work off the async threads.
    fn blocking(&self, work: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
        tokio::task::spawn_blocking(work)
    }

    /// Runs long work on a low-priority thread and waits for it.
    fn yielding(&self, work: &mut (dyn FnMut() + Send)) {
        let done = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // On Linux this affects only the calling thread. If it fails, the work competes
                // with other threads.
                let _ = rustix::process::setpriority_process(None, NICENESS);
                work();
            });
            thread.join()
        });
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }

    /// Runs a future that blocks on the disk, on a dedicated thread. Returns `None` if it runs as a
    /// task instead.
    ///
    /// # Errors
    /// The thread cannot be started.
    fn thread(
        &self,
        name: &'static str,
        work: BoxFuture<'static, ()>,
    ) -> io::Result<Option<thread::JoinHandle<()>>> {
        let thread = thread::Builder::new().name(name.to_owned());
        thread.spawn(move || block_on(work)).map(Some)
    }

    /// Runs a watchdog on a dedicated thread, by the machine's real clock.
    ///
    /// # Panics
    /// If the thread cannot be started.
    fn watchdog(&self, name: &'static str, watch: Box<dyn FnOnce() + Send>) {
        let thread = thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(watch);
        started.expect("a process that starts can create one more thread");
    }

    /// Makes a file's content durable, with the metadata needed to read it.
    ///
    /// # Errors
    /// File system errors.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    /// Makes the entries of a directory durable, through `handle` if it is open already.
    ///
    /// # Errors
    /// File system errors.
    fn sync_dir(&self, handle: Option<&File>, dir: &Path) -> io::Result<()> {
        match handle {
            Some(handle) => handle.sync_all(),
            None => File::open(dir)?.sync_all(),
        }
    }

    /// Whether the machine loses power at this point of its work on `path`.
    fn power_fails(&self, _point: &'static str, _path: &Path) -> bool {
        false
    }

    /// A path as messages show it.
    fn shown(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    /// Records that a rare code path runs.
    fn ran(&self, _path: RarePath) {}

    /// RocksDB options in addition to the common ones.
    fn rocksdb_options(&self) -> &'static str {
        ""
    }
}

/// Controls when the tasks of a simulated thread are polled.
pub trait Steps {
    /// Polls a task once, or calls its waker when it may continue.
    fn step(&self, context: &mut Context<'_>, poll: &mut dyn FnMut(&mut Context<'_>));
}

/// Panic payload that ends the work of a simulated machine that loses power.
#[derive(Debug)]
pub struct PowerFails;

struct OperatingSystem;

impl Platform for OperatingSystem {}

thread_local! {
    static INSTALLED: RefCell<Option<Rc<dyn Platform>>> = const { RefCell::new(None) };
}

/// Calls the platform of the calling thread.
pub fn here<R>(ask: impl FnOnce(&dyn Platform) -> R) -> R {
    match INSTALLED.with_borrow(Clone::clone) {
        Some(platform) => ask(&*platform),
        None => ask(&OperatingSystem),
    }
}

/// Installs a platform for the calling thread until the guard is dropped.
pub fn install(platform: Rc<dyn Platform>) -> Installed {
    let before = INSTALLED.replace(Some(platform));
    Installed { before }
}

/// Restores the previous platform when dropped.
#[must_use = "the platform is uninstalled when this is dropped"]
pub struct Installed {
    // `Rc` keeps the guard on its thread.
    before: Option<Rc<dyn Platform>>,
}

impl Drop for Installed {
    fn drop(&mut self) {
        INSTALLED.set(self.before.take());
    }
}

impl RarePath {
    /// Records that the path runs.
    pub fn ran(self) {
        here(|platform| platform.ran(self));
    }
}
