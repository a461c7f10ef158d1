//! The Raft log: entries, the vote and the commit index.

mod database;
mod inspect;
mod reached;
mod tail;
mod writer;

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Weak};

use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use openraft::OptionalSend;
use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use placement_model::mutant;
use rocksdb::DB;
use tokio::sync::{Semaphore, oneshot};

pub(crate) use self::database::FAMILIES;
pub(crate) use self::database::LogDatabase;
use self::database::LogEnds;
pub use self::inspect::LogLine;
use self::reached::{ReachedFile, SyncedPosition};
use self::tail::Tail;
use self::writer::{Job, Shared};
use crate::base::Base;
use crate::error::{OpenError, Result, io_error};
use crate::observer::LogEvent;
use crate::types::{Entry, LogId, Payload, TypeConfig, Vote};
use crate::wire::{self, RecordVersion, WireEntry};
use placement_base::coverage::RarePath;
use placement_base::log_messages::log;
use placement_base::runtime::Worker;

/// Bytes of entries read in one step for a follower or for apply.
const STEP_BYTES: usize = 1 << 20;

/// The log storage for openraft.
pub struct LogStore {
    // Declared before `shared`, so that it is dropped first: its thread ends before the database
    // closes.
    writer: Worker<Job>,
    shared: Arc<Shared>,
    appends: u64,
    /// Free bytes in the writer's queue.
    room: Arc<Semaphore>,
    room_max: usize,
}

/// Reads the log. openraft uses one reader for each follower and one for apply.
#[derive(Clone)]
pub struct LogReader {
    shared: Arc<Shared>,
}

impl LogStore {
    /// Opens the log of a node whose state contains the entries up to `applied`.
    pub(crate) fn open(base: &Arc<Base>, applied: Option<LogId>) -> Result<Self> {
        let (options, version) = (&base.options, base.version());
        let (database, mut ends) = LogDatabase::open(options, &base.cache)?;
        if let Some(led) = applied.map(|applied| vote_for_leader_of(&applied))
            && led.leader_id.term > 0
            && ends.vote < Some(led)
        {
            // This start has installed a snapshot that was received before a crash, and openraft
            // had not yet saved a vote for the leader of the last entry in it.
            database.write_synced(|batch| database.put_vote(batch, version, &led))?;
            ends.vote = Some(led);
        }
        if options.log_observer.is_some() {
            let (purged, entries) = (ends.purged, &database.entries(&ends)?);
            options.observed(LogEvent::Opened { purged, entries });
            if let Some(vote) = ends.vote {
                options.observed(LogEvent::VoteSynced(vote));
            }
        }
        let (last, vote) = (ends.last, ends.vote);
        let mut found = SyncedPosition { last, vote };
        if let Some(applied) = applied
            && is_overtaken(&database, &ends, applied)?
        {
            log!(
                LOG_BEHIND_STATE,
                last = ends.last.map(|id| id.to_string()),
                %applied,
                "a crash undid a truncation of the log; the state is ahead of the log, so the log \
                 now begins after the state"
            );
            // The synced position in `reached` is lowered first, as before each truncation.
            found.last = None;
            ReachedFile::begin(&options.dir, found)?;
            database.begin_behind(version, &applied)?;
            options.observed(LogEvent::Purged(applied));
            options.observed(LogEvent::Truncated(Some(applied)));
            ends.purged = Some(applied);
            ends.last = Some(applied);
        }
        let reached = ReachedFile::begin(&options.dir, found)?;
        if mutant!("commit-the-tail") {
            ends.committed = ends.last;
        }
        let tail = Tail::new(&ends, options.log_cache_bytes);
        options.disk.opened(ends.vote);
        let shared = Arc::new(Shared::new(base, database, tail));
        let dir = &shared.database.rocks.dir;
        let writer = writer::start(&shared, reached)
            .map_err(|error| OpenError::io("start the writer of", dir, error))?;
        let room_max = options.log_queue_bytes.min(Semaphore::MAX_PERMITS);
        Ok(Self {
            writer,
            shared,
            appends: 0,
            room: Arc::new(Semaphore::new(room_max)),
            room_max,
        })
    }

    /// Whether anything was ever written to the log.
    pub(crate) fn is_used(&self) -> bool {
        let tail = self.shared.tail();
        tail.last.is_some() || tail.vote.is_some()
    }

    fn send(&self, job: Job) -> io::Result<()> {
        if self.writer.send(job) {
            Ok(())
        } else {
            Err(io_error("the log writer thread has ended"))
        }
    }

    pub(crate) fn database(&self) -> Weak<DB> {
        Arc::downgrade(&self.shared.database.rocks.db)
    }

    /// A reader of the log in addition to those of openraft. It keeps the database open.
    pub fn reader(&self) -> LogReader {
        LogReader {
            shared: Arc::clone(&self.shared),
        }
    }
}

/// Manual changes to the log of a stopped node.
impl LogDatabase {
    /// Makes the log begin after the last applied entry and updates the file `reached`, durably.
    pub(crate) fn begin_behind_state(&self, version: RecordVersion, applied: &LogId) -> Result<()> {
        self.begin_behind(version, applied)?;
        let vote = self.ends()?.vote;
        let last = Some(*applied);
        ReachedFile::begin(&self.home, SyncedPosition { last, vote })?;
        Ok(())
    }

    /// Replaces an entry by a blank one, durably.
    pub(crate) fn make_blank(&self, version: RecordVersion, id: LogId) -> Result<()> {
        let blank = WireEntry::from(&Entry::new(id, Payload::Blank));
        let row = wire::encode(version, &blank);
        self.write_synced(|batch| self.put_entry(batch, id.index, &row))
    }

    /// Appends an entry in a new term, durably and without a quorum, on an operator's order.
    pub(crate) fn append_recovery_entry(
        &self,
        version: RecordVersion,
        entry: &Entry,
    ) -> Result<()> {
        let leader = entry.log_id.committed_leader_id();
        let vote = Vote::new_committed(leader.term, leader.node_id);
        let row = wire::encode(version, &WireEntry::from(entry));
        self.write_synced(|batch| {
            self.put_entry(batch, entry.log_id.index, &row);
            self.put_vote(batch, version, &vote);
        })
    }
}

/// The lowest vote that a node with this entry must have given.
fn vote_for_leader_of(entry: &LogId) -> Vote {
    let leader = entry.committed_leader_id();
    Vote::new(leader.term, leader.node_id)
}

/// Whether the state contains an entry that the log lacks. Then a leader truncated the log, and a
/// loss of power undid the truncation: a truncation without a later append is not synced. Log
/// entries that conflict with an applied entry were never committed, and neither were the entries
/// after them.
fn is_overtaken(database: &LogDatabase, ends: &LogEnds, applied: LogId) -> Result<bool> {
    if ends.purged.is_some_and(|id| id.index >= applied.index) {
        return Ok(false);
    }
    match database.id_at(applied.index)? {
        Some(there) => Ok(there != applied),
        // If the log ends before the applied entry, openraft continues after the applied entry, but
        // not if the last entry of the log has a later term.
        None => Ok(ends.last > Some(applied)),
    }
}

impl LogReader {
    /// The next entries of `start..end`: about 1 MiB, but at least one entry. If the log begins
    /// after `start`, the result begins with the first entry of the log.
    ///
    /// # Errors
    /// The log cannot be read; the storage has failed.
    pub fn step(&self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        self.read((start, end), STEP_BYTES)
    }

    /// The existing entries of the range, up to `bytes_max` bytes but at least one entry.
    fn read(&self, range: (u64, u64), bytes_max: usize) -> io::Result<Vec<Entry>> {
        let tail = self.shared.tail();
        let start = range.0.max(tail.first_index());
        let end = range.1.min(tail.end_index());
        if start >= end {
            return Ok(Vec::new());
        }
        let border = tail.first_cached().clamp(start, end);
        if start == border {
            return Ok(tail.range(start, end, bytes_max));
        }
        RarePath::LogReadFromDisk.ran();
        // Entries before the border are in RocksDB. The snapshot is taken under the lock, so that
        // both parts are from the same moment. It is read after the lock is released.
        let database = &self.shared.database;
        let snapshot = database.rocks.db.snapshot();
        let newer = if border < end && bytes_max == usize::MAX {
            tail.range(border, end, bytes_max)
        } else {
            Vec::new()
        };
        drop(tail);
        let under_way = self.shared.base.counters.disk_wait.begin();
        let mut entries = (database.read(&snapshot, (start, border), bytes_max))
            .map_err(|error| self.shared.failure.fail("read", &error))?;
        drop(under_way);
        entries.extend(newer);
        Ok(entries)
    }
}

impl RaftLogReader<TypeConfig> for LogReader {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        self.read(half_open(&range), usize::MAX)
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, io::Error> {
        let entries = self.read((start, end), STEP_BYTES)?;
        // Replicated entries must follow the receiver's last entry. If openraft gets no entries, it
        // sends a heartbeat and determines again which entries the receiver needs.
        let is_whole = entries
            .first()
            .is_none_or(|first| first.log_id.index == start);
        Ok(if is_whole { entries } else { Vec::new() })
    }

    async fn entries_stream<RB>(
        &mut self,
        range: RB,
    ) -> impl Stream<Item = Result<Entry, io::Error>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let (start, end) = half_open(&range);
        let reader = self.clone();
        // Reads in steps: after a long downtime, a node may have to apply more entries than fit in
        // memory.
        stream::try_unfold(start, move |next| {
            let step = reader.read((next, end), STEP_BYTES);
            let shared = Arc::clone(&reader.shared);
            async move {
                let entries = step?;
                // Applied entries must have no gaps.
                if let Some(first) = entries.first().filter(|first| first.log_id.index != next) {
                    let error = format!(
                        "entry {next} is missing; the next entry is {}",
                        first.log_id
                    );
                    return Err(shared.failure.fail("read", &error));
                }
                let next = entries.last().map(|last| last.log_id.index + 1);
                Ok::<_, io::Error>(next.map(|next| (entries, next)))
            }
        })
        .map_ok(|entries| stream::iter(entries).map(Ok::<_, io::Error>))
        .try_flatten()
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.shared.tail().vote)
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = LogReader;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let tail = self.shared.tail();
        Ok(LogState {
            last_purged_log_id: tail.purged,
            last_log_id: tail.last,
        })
    }

    async fn get_log_reader(&mut self) -> LogReader {
        self.reader()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        self.shared.observed(LogEvent::Voted(vote));
        self.shared.failure.check()?;
        let (done, saved) = oneshot::channel();
        self.send(Job::Vote(*vote, done))?;
        saved
            .await
            .map_err(|_gone| io::Error::other("the log writer has ended"))?
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        self.shared.failure.check()?;
        self.shared.tail().committed = committed;
        if let Some(committed) = committed {
            self.shared.observed(LogEvent::Committed(committed));
        }
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.shared.tail().committed)
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: IOFlushed<TypeConfig>,
    ) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.shared.failure.check()?;
        let mut rows: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut cached = Vec::new();
        let (mut last, mut bytes) = (None, 0);
        let version = self.shared.base.version();
        for entry in entries {
            let index = entry.log_id.index;
            let follows = match rows.last() {
                Some((before, _)) => index == before + 1,
                None => self.shared.tail().follows(index),
            };
            // An error, not a panic: entries come from other nodes, so a gap may be caused by a bug
            // in another node.
            if !follows {
                let error = format!("entry {index} does not follow the last entry");
                return Err(self.shared.failure.fail("continued", &error));
            }
            let row = wire::encode(version, &WireEntry::from(&entry));
            bytes += row.len();
            last = Some(entry.log_id);
            self.shared.observed(LogEvent::Appended(&entry));
            cached.push((entry, row.len()));
            rows.push((index, row));
        }
        // openraft's main task waits here if the disk is too slow. Until the wait ends, this node
        // neither leads nor follows, and the others do not wait for it. The writer does not depend
        // on that task, so the wait ends with the next sync or with a failure of the writer.
        let wanted = u32::try_from(bytes.min(self.room_max)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room)
            .acquire_many_owned(wanted)
            .await
            .expect("the semaphore is never closed");
        self.appends += 1;
        let number = self.appends;
        // Make the entries readable first, then write them.
        self.shared.tail().append(number, cached);
        self.send(Job::Append {
            number,
            rows,
            last,
            flushed: callback,
            room,
        })
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        self.shared.failure.check()?;
        RarePath::LogTruncated.ran();
        self.shared.tail().truncate(last);
        self.shared.observed(LogEvent::Truncated(last));
        self.send(Job::Truncate(last))
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        self.shared.failure.check()?;
        RarePath::LogPurged.ran();
        self.shared.tail().purge(upto);
        self.shared.observed(LogEvent::Purged(upto));
        self.send(Job::Purge(upto))
    }
}

/// Converts any range to `start..end`.
fn half_open(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(end) => end.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => u64::MAX,
    };
    (start, end)
}
