//! Everything that is written to the log passes through one queue, in order: entries, votes,
//! truncation, purges. One thread takes what waits there, writes it as one batch, syncs once, and
//! only then tells openraft. The commit index goes along with the next batch, and wakes nobody.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use openraft::storage::IOFlushed;
use parking_lot::{Mutex, MutexGuard};
use placement_model::mutant;
use rocksdb::{WriteBatch, WriteOptions};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;

use super::database::LogDatabase;
use super::reached::{Mark, Reached};
use super::tail::Tail;
use crate::counters::Counters;
use crate::data_dir::DirLock;
use crate::files;
use crate::health::Reporter;
use crate::observer::{LogEvent, LogObserver};
use crate::options::{Disk, StoreOptions};
use crate::rocks;
use crate::runtime;
use crate::simulation::SimulatedDisk;
use crate::types::{LogId, TypeConfig, Vote};
use crate::write_version::WriteVersion;

/// A sync that takes longer is logged.
const SLOW_SYNC: Duration = Duration::from_millis(500);

/// How often it is looked whether a simulated disk still hangs.
const HANGING: Duration = Duration::from_millis(5);

/// One write.
pub(super) enum Job {
    Append {
        number: u64,
        rows: Vec<(u64, Vec<u8>)>,
        last: Option<LogId>,
        flushed: IOFlushed<TypeConfig>,
        /// Its place in the queue, given back once it is on disk.
        room: OwnedSemaphorePermit,
    },
    Vote {
        vote: Vote,
        done: oneshot::Sender<io::Result<()>>,
    },
    Truncate {
        last: Option<LogId>,
    },
    Purge {
        upto: LogId,
    },
}

/// What readers and the writer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) database: LogDatabase,
    pub(super) version: WriteVersion,
    tail: Mutex<Tail>,
    failure: Mutex<Option<String>>,
    reporter: Reporter,
    pub(super) counters: Arc<Counters>,
    pub(super) observer: Option<Arc<dyn LogObserver>>,
    disk: Disk,
    _lock: DirLock,
}

impl Shared {
    pub(super) fn new(
        database: LogDatabase,
        version: WriteVersion,
        tail: Tail,
        reporter: Reporter,
        counters: Arc<Counters>,
        options: &StoreOptions,
        lock: DirLock,
    ) -> Self {
        let (tail, failure) = (Mutex::new(tail), Mutex::new(None));
        Self {
            database,
            version,
            tail,
            failure,
            reporter,
            counters,
            observer: options.log_observer.clone(),
            disk: options.disk.clone(),
            _lock: lock,
        }
    }

    pub(super) fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock()
    }

    /// Tells who looks from outside.
    pub(super) fn observed(&self, event: LogEvent<'_>) {
        if let Some(observer) = &self.observer {
            observer.note(event);
        }
    }

    /// Fails once anything has failed: nothing may be written behind a hole.
    pub(super) fn check(&self) -> io::Result<()> {
        let failure = self.failure.lock();
        failure
            .as_ref()
            .map_or(Ok(()), |words| Err(rocks::io_error(words.clone())))
    }

    /// Keeps and reports the first failure.
    pub(super) fn fail(&self, action: &str, error: &str) -> io::Error {
        // These words go to clients and to other nodes: in a simulation they are the same in each run.
        let dir = match &self.disk {
            Disk::Real => &self.database.dir,
            Disk::Simulated(disk) => &disk.shown(&self.database.dir),
        };
        let words = format!(
            "the log in {} cannot be {action}: {error}; this node takes no part until the cause is \
             removed and it is started again",
            dir.display()
        );
        self.failure.lock().get_or_insert_with(|| words.clone());
        self.reporter.report(&words);
        rocks::io_error(words)
    }

    fn write(&self, batch: WriteBatch) -> io::Result<()> {
        self.check()?;
        self.database
            .db
            .write_opt(batch, &WriteOptions::default())
            .map_err(|error| self.fail("written", error.as_ref()))
    }

    /// Writes a batch. What it truncates away is no longer to be expected, from before it is gone.
    fn write_truncating(
        &self,
        batch: WriteBatch,
        waiting: &Waiting,
        reached: &mut Reached,
    ) -> io::Result<()> {
        for last in &waiting.truncated {
            (reached.lower(*last)).map_err(|error| self.fail("truncated", &error.to_string()))?;
            files::point("the log is to be truncated", &self.database.dir);
        }
        self.write(batch)
    }

    /// At the end, when no batch follows. If it fails, the next start replays more.
    fn write_committed(&self, last: Option<LogId>) {
        let Some(committed) = self.tail().take_committed(last) else {
            return;
        };
        let mut batch = WriteBatch::default();
        (self.database).put_committed(&mut batch, self.version.get(), committed);
        let _ = self.write(batch);
    }

    fn sync(&self) -> io::Result<()> {
        let started = Instant::now();
        self.database
            .db
            .flush_wal(true)
            .map_err(|error| self.fail("synced", error.as_ref()))?;
        let took = started.elapsed();
        self.counters.sync.observe(took.as_secs_f64());
        if took > SLOW_SYNC {
            tracing::warn!(
                sync_ms = took.as_millis() as u64,
                "a sync of the log was slow"
            );
        }
        Ok(())
    }
}

/// The way into the queue. When the last clone is gone, what waits is written and the thread ends.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<mpsc::UnboundedSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, or in a simulation the task.
    pub(super) fn start(shared: Arc<Shared>, reached: Reached, disk: &Disk) -> io::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let thread = match disk.clone() {
            Disk::Real => Some(
                std::thread::Builder::new()
                    .name("placement-log".to_owned())
                    .spawn(move || write_for_real(&shared, reached, receiver))?,
            ),
            Disk::Simulated(disk) => {
                runtime::spawn(write_simulated(shared, reached, receiver, disk));
                None
            }
        };
        Ok(Self {
            queue: Some(sender),
            thread,
        })
    }

    /// Puts a write into the queue.
    pub(super) fn send(&self, job: Job) -> io::Result<()> {
        self.queue
            .as_ref()
            .expect("the queue is closed only when its writer is dropped")
            .send(job)
            .map_err(|_closed| rocks::io_error("the thread that writes the log has ended"))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes the log has panicked");
        }
    }
}

fn write_for_real(shared: &Shared, mut reached: Reached, mut queue: mpsc::UnboundedReceiver<Job>) {
    while let Some(first) = queue.blocking_recv() {
        let (batch, mut waiting) = gather(shared, first, reached.noted(), &mut queue);
        let under_way = shared.counters.disk_wait.begin();
        let mut result = shared.write_truncating(batch, &waiting, &mut reached);
        waiting.written(shared, &result);
        if waiting.wants_sync() && result.is_ok() {
            result = shared.sync();
            waiting.synced(shared, &result);
        }
        waiting.answer(shared, &result);
        waiting.note(&result, &mut reached);
        drop(under_way);
    }
    shared.write_committed(reached.noted().last);
    reached.finish();
}

async fn write_simulated(
    shared: Arc<Shared>,
    mut reached: Reached,
    mut queue: mpsc::UnboundedReceiver<Job>,
    disk: SimulatedDisk,
) {
    while let Some(first) = queue.recv().await {
        let (batch, mut waiting) = gather(&shared, first, reached.noted(), &mut queue);
        let under_way = shared.counters.disk_wait.begin();
        let wrote =
            files::until_power_fails(|| shared.write_truncating(batch, &waiting, &mut reached));
        let Some(mut result) = wrote else {
            return pending().await;
        };
        waiting.written(&shared, &result);
        if waiting.wants_sync() && result.is_ok() {
            if mutant!("acknowledge-before-sync") {
                waiting.answer(&shared, &result);
            }
            if files::power_fails("the log is written", &shared.database.dir) {
                return pending().await;
            }
            let began = Instant::now();
            tokio::time::sleep(disk.next_latency()).await;
            while disk.hangs() {
                tokio::time::sleep(HANGING).await;
            }
            shared.counters.sync.observe(began.elapsed().as_secs_f64());
            result = disk
                .sync(&shared.database.dir)
                .map_err(|error| shared.fail("synced", &error.to_string()));
            waiting.synced(&shared, &result);
            if files::power_fails("the log is synced", &shared.database.dir) {
                return pending().await;
            }
        }
        waiting.answer(&shared, &result);
        waiting.note(&result, &mut reached);
        drop(under_way);
    }
    shared.write_committed(reached.noted().last);
}

/// The callers that wait for a batch.
#[derive(Default)]
struct Waiting {
    appends: Vec<IOFlushed<TypeConfig>>,
    votes: Vec<(Vote, oneshot::Sender<io::Result<()>>)>,
    /// The number of the last append in the batch.
    last_append: u64,
    entries: u64,
    /// Whether the batch has been synced, and not only written.
    is_synced: bool,
    /// What the log has come to with this batch.
    mark: Mark,
    /// The vote that the batch writes.
    voted: Option<Vote>,
    /// Down to where the batch truncates, if it does.
    truncated: Vec<Option<LogId>>,
    /// Given back to the queue when this is dropped.
    room: Vec<OwnedSemaphorePermit>,
}

/// Turns `first` and what waits behind it into one batch.
fn gather(
    shared: &Shared,
    first: Job,
    noted: Mark,
    queue: &mut mpsc::UnboundedReceiver<Job>,
) -> (WriteBatch, Waiting) {
    let mut batch = WriteBatch::default();
    let mut waiting = Waiting {
        mark: noted,
        ..Waiting::default()
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
    waiting.add_committed(shared, &mut batch);
    (batch, waiting)
}

impl Waiting {
    fn add(&mut self, shared: &Shared, batch: &mut WriteBatch, job: Job) {
        let (database, version) = (&shared.database, shared.version.get());
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
                    "appends are queued in their order, but {number} follows {}",
                    self.last_append
                );
                self.entries += rows.len() as u64;
                self.last_append = number;
                self.appends.push(flushed);
                self.room.push(room);
                self.mark.last = last.or(self.mark.last);
            }
            Job::Vote { vote, done } => {
                if !mutant!("forget-votes") {
                    database.put_vote(batch, version, &vote);
                    self.mark.vote = Some(vote);
                    self.voted = Some(vote);
                }
                self.votes.push((vote, done));
            }
            Job::Truncate { last } => {
                if !mutant!("drop-truncations") {
                    database.truncate(batch, last.map_or(0, |id| id.index + 1));
                }
                self.mark.truncate(last);
                self.truncated.push(last);
            }
            Job::Purge { upto } => database.purge(batch, version, &upto),
        }
    }

    /// Not further than the entries that are written: those behind them may be lost.
    fn add_committed(&mut self, shared: &Shared, batch: &mut WriteBatch) {
        let Some(committed) = shared.tail().take_committed(self.mark.last) else {
            return;
        };
        let (database, version) = (&shared.database, shared.version.get());
        database.put_committed(batch, version, committed);
        if mutant!("older-vote-returns") {
            let older = Vote::new(0, 0);
            database.put_vote(batch, version, &older);
            self.voted = Some(older);
        }
    }

    /// Only entries and votes are waited for. The rest may be lost by a crash: a purge is done
    /// again, a truncation precedes the append that made it necessary, and the commit index only
    /// makes the replay at the next start longer.
    fn wants_sync(&self) -> bool {
        !self.appends.is_empty() || !self.votes.is_empty()
    }

    fn synced(&mut self, shared: &Shared, result: &io::Result<()>) {
        self.is_synced = true;
        if result.is_ok() {
            shared.observed(LogEvent::Synced(self.mark.last));
            if let Some(vote) = self.voted {
                shared.observed(LogEvent::VoteSynced(vote));
            }
        }
    }

    /// Notes how far the log has come, which is true only after a sync.
    fn note(&self, result: &io::Result<()>, reached: &mut Reached) {
        if result.is_ok() && self.is_synced {
            reached.raise(self.mark);
        }
    }

    /// RocksDB has the batch, though not yet durably: memory need not keep it for readers.
    fn written(&self, shared: &Shared, result: &io::Result<()>) {
        if result.is_ok() {
            shared.tail().written(self.last_append);
        }
    }

    /// Tells the callers the result.
    fn answer(&mut self, shared: &Shared, result: &io::Result<()>) {
        if result.is_ok() {
            shared
                .counters
                .synced_entries
                .fetch_add(self.entries, Ordering::Relaxed);
        }
        self.entries = 0;
        for (vote, done) in self.votes.drain(..) {
            if result.is_ok() {
                shared.tail().vote = Some(vote);
                if let Disk::Simulated(disk) = &shared.disk {
                    disk.acknowledged(vote);
                }
            }
            // A caller that no longer waits has crashed or shut down.
            let _ = done.send(copy(result));
        }
        // The newest first: openraft takes the others for granted then, and is woken once.
        for flushed in self.appends.drain(..).rev() {
            flushed.io_completed(copy(result));
        }
    }
}

/// The same result once more: `io::Error` cannot be cloned.
fn copy(result: &io::Result<()>) -> io::Result<()> {
    result
        .as_ref()
        .map_err(|error| io::Error::new(error.kind(), error.to_string()))
        .copied()
}
