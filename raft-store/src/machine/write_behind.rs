//! Writes rows after apply (write-behind). Apply changes the state in memory and notes the keys of
//! the changed rows; a thread later reads the current rows and writes them in one batch with the
//! index of that state.
//!
//! The rows have no write-ahead log: after a crash, unflushed entries are applied again, whether or
//! not their rows were written. Before a flush that the purge of the log relies on,
//! [`WriteBehind::write`] writes all noted rows.

use std::io;
use std::sync::{Arc, Weak};

use placement_model::Change;
use placement_model::state::change::RowKey;
use placement_model::types::PartitionId;
use rocksdb::WriteBatch;
use tokio::sync::mpsc;

use super::database::StateDatabase;
use super::ledger::LedgerWriter;
use super::lock::Mutex;
use super::pack::Pack;
use super::views::AppliedState;
use crate::base::Base;
use crate::error::{OpenError, Result};
use crate::health::Failure;
use placement_base::platform::here;
use placement_base::runtime::{self, Worker};

/// Multiple of [`FlushThresholds`] that may be pending. Beyond it, the next apply waits for the
/// disk.
const BEHIND_MOST: usize = 8;

/// Pending amounts that trigger a write.
#[derive(Clone, Copy)]
struct FlushThresholds {
    /// Changed rows. Only keys are pending, which are small.
    rows: usize,
    /// Bytes of ledger entries. An entry may be long: it contains names, and the old and the new
    /// rows.
    bytes: usize,
}

/// A row that was changed.
pub(super) struct ChangedRow {
    partition: PartitionId,
    key: RowKey,
    /// Whether the row certainly did not exist before the change. This holds for the outcome of a
    /// write, which is put only once.
    is_new: bool,
}

impl ChangedRow {
    pub(super) fn new(partition: PartitionId, change: &Change) -> Self {
        Self {
            partition,
            key: change.key(),
            is_new: matches!(change, Change::PutOutcome(..)),
        }
    }

    fn row(&self) -> (PartitionId, &RowKey) {
        (self.partition, &self.key)
    }
}

/// Applied changes that are not yet written. If it is dropped, the next start applies the entries
/// with unwritten changes again, from the log.
pub(super) struct WriteBehind {
    shared: Arc<Shared>,
    due: FlushThresholds,
    /// The thread that writes the rows; woken when a write is due. It ends when this is dropped.
    writer: Worker<()>,
}

struct Shared {
    database: Arc<StateDatabase>,
    ledger: LedgerWriter,
    waiting: Mutex<PendingRows>,
    /// Held while rows are written, so that batches are written in log order.
    writing: Mutex<()>,
    failure: Failure,
    /// Declared last, so that it is dropped last: it holds the lock of the directory until the
    /// database is closed.
    base: Arc<Base>,
}

/// The changed rows, possibly with duplicates, and the state to read them from.
#[derive(Default)]
struct PendingRows {
    rows: Vec<ChangedRow>,
    /// Pending bytes of the ledger.
    bytes: usize,
    applied: Option<AppliedState>,
}

impl PendingRows {
    fn reaches(&self, due: FlushThresholds, times: usize) -> bool {
        self.rows.len() >= due.rows.saturating_mul(times)
            || self.bytes >= due.bytes.saturating_mul(times)
    }
}

impl WriteBehind {
    pub(super) fn new(
        base: &Arc<Base>,
        database: Arc<StateDatabase>,
        ledger: LedgerWriter,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            failure: Failure::new("state", &database.rocks.dir, &base.health),
            database,
            ledger,
            waiting: Mutex::default(),
            writing: Mutex::default(),
            base: Arc::clone(base),
        });
        let (weak, dir) = (Arc::downgrade(&shared), &shared.database.rocks.dir);
        let writer = Worker::start(
            |woken| write_when_due(weak, woken),
            |writer| here(|platform| platform.thread("rows", writer)),
        )
        .map_err(|error| OpenError::io("start a thread that writes to", dir, error))?;
        Ok(Self {
            shared,
            due: FlushThresholds {
                rows: base.options.rows_behind,
                bytes: base.options.ledger_behind,
            },
            writer,
        })
    }

    pub(super) fn ledger(&self) -> &LedgerWriter {
        &self.shared.ledger
    }

    /// Notes the rows changed since the last call, their ledger entries, and the resulting state.
    /// Returns whether so much is pending that it must be written before the next entries.
    ///
    /// # Errors
    /// Earlier rows could not be written.
    pub(super) fn note(
        &self,
        rows: Vec<ChangedRow>,
        entries: Vec<Pack>,
        applied: AppliedState,
    ) -> io::Result<bool> {
        self.shared.failure.check()?;
        let bytes: usize = entries.iter().map(|pack| pack.bytes.len()).sum();
        self.shared.ledger.note(entries);
        let (is_due, is_too_much) = {
            let mut waiting = self.shared.waiting.lock();
            waiting.rows.extend(rows);
            waiting.bytes += bytes;
            waiting.applied = Some(applied);
            let reaches = |times| waiting.reaches(self.due, times);
            (reaches(1), reaches(BEHIND_MOST))
        };
        if is_due && !is_too_much {
            self.writer.send(());
        }
        Ok(is_too_much)
    }

    /// Writes all rows noted so far, so that a later flush includes them.
    ///
    /// # Errors
    /// The rows cannot be written, or could not be written earlier: the storage has failed.
    pub(super) fn write(&self) -> io::Result<()> {
        self.shared.write()
    }

    /// Discards the pending rows and lets `replace` replace the whole state. The ledger begins
    /// again after that state.
    ///
    /// # Errors
    /// The errors of `replace`.
    pub(super) fn replace<E>(
        &self,
        applied: &AppliedState,
        replace: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let _writing = self.shared.writing.lock();
        *self.shared.waiting.lock() = PendingRows::default();
        self.shared.ledger.replace(applied);
        replace()
    }
}

/// Writes the pending rows whenever it is woken. If the store closes before they are written, the
/// next start applies their entries again.
async fn write_when_due(shared: Weak<Shared>, mut woken: mpsc::UnboundedReceiver<()>) {
    while woken.recv().await.is_some() {
        runtime::scheduled().await;
        // One write covers all wake-ups.
        while woken.try_recv().is_ok() {}
        let Some(shared) = shared.upgrade() else {
            return;
        };
        // The next apply returns the error.
        if shared.write().is_err() {
            return;
        }
    }
}

impl Shared {
    fn write(&self) -> io::Result<()> {
        let _writing = self.writing.lock();
        self.failure.check()?;
        let PendingRows {
            mut rows, applied, ..
        } = std::mem::take(&mut *self.waiting.lock());
        let Some(applied) = applied else {
            return Ok(());
        };
        // If a row has several changes, the first is kept: its `is_new` shows whether the row may
        // be on disk.
        rows.sort_by(|one, other| one.row().cmp(&other.row()));
        rows.dedup_by(|next, first| next.row() == first.row());
        let version = applied.record_version();
        let mut batch = WriteBatch::default();
        for changed in &rows {
            let partition = changed.partition;
            // The rows of a removed partition are deleted with the partition row.
            let Some(row) = applied.cluster.row(partition, &changed.key) else {
                continue;
            };
            // A row created and deleted since the last write was never written.
            if changed.is_new && matches!(row, Change::Delete(_)) {
                continue;
            }
            if let Change::PutPartition(id, row) = &row
                && row.deleted_at.is_some()
            {
                self.database.delete_rows_of(&mut batch, *id);
            }
            self.database.put(&mut batch, version, partition, &row);
        }
        self.database.put_applied(&mut batch, version, &applied);
        self.ledger.put(&mut batch, version, &applied);
        let _under_way = self.base.counters.disk_wait.begin();
        let written = self.database.write(batch);
        written.map_err(|error| self.failure.fail("written", error.as_ref()))?;
        self.ledger.written(&applied);
        Ok(())
    }
}
