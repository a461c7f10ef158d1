//! The log writer. Entries, votes, truncations and purges pass through one queue, in order. One
//! thread takes the waiting jobs, writes them as one batch, syncs once, and only then reports to
//! openraft. The commit index is written with the next batch and does not wake the thread.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use openraft::storage::IOFlushed;
use parking_lot::{Mutex, MutexGuard};
use placement_model::mutant;
use rocksdb::{WriteBatch, WriteOptions};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;

use super::database::LogDatabase;
use super::reached::{ReachedFile, SyncedPosition};
use super::tail::Tail;
use crate::base::Base;
use crate::files;
use crate::health::Failure;
use crate::observer::LogEvent;
use crate::types::{LogId, TypeConfig, Vote};
use placement_base::log_messages::log;
use placement_base::runtime::{self, Worker};

/// Longer syncs are logged.
const SLOW_SYNC: Duration = Duration::from_millis(500);

/// A write to the log.
pub(super) enum Job {
    Append {
        number: u64,
        rows: Vec<(u64, Vec<u8>)>,
        last: Option<LogId>,
        flushed: IOFlushed<TypeConfig>,
        /// Bytes reserved in the queue, released when the rows are on disk.
        room: OwnedSemaphorePermit,
    },
    Vote(Vote, oneshot::Sender<io::Result<()>>),
    /// Removes the entries after this one.
    Truncate(Option<LogId>),
    /// Removes the entries up to and including this one.
    Purge(LogId),
}

/// State shared by readers and the writer.
pub(super) struct Shared {
    pub(super) database: LogDatabase,
    tail: Mutex<Tail>,
    pub(super) failure: Failure,
    /// Declared last, so that it is dropped last: it holds the lock of the directory until the
    /// database is closed.
    pub(super) base: Arc<Base>,
}

impl Shared {
    pub(super) fn new(base: &Arc<Base>, database: LogDatabase, tail: Tail) -> Self {
        Self {
            failure: Failure::new("log", &database.rocks.dir, &base.health),
            database,
            tail: Mutex::new(tail),
            base: Arc::clone(base),
        }
    }

    /// Reports an event to the log observer, if any.
    pub(super) fn observed(&self, event: LogEvent<'_>) {
        self.base.options.observed(event);
    }

    pub(super) fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock()
    }

    fn write(&self, batch: WriteBatch) -> io::Result<()> {
        self.failure.check()?;
        let written = (self.database.rocks.db).write_opt(batch, &WriteOptions::default());
        written.map_err(|error| self.failure.fail("written", error.as_ref()))
    }

    /// Lowers the synced position in `reached` before entries are truncated.
    async fn lower(
        &self,
        reached: &mut ReachedFile,
        truncated: &[Option<LogId>],
    ) -> io::Result<()> {
        for last in truncated {
            let lowered = reached.lower(*last);
            lowered.map_err(|error| self.failure.fail("truncated", &error.to_string()))?;
            self.point("the log is about to be truncated").await;
        }
        Ok(())
    }

    /// Writes the commit index before the store closes. If this fails, the next start replays more
    /// entries.
    fn write_committed(&self, last: Option<LogId>) {
        let mut batch = WriteBatch::default();
        if self.add_committed(&mut batch, last) {
            let _ = self.write(batch);
        }
    }

    /// Adds the commit index to a batch, unless it is beyond `last`, the last written entry:
    /// entries after `last` may still be lost. Returns whether it was added.
    fn add_committed(&self, batch: &mut WriteBatch, last: Option<LogId>) -> bool {
        let committed = self.tail().take_committed(last);
        if let Some(committed) = committed {
            (self.database).put_committed(batch, self.base.version(), &committed);
        }
        committed.is_some()
    }

    async fn sync(&self) -> io::Result<()> {
        let started = Instant::now();
        self.database.disk.ready().await;
        (self.database.disk.sync(&self.database.rocks.db))
            .map_err(|error| self.failure.fail("synced", &error.to_string()))?;
        let took = started.elapsed();
        self.base.counters.sync.observe(took.as_secs_f64());
        if took > SLOW_SYNC {
            log!(
                SYNC_SLOW,
                sync_ms = took.as_millis() as u64,
                "a sync of the log was slow"
            );
        }
        Ok(())
    }

    /// Waits forever if the simulated machine loses power at this point.
    async fn point(&self, name: &'static str) {
        if files::power_fails(name, &self.database.rocks.dir) {
            pending().await
        }
    }
}

/// Starts the writer thread.
pub(super) fn start(shared: &Arc<Shared>, reached: ReachedFile) -> io::Result<Worker<Job>> {
    Worker::start(
        |queue| write(Arc::clone(shared), reached, queue),
        |writer| shared.database.disk.run(writer),
    )
}

async fn write(
    shared: Arc<Shared>,
    mut reached: ReachedFile,
    mut queue: mpsc::UnboundedReceiver<Job>,
) {
    while let Some(first) = queue.recv().await {
        let (batch, mut waiting) = gather(&shared, first, reached.position(), &mut queue);
        let under_way = shared.base.counters.disk_wait.begin();
        let lowered = shared.lower(&mut reached, &waiting.truncated).await;
        let mut result = lowered.and_then(|()| shared.write(batch));
        if result.is_ok() {
            // RocksDB has the batch, though not yet durably, so readers no longer need the cache.
            shared.tail().written(waiting.last_append);
        }
        let syncs = waiting.needs_sync() && result.is_ok();
        if syncs {
            if mutant!("acknowledge-before-sync") {
                waiting.answer(&shared, &result);
            }
            shared.point("the log is written").await;
            result = shared.sync().await;
            if result.is_ok() {
                waiting.report_synced(&shared);
            }
            shared.point("the log is synced").await;
        }
        waiting.answer(&shared, &result);
        if syncs && result.is_ok() {
            reached.raise(waiting.mark);
        }
        drop(under_way);
    }
    shared.write_committed(reached.position().last);
    reached.finish();
}

/// The callers waiting for a batch.
#[derive(Default)]
struct BatchWaiters {
    appends: Vec<IOFlushed<TypeConfig>>,
    votes: Vec<(Vote, oneshot::Sender<io::Result<()>>)>,
    /// The number of the last append in the batch.
    last_append: u64,
    entries: u64,
    /// Last entry and vote of the log after this batch.
    mark: SyncedPosition,
    /// The vote written by the batch.
    voted: Option<Vote>,
    /// The last remaining entry of each truncation in the batch.
    truncated: Vec<Option<LogId>>,
    /// Bytes reserved in the queue, released when this is dropped.
    room: Vec<OwnedSemaphorePermit>,
}

/// Combines `first` and the jobs queued after it into one batch.
fn gather(
    shared: &Shared,
    first: Job,
    noted: SyncedPosition,
    queue: &mut mpsc::UnboundedReceiver<Job>,
) -> (WriteBatch, BatchWaiters) {
    let mut batch = WriteBatch::default();
    let mut waiting = BatchWaiters {
        mark: noted,
        ..BatchWaiters::default()
    };
    let batch_bytes = runtime::limits().log_batch;
    let mut next = Some(first);
    while let Some(job) = next {
        waiting.add(shared, &mut batch, job);
        next = if batch.size_in_bytes() < batch_bytes {
            queue.try_recv().ok()
        } else {
            None
        };
    }
    if shared.add_committed(&mut batch, waiting.mark.last) && mutant!("older-vote-returns") {
        let older = Vote::new(0, 0);
        (shared.database).put_vote(&mut batch, shared.base.version(), &older);
        waiting.voted = Some(older);
    }
    (batch, waiting)
}

impl BatchWaiters {
    fn add(&mut self, shared: &Shared, batch: &mut WriteBatch, job: Job) {
        let (database, version) = (&shared.database, shared.base.version());
        match job {
            Job::Append {
                number,
                rows,
                last,
                flushed,
                room,
            } => {
                let is_dropped = |index: &u64| mutant!("drop-appends") && index.is_multiple_of(16);
                for (index, row) in rows.iter().filter(|(index, _)| !is_dropped(index)) {
                    database.put_entry(batch, *index, row);
                }
                assert!(
                    number > self.last_append,
                    "appends are queued in order, but {number} follows {}",
                    self.last_append
                );
                self.entries += rows.len() as u64;
                self.last_append = number;
                self.appends.push(flushed);
                self.room.push(room);
                self.mark.last = last.or(self.mark.last);
            }
            Job::Vote(vote, done) => {
                if !mutant!("forget-votes") {
                    database.put_vote(batch, version, &vote);
                    self.mark.vote = Some(vote);
                    self.voted = Some(vote);
                }
                self.votes.push((vote, done));
            }
            Job::Truncate(last) => {
                if !mutant!("drop-truncations") {
                    database.truncate(batch, last.map_or(0, |id| id.index + 1));
                }
                self.mark.truncate(last);
                self.truncated.push(last);
            }
            Job::Purge(upto) => database.purge(batch, version, &upto),
        }
    }

    /// Only appends and votes have waiting callers. A crash may lose the other jobs: a purge is
    /// repeated, a truncation is synced with the append that follows it, and an old commit index
    /// only makes the replay at the next start longer.
    fn needs_sync(&self) -> bool {
        !self.appends.is_empty() || !self.votes.is_empty()
    }

    fn report_synced(&self, shared: &Shared) {
        shared.observed(LogEvent::Synced(self.mark.last));
        if let Some(vote) = self.voted {
            shared.observed(LogEvent::VoteSynced(vote));
        }
    }

    /// Sends the result to the callers.
    fn answer(&mut self, shared: &Shared, result: &io::Result<()>) {
        if result.is_ok() {
            shared.base.counters.synced_entries.inc_by(self.entries);
        }
        self.entries = 0;
        for (vote, done) in self.votes.drain(..) {
            if result.is_ok() {
                shared.tail().vote = Some(vote);
                shared.database.disk.acknowledged(vote);
            }
            // This fails if the caller has crashed or shut down.
            let _ = done.send(copy(result));
        }
        // Newest first: for openraft, the newest implies the others, so it is woken only once.
        for flushed in self.appends.drain(..).rev() {
            flushed.io_completed(copy(result));
        }
    }
}

/// Copies a result: `io::Error` is not `Clone`.
fn copy(result: &io::Result<()>) -> io::Result<()> {
    result
        .as_ref()
        .map_err(|error| io::Error::new(error.kind(), error.to_string()))
        .copied()
}
