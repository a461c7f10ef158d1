//! Rows are written behind apply. Apply changes the state in memory and notes which rows that was about;
//! a thread (in a simulation a task) looks up what has become of them, and writes that in one batch with the entry it stands at.
//!
//! The rows have no write-ahead log, so what was not flushed is applied again after a crash, written or
//! not. Before a flush that something is promised on, everything is written ([`Behind::write`]).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use placement_model::Change;
use placement_model::state::change::RowKey;
use placement_model::types::PartitionId;
use rocksdb::WriteBatch;

use super::database::StateDatabase;
use super::views::AppliedState;
use crate::counters::Counters;
use crate::error::OpenError;
use crate::health::Reporter;
use crate::options::{Disk, StoreOptions};
use crate::rocks;
use crate::runtime;

/// So many times [`StoreOptions::rows_behind`] may wait. Beyond, apply waits for the disk.
const BEHIND_MOST: usize = 8;

/// What is applied and not written. When it is dropped, the rest is applied again from the log.
#[derive(Debug)]
pub(super) struct Behind {
    shared: Arc<Shared>,
    due: usize,
    writer: Writer,
}

/// What writes when it is due: a thread, or a task of a simulated node.
#[derive(Debug)]
enum Writer {
    Thread {
        /// `None` once it has to end.
        wake: Option<SyncSender<()>>,
        thread: Option<JoinHandle<()>>,
    },
    /// Whether one has been spawned that has not begun.
    Task(Arc<AtomicBool>),
}

#[derive(Debug)]
struct Shared {
    database: Arc<StateDatabase>,
    waiting: Mutex<Waiting>,
    /// Held while rows are written: batches reach the database in the order of the log.
    writing: Mutex<()>,
    /// Why nothing is written any more.
    failed: OnceLock<String>,
    reporter: Reporter,
    counters: Arc<Counters>,
}

/// The rows that have changed, some more than once, and the state that they are read from.
#[derive(Debug, Default)]
struct Waiting {
    keys: Vec<(PartitionId, RowKey)>,
    applied: Option<AppliedState>,
}

impl Behind {
    pub(super) fn new(
        options: &StoreOptions,
        database: Arc<StateDatabase>,
        reporter: Reporter,
        counters: Arc<Counters>,
    ) -> Result<Self, OpenError> {
        let shared = Arc::new(Shared {
            database,
            waiting: Mutex::default(),
            writing: Mutex::default(),
            failed: OnceLock::new(),
            reporter,
            counters,
        });
        let writer = match options.disk {
            Disk::Real => Writer::start(&shared)?,
            Disk::Simulated(_) => Writer::Task(Arc::default()),
        };
        Ok(Self {
            shared,
            due: options.rows_behind,
            writer,
        })
    }

    /// Notes the rows that have changed since it was called last, and the state that follows.
    ///
    /// # Errors
    /// If rows noted earlier could not be written.
    pub(super) fn note(
        &self,
        keys: Vec<(PartitionId, RowKey)>,
        applied: AppliedState,
    ) -> io::Result<()> {
        self.shared.check()?;
        let waiting = {
            let mut waiting = self.shared.waiting.lock();
            waiting.keys.extend(keys);
            waiting.applied = Some(applied);
            waiting.keys.len()
        };
        if waiting < self.due {
            return Ok(());
        }
        if waiting >= self.due.saturating_mul(BEHIND_MOST) {
            return self.write();
        }
        self.writer.wake(&self.shared);
        Ok(())
    }

    /// Writes everything noted so far; what is flushed afterwards has it.
    ///
    /// # Errors
    /// If it cannot be written now, or could not be earlier. The storage has failed.
    pub(super) fn write(&self) -> io::Result<()> {
        self.shared.write()
    }

    /// Lets `replace` put a whole state in place of the rows, and of what waits to be written.
    ///
    /// # Errors
    /// Those of `replace`.
    pub(super) fn replace<E>(&self, replace: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let _writing = self.shared.writing.lock();
        *self.shared.waiting.lock() = Waiting::default();
        replace()
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        if let Writer::Thread { wake, thread } = &mut self.writer {
            drop(wake.take());
            // If it has panicked, that was said where it did.
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

impl Writer {
    fn start(shared: &Arc<Shared>) -> Result<Self, OpenError> {
        let (wake, woken) = mpsc::sync_channel(1);
        let shared = Arc::clone(shared);
        let dir = shared.database.dir.clone();
        let thread = thread::Builder::new()
            .name("rows".to_owned())
            .spawn(move || {
                while let Ok(()) = woken.recv() {
                    // Whoever comes next is told why.
                    if shared.write().is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| OpenError::io("start a thread that writes to", &dir, error))?;
        Ok(Self::Thread {
            wake: Some(wake),
            thread: Some(thread),
        })
    }

    /// If it has been woken already, it looks again at what waits.
    fn wake(&self, shared: &Arc<Shared>) {
        match self {
            Self::Thread { wake, .. } => {
                let _ = wake.as_ref().map(|wake| wake.try_send(()));
            }
            Self::Task(is_woken) => {
                if is_woken.swap(true, Ordering::Relaxed) {
                    return;
                }
                let (is_woken, shared) = (Arc::clone(is_woken), Arc::downgrade(shared));
                runtime::spawn(async move {
                    runtime::scheduled().await;
                    is_woken.store(false, Ordering::Relaxed);
                    // Of a store that is closed the rest is applied again. Who comes next is told why it failed.
                    if let Some(shared) = shared.upgrade() {
                        let _ = shared.write();
                    }
                });
            }
        }
    }
}

impl Shared {
    fn write(&self) -> io::Result<()> {
        let _writing = self.writing.lock();
        self.check()?;
        let Waiting { mut keys, applied } = std::mem::take(&mut *self.waiting.lock());
        let Some(applied) = applied else {
            return Ok(());
        };
        keys.sort_unstable();
        keys.dedup();
        let version = applied.record_version();
        let mut batch = WriteBatch::default();
        for (partition, key) in &keys {
            // The rows of a partition that is gone go with its own.
            let Some(row) = applied.cluster.row(*partition, key) else {
                continue;
            };
            if let Change::PutPartition(id, row) = &row
                && row.deleted_at.is_some()
            {
                self.database.delete_rows_of(&mut batch, *id);
            }
            self.database.put(&mut batch, version, *partition, &row);
        }
        self.database.put_applied(&mut batch, version, &applied);
        let _under_way = self.counters.disk_wait.begin();
        self.database.write(batch).map_err(|error| {
            let words = self.database.failure("written", error.as_ref());
            self.reporter.report(&words);
            rocks::io_error(self.failed.get_or_init(|| words))
        })
    }

    fn check(&self) -> io::Result<()> {
        match self.failed.get() {
            Some(words) => Err(rocks::io_error(words)),
            None => Ok(()),
        }
    }
}
