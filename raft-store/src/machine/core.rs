//! State shared by the state machine and its snapshot builders: the rows and the published state.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use openraft::storage::EntryResponder;
use placement_model::mutant;
use placement_model::{Change, Cluster, LedgerEntry, Level, Outcome, Stamped};
use rocksdb::WriteBatch;
use tokio::time::Instant;
use tracing::Span;
use tracing::level_filters::LevelFilter;

use super::database::StateDatabase;
use super::ledger::{Ledger, LedgerWriter};
use super::lock::Mutex;
use super::outcomes::Committed;
use super::pack::{self, Pack};
use super::snapshot_dir::{self, SnapshotDir};
use super::snapshot_file::{Snapshot, SnapshotData, SnapshotFile, WrittenSnapshot};
use super::snapshot_format::SnapshotError;
use super::views::{AppliedState, Publisher, Views};
use super::write_behind::{ChangedRow, WriteBehind};
use crate::base::Base;
use crate::error::{OpenError, Result, io_error};
use crate::files;
use crate::health::Failure;
use crate::types::{Applied, LogId, Payload, SnapshotMeta, StoredMembership, TypeConfig};
use placement_base::coverage::RarePath;
use placement_base::log_messages::log;
use placement_base::runtime;

/// Maximum number of steps, as counted by the model, to apply on the calling thread.
const CHEAP_STEPS: usize = 128;
/// Slower operations are logged with their timings.
const SLOW_APPLY: Duration = Duration::from_millis(100);

thread_local! {
    static APPLYING: Cell<Option<LogId>> = const { Cell::new(None) };
}

/// The entry that this thread is applying. A panic hook calls this to find the entry that caused
/// the panic.
pub fn applying() -> Option<LogId> {
    APPLYING.get()
}

/// Changed rows and ledger entries of a batch.
#[derive(Default)]
struct Changes {
    rows: Vec<ChangedRow>,
    entries: Vec<Pack>,
}

pub(super) struct Core {
    /// Declared before the database and the lock, so that it is dropped first: its thread ends
    /// before they close.
    pub(super) behind: WriteBehind,
    pub(super) database: Arc<StateDatabase>,
    pub(super) snapshots: SnapshotDir,
    publisher: Publisher,
    failure: Failure,
    /// The newest state whose rows `Drafts` has made durable, until openraft takes it as its next
    /// snapshot; `None` otherwise.
    covered: Mutex<Option<Arc<AppliedState>>>,
    /// Held while rows are flushed or a snapshot is written, so that these do not run concurrently.
    writing: Mutex<()>,
    /// Declared last, so that it is dropped last: it holds the lock of the directory until the
    /// database is closed.
    base: Arc<Base>,
}

impl Core {
    pub(super) fn open(base: &Arc<Base>, snapshots: SnapshotDir) -> Result<Self> {
        let database = StateDatabase::open(&base.options, &base.cache)?;
        if let Some(name) = database.installing()? {
            RarePath::InstallRepeated.ran();
            log!(
                SNAPSHOT_INSTALLED_AFTER_CRASH,
                snapshot = name,
                "repeating the snapshot installation that a crash interrupted"
            );
            put_in_place(&database, &snapshots, &name)?;
        }
        let mut loaded = database.load()?;
        if let Some(newer) = snapshots.received()?
            && newer.meta.last_log_id > loaded.last
        {
            RarePath::ReceivedInstalled.ran();
            log!(
                SNAPSHOT_INSTALLED_AFTER_CRASH,
                covers = %newer.meta,
                "installing the snapshot received before a crash"
            );
            put_in_place(&database, &snapshots, &newer.file.name())?;
            loaded = database.load()?;
        }
        snapshots.clear()?;
        base.set_version(loaded.record_version());
        let failure = Failure::new("state", &database.rocks.dir, &base.health);
        let database = Arc::new(database);
        let ledger = LedgerWriter::open(base, Arc::clone(&database), &loaded)?;
        Ok(Self {
            behind: WriteBehind::new(base, Arc::clone(&database), ledger)?,
            database,
            snapshots,
            publisher: Publisher::new(loaded),
            failure,
            covered: Mutex::default(),
            writing: Mutex::default(),
            base: Arc::clone(base),
        })
    }

    pub(super) fn current(&self) -> Arc<AppliedState> {
        self.views().current()
    }

    pub(super) fn views(&self) -> &Views {
        self.publisher.views()
    }

    pub(super) fn ledger(&self) -> Ledger {
        self.behind.ledger().reader()
    }

    pub(super) fn publish(&self, next: AppliedState) {
        self.base.set_version(next.record_version());
        self.publisher.publish(next);
    }

    /// Whether the entries are a few claims, which can be applied in hardly more time than it takes
    /// to hand them to another thread.
    pub(super) fn is_cheap(&self, entries: &[EntryResponder<TypeConfig>]) -> bool {
        let current = self.current();
        let (mut bytes, mut steps) = (runtime::limits().apply_inline, CHEAP_STEPS);
        entries.iter().all(|(entry, _)| {
            let Payload::Normal(logged) = &entry.payload else {
                return false;
            };
            let bytes_left = bytes.checked_sub(logged.record().0.len());
            let taken = current.cluster.steps_of_claim(logged.stamped(), steps);
            let Some((bytes_left, taken)) = bytes_left.zip(taken) else {
                return false;
            };
            (bytes, steps) = (bytes_left, steps - taken);
            true
        })
    }

    /// Applies committed entries: publishes one state, then sends the answers. Rows are written
    /// later; returns whether so many are pending that [`Self::write_rows`] must run before the
    /// next entries. Does not wait for the disk.
    pub(super) fn apply(&self, entries: Vec<EntryResponder<TypeConfig>>) -> io::Result<bool> {
        let started = Instant::now();
        let count = entries.len();
        let mut next = self.current().as_ref().clone();
        let mut changes = Changes::default();
        let mut answers = Vec::with_capacity(count);
        let mut waited = Vec::new();
        for (entry, responder) in entries {
            let index = entry.log_id.index;
            APPLYING.set(Some(entry.log_id));
            // Gaps are allowed here, because openraft's test suite for stores leaves some. A reader
            // of the log rejects gaps.
            assert!(
                next.index() < Some(index),
                "entries are applied once and in order, but {index} follows {:?}",
                next.index()
            );
            let answer = match entry.payload {
                Payload::Blank => Applied::NoCommand,
                Payload::Normal(logged) => {
                    let stamped = logged.stamped();
                    let outcome = self.apply_one(index, &mut next, &mut changes, stamped);
                    if let Some(id) = &stamped.write_id
                        && let Some(waits) = self.views().outcomes.waits_for(id)
                    {
                        let (at, outcome) = (entry.log_id, outcome.clone());
                        waited.push((waits, Committed { at, outcome }));
                    }
                    Applied::Outcome(outcome)
                }
                Payload::Membership(membership) => {
                    let stored = StoredMembership::new(Some(entry.log_id), membership);
                    next.membership = Arc::new(stored);
                    Applied::NoCommand
                }
            };
            next.last = Some(entry.log_id);
            self.check_level(&next)?;
            self.views().checkpoints().note(index, || next.digest());
            answers.extend(responder.map(|responder| (responder, answer)));
        }
        APPLYING.set(None);
        let decided = started.elapsed();
        let rows = changes.rows.len();
        let too_much_waits = (self.behind).note(changes.rows, changes.entries, next.clone())?;
        let noted = started.elapsed();
        let index = next.index();
        self.publish(next);
        for (waits, outcome) in waited {
            // This fails if the waiter has just given up.
            let _ = waits.send(outcome);
        }
        for (responder, answer) in answers {
            responder.send(answer);
        }

        let took = started.elapsed();
        self.base.counters.apply.observe(took.as_secs_f64());
        self.base.counters.applied_entries.inc_by(count as u64);
        if took > SLOW_APPLY {
            log!(
                APPLY_SLOW,
                index,
                entries = count,
                rows,
                decide_ms = millis(decided),
                note_ms = millis(noted - decided),
                publish_ms = millis(took - noted),
                "applying entries was slow"
            );
        }
        Ok(too_much_waits)
    }

    /// Writes the pending rows while apply waits.
    pub(super) fn write_rows(&self) -> io::Result<()> {
        let started = Instant::now();
        self.behind.write()?;
        let took = started.elapsed();
        if took > SLOW_APPLY {
            let took_ms = millis(took);
            log!(APPLY_WAITS, took_ms, "applying entries waits for the disk");
        }
        Ok(())
    }

    /// Stops the node after an entry that raises the feature level beyond the levels that this
    /// binary knows: it might apply later entries differently from the other nodes.
    fn check_level(&self, next: &AppliedState) -> io::Result<()> {
        let level = next.cluster.level();
        if level <= Level::NEWEST {
            return Ok(());
        }
        let words = format!(
            "the feature level of the cluster is {level} from entry {} on, but this binary knows \
             levels up to {}; this node is quarantined until it is started with a newer version, \
             the one that the rest of the cluster runs",
            next.index().unwrap_or_default(),
            Level::NEWEST
        );
        self.base.health.report(&words);
        Err(io_error(words))
    }

    fn apply_one(
        &self,
        index: u64,
        next: &mut AppliedState,
        noted: &mut Changes,
        stamped: &Stamped,
    ) -> Outcome {
        let started = Instant::now();
        let write_id = stamped.write_id.as_ref();
        // Looked up only if spans of level DEBUG are recorded.
        let kept = write_id.filter(|_| LevelFilter::current() >= LevelFilter::DEBUG);
        let request = kept.and_then(|id| self.views().outcomes.span_for(id));
        let _request = request.map(Span::entered);
        let _span = tracing::debug_span!(
            "apply",
            index,
            command = stamped.command.name(),
            origin = write_id.map(|id| id.origin),
            boot = write_id.map(|id| id.boot),
            sequence = write_id.map(|id| id.sequence),
        )
        .entered();
        let applier = &self.base.options.applier;
        let (outcome, changes) = applier.apply(index, &next.cluster, stamped);
        for (partition, changes) in &changes {
            let rows = changes.iter();
            (noted.rows).extend(rows.map(|change| ChangedRow::new(*partition, change)));
        }
        let version = next.record_version();
        let entries = LedgerEntry::for_command(index, stamped, &next.cluster, &changes);
        for entry in entries {
            pack::add(&mut noted.entries, version, &entry);
        }
        Arc::make_mut(&mut next.cluster).commit(&changes);
        next.last_stamp = next.last_stamp.max(Some(stamped.at));
        let took = started.elapsed();
        if took > SLOW_APPLY {
            log!(
                COMMAND_SLOW,
                index,
                command = %stamped,
                changes = changes.iter().map(|(_, own)| own.len()).sum::<usize>(),
                apply_ms = millis(took),
                "applying a command was slow"
            );
        }
        outcome
    }

    /// Makes the rows durable, so that the log can be purged up to the current state, which
    /// openraft gets as its snapshot. The cost depends on the changes since the last call. An error
    /// stops the node only if RocksDB no longer accepts writes.
    pub(super) fn cover(&self) -> io::Result<Arc<AppliedState>> {
        let _writing = self.writing.lock();
        let started = Instant::now();
        // Read before the flush, which may not include entries that are applied while it runs.
        let applied = self.current();
        self.counted(self.make_rows_durable())?;
        log!(
            ROWS_DURABLE,
            covers = applied.index(),
            took_ms = millis(started.elapsed()),
            "the rows are durable"
        );
        files::point("the rows are flushed", &self.database.rocks.dir);
        self.snapshots.cut_up_to(applied.last);
        Ok(applied)
    }

    /// Stores a state with durable rows for openraft, unless a newer one is stored.
    pub(super) fn keep_covered(&self, applied: Arc<AppliedState>) {
        let mut covered = self.covered.lock();
        if (covered.as_ref()).is_none_or(|before| before.last <= applied.last) {
            *covered = Some(applied);
        }
    }

    pub(super) fn take_covered(&self) -> Option<Arc<AppliedState>> {
        self.covered.lock().take()
    }

    /// The snapshot for a node that needs purged entries: a snapshot already being sent, or the
    /// current state. `None` before the first entry.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        if let Some(WrittenSnapshot { meta, file }) = self.snapshots.written() {
            let snapshot = SnapshotData::File(file);
            return Some(Snapshot { meta, snapshot });
        }
        let applied = self.current();
        applied.last.is_some().then(|| applied.to_snapshot())
    }

    /// Writes the file of a snapshot to send.
    pub(super) fn write_down(&self, applied: &AppliedState) -> io::Result<SnapshotFile> {
        let _writing = self.writing.lock();
        let started = Instant::now();
        let written = runtime::yielding(|| self.snapshots.write_down(applied));
        let written = self.counted(written)?;
        log!(
            SNAPSHOT_WRITTEN,
            covers = %written.meta,
            bytes = written.file.length(),
            took_ms = millis(started.elapsed()),
            "a snapshot was written for sending"
        );
        Ok(written.file)
    }

    fn counted<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.inspect_err(|_| {
            self.base.counters.snapshots_failed.inc();
        })
    }

    /// Writes and flushes the rows, so that the next start needs no log for the entries applied so
    /// far.
    pub(super) fn make_rows_durable(&self) -> io::Result<()> {
        self.behind.write()?;
        let _under_way = self.base.counters.disk_wait.begin();
        self.database.sync().map_err(|error| {
            // If RocksDB still accepts writes, the error was transient.
            match self.database.write(WriteBatch::default()) {
                Ok(()) => io_error(error),
                Err(_) => self.failure.fail("flushed", error.as_ref()),
            }
        })
    }

    /// Verifies the snapshot that is being sent, and removes it if it is damaged; the next transfer
    /// writes a new one. Returns whether it was damaged.
    pub(super) fn repair_snapshot(&self) -> bool {
        let _writing = self.writing.lock();
        let Some(WrittenSnapshot { meta, file }) = self.snapshots.written() else {
            return false;
        };
        let Err(error) = self.snapshots.read(&meta, &file) else {
            return false;
        };
        self.base.counters.snapshots_damaged.inc();
        log!(
            SNAPSHOT_DAMAGED,
            path = %file.path().display(),
            %error,
            "this node's own snapshot is damaged; writing a new one"
        );
        self.snapshots.discard();
        RarePath::SnapshotMended.ran();
        true
    }

    /// Replaces the state by a received snapshot after verifying all of it.
    pub(super) fn install(&self, meta: &SnapshotMeta, file: &SnapshotFile) -> io::Result<()> {
        let started = Instant::now();
        let mut applied = self.verified(meta, file)?;
        if mutant!("install-without-traits") {
            let rows = (applied.cluster.rows())
                .filter(|(_, row)| !matches!(row, Change::PutProviderTraits(..)));
            applied.cluster = Cluster::load(rows).expect("no row refers to these").into();
        }
        let current = self.current().index();
        assert!(
            applied.index() >= current,
            "a snapshot replaces an older state, but {:?} is earlier than {current:?}",
            applied.index()
        );
        let verified = started.elapsed();
        let fail = |error: &str| self.failure.fail("replaced by a snapshot", error);
        let kept = (self.snapshots.keep(file)).map_err(|error| fail(&error.to_string()))?;
        files::point("a snapshot is about to be installed", kept.path());
        self.behind
            .replace(&applied, || self.database.replace(&kept.name(), &applied))
            .map_err(|error| fail(error.as_ref()))?;
        files::point("a snapshot is installed", kept.path());
        self.publish(applied);
        self.views().outcomes.forget();
        // The rows contain the snapshot durably.
        snapshot_dir::remove(kept.path());
        self.snapshots.cut_up_to(meta.last_log_id);
        RarePath::SnapshotInstalled.ran();
        log!(
            SNAPSHOT_INSTALLED,
            covers = %meta,
            bytes = file.length(),
            verify_ms = millis(verified),
            took_ms = millis(started.elapsed()),
            "installed a snapshot"
        );
        Ok(())
    }

    fn verified(&self, meta: &SnapshotMeta, file: &SnapshotFile) -> io::Result<AppliedState> {
        if let Some(state) = &file.verified
            && state.last == meta.last_log_id
        {
            return Ok(state.as_ref().clone());
        }
        self.snapshots.read(meta, file).map_err(|error| {
            let words = format!(
                "the snapshot in {} is rejected: {error}",
                file.path().display()
            );
            self.base.health.report(&words);
            io_error(words)
        })
    }
}

/// Replaces the rows by a snapshot before openraft is started. The rows belong to the old state, or
/// partly to the new one if a crash interrupted the installation.
fn put_in_place(database: &StateDatabase, snapshots: &SnapshotDir, name: &str) -> Result<()> {
    let applied = snapshots.read_again(name).map_err(|error| match error {
        SnapshotError::Io(error) if error.kind() != io::ErrorKind::NotFound => {
            OpenError::io("read the snapshot of", &database.rocks.dir, error)
        }
        error => {
            let reason = format!("snapshot {name} must replace it, but {error}");
            OpenError::damaged(&database.rocks.dir, reason)
        }
    })?;
    let replaced = database.replace(name, &applied);
    replaced.map_err(|error| database.rocks.failed(&error))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
