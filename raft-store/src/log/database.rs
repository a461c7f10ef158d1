//! Rows of the log. Column family `log`: entries, keyed by their big-endian index. Column family
//! `meta`: the vote, the commit index, and the last purged entry.

use std::path::PathBuf;
use std::sync::Arc;

use placement_model::mutant;
use rocksdb::{
    Cache, ColumnFamily, IteratorMode, Options, ReadOptions, Snapshot, WriteBatch, WriteOptions,
};
use serde::Serialize;

use super::reached;
use crate::data_dir::LOG_DIR;
use crate::error::{OpenError, Result};
use crate::log_disk::LogDisk;
use crate::options::StoreOptions;
use crate::rocks::{self, Database};
use crate::types::{Entry, LogId, Vote};
use crate::wire::{self, RecordVersion, WireEntry, WireError, WireLogId, WirePayload, WireVote};

/// Column families of the log.
pub(crate) const FAMILIES: [&str; 2] = [LOG, META];
const LOG: &str = "log";
const META: &str = "meta";
const VOTE: &str = "vote";
const COMMITTED: &str = "committed";
const PURGED: &str = "purged";

pub(crate) struct LogDatabase {
    pub(super) rocks: Database,
    /// Data directory of the node.
    pub(super) home: PathBuf,
    pub(super) disk: Arc<dyn LogDisk>,
}

/// The last purged and the last entry of the log, the vote and the commit index. If the log is
/// empty, `last` equals `purged`.
pub(crate) struct LogEnds {
    pub(crate) purged: Option<LogId>,
    pub(crate) last: Option<LogId>,
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
}

/// RocksDB reuses obsolete write-ahead log files. A sync of an overwritten file is faster, because
/// file system metadata changes only if a file grows. A file is obsolete when all column families
/// are flushed, so they are flushed together.
fn options(store: &StoreOptions, cache: &Cache) -> Options {
    let mut options = rocks::options(store.log_buffer_bytes, cache, "recycle_log_file_num=2;");
    // More buffers than the default let writes continue while flushes of the state keep a slow disk
    // busy.
    options.set_max_write_buffer_number(6);
    options.set_atomic_flush(true);
    options
}

impl LogDatabase {
    /// Opens a log and checks that it has lost nothing.
    pub(crate) fn open(store: &StoreOptions, cache: &Cache) -> Result<(Self, LogEnds)> {
        let (options, dir) = (options(store, cache), store.dir.join(LOG_DIR));
        let database = Self::new(store, Database::open(&options, dir, &FAMILIES)?);
        let ends = database.ends()?;
        database.check_nothing_lost(&ends)?;
        Ok((database, ends))
    }

    /// Opens the log without writing to disk.
    pub(crate) fn open_to_read(store: &StoreOptions, cache: &Cache) -> Result<Self> {
        let (options, dir) = (options(store, cache), store.dir.join(LOG_DIR));
        let rocks = Database::open_to_read(options, dir, &FAMILIES)?;
        Ok(Self::new(store, rocks))
    }

    fn new(store: &StoreOptions, rocks: Database) -> Self {
        Self {
            rocks,
            home: store.dir.clone(),
            disk: Arc::clone(&store.disk),
        }
    }

    pub(super) fn log(&self) -> &ColumnFamily {
        self.rocks.family(LOG)
    }

    /// Reads the ends of the log, the vote and the commit index.
    pub(crate) fn ends(&self) -> Result<LogEnds> {
        let id = |name| Ok(self.rocks.record::<WireLogId>(META, name)?.map(LogId::from));
        let purged = id(PURGED)?;
        let last = self
            .entries_after(purged, IteratorMode::End)
            .next()
            .transpose()?;
        Ok(LogEnds {
            purged,
            last: last.map(|entry| entry.log_id).or(purged),
            vote: self.rocks.record::<WireVote>(META, VOTE)?.map(Vote::from),
            committed: id(COMMITTED)?,
        })
    }

    /// Fails if the log has lost synced entries or a synced vote: this node may have acknowledged
    /// them to other nodes.
    pub(crate) fn check_nothing_lost(&self, ends: &LogEnds) -> Result<()> {
        let Some(mark) = reached::read_note(&self.home)? else {
            return Ok(());
        };
        let lost = |what| Err(OpenError::LogLost(self.rocks.dir.clone(), what));
        if let Some(vote) = mark.vote
            && ends.vote < Some(vote)
        {
            return lost(format!("its vote {vote}"));
        }
        if let Some(last) = mark.last
            && ends.purged.is_none_or(|id| id.index < last.index)
            && self.id_at(last.index)? != Some(last)
        {
            let end = ends
                .last
                .map(|id| format!("its last entry is {id}"))
                .unwrap_or("it is empty".to_owned());
            return lost(format!("entry {last}; {end}"));
        }
        Ok(())
    }

    /// All entries that are not purged.
    pub(super) fn entries(&self, ends: &LogEnds) -> Result<Vec<Entry>> {
        self.entries_after(ends.purged, IteratorMode::Start)
            .collect()
    }

    fn entries_after(
        &self,
        purged: Option<LogId>,
        mode: IteratorMode<'_>,
    ) -> impl Iterator<Item = Result<Entry>> {
        let read = bounds(purged.map_or(0, |id| id.index + 1), u64::MAX);
        let rows = self.rocks.db.iterator_cf_opt(self.log(), read, mode);
        rows.map(|row| {
            let (_, row) = row.map_err(|error| self.rocks.failed(&error))?;
            decode(&row).map_err(|error| OpenError::unreadable(&self.rocks.dir, &error))
        })
    }

    /// The entry at an index, if it exists.
    pub(crate) fn entry_at(&self, index: u64) -> Result<Option<Entry>> {
        let entry = self
            .rocks
            .record(LOG, key(index))?
            .map(into_entry)
            .transpose();
        entry.map_err(|error| OpenError::unreadable(&self.rocks.dir, &error))
    }

    /// The id of the entry at an index, if it exists.
    pub(super) fn id_at(&self, index: u64) -> Result<Option<LogId>> {
        Ok(self.entry_at(index)?.map(|entry| entry.log_id))
    }

    /// Removes all entries durably. The log then begins after `applied`, which the state contains.
    pub(super) fn begin_behind(&self, version: RecordVersion, applied: &LogId) -> Result<()> {
        self.write_synced(|batch| {
            self.truncate(batch, 0);
            self.purge(batch, version, applied);
        })
    }

    /// Writes a batch durably; `fill` adds its content.
    pub(super) fn write_synced(&self, fill: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        let mut batch = WriteBatch::default();
        fill(&mut batch);
        let written = (self.rocks.db).write_opt(batch, &WriteOptions::default());
        written.map_err(|error| self.rocks.failed(&error))?;
        let synced = self.disk.sync(&self.rocks.db);
        synced.map_err(|error| OpenError::io("sync", &self.rocks.dir, error))
    }

    fn put_meta(
        &self,
        batch: &mut WriteBatch,
        version: RecordVersion,
        name: &str,
        record: &impl Serialize,
    ) {
        batch.put_cf(self.rocks.family(META), name, wire::encode(version, record));
    }

    pub(super) fn put_entry(&self, batch: &mut WriteBatch, index: u64, row: &[u8]) {
        batch.put_cf(self.log(), key(index), row);
    }

    pub(super) fn put_vote(&self, batch: &mut WriteBatch, version: RecordVersion, vote: &Vote) {
        self.put_meta(batch, version, VOTE, &WireVote::from(vote));
    }

    pub(super) fn put_committed(&self, batch: &mut WriteBatch, version: RecordVersion, id: &LogId) {
        self.put_meta(batch, version, COMMITTED, &WireLogId::from(id));
    }

    /// Removes the entries from `index` on.
    pub(super) fn truncate(&self, batch: &mut WriteBatch, index: u64) {
        batch.delete_range_cf(self.log(), key(index), key(u64::MAX));
    }

    /// Removes the entries up to and including `upto`.
    pub(super) fn purge(&self, batch: &mut WriteBatch, version: RecordVersion, upto: &LogId) {
        self.put_meta(batch, version, PURGED, &WireLogId::from(upto));
        batch.delete_range_cf(self.log(), key(0), key(upto.index + 1));
    }

    /// Reads the entries from `start` to before `end`, up to `bytes_max` bytes but at least one
    /// entry.
    ///
    /// The log may begin after `start`. A gap after its first entry is an error.
    pub(super) fn read(
        &self,
        snapshot: &Snapshot<'_>,
        (start, end): (u64, u64),
        bytes_max: usize,
    ) -> Result<Vec<Entry>, String> {
        let rows = |start, end| {
            snapshot.iterator_cf_opt(self.log(), bounds(start, end), IteratorMode::Start)
        };
        // The entry at `missing` may be absent only if it precedes the whole log.
        let check_beginning = |missing| {
            let precedes_all = missing == start && rows(0, start).next().is_none();
            if precedes_all {
                Ok(())
            } else {
                Err(format!("entry {missing} is missing"))
            }
        };
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut expected = start;
        for row in rows(start, end) {
            let (_, row) = row.map_err(|error| error.to_string())?;
            bytes += row.len();
            if bytes > bytes_max && !entries.is_empty() {
                return Ok(entries);
            }
            let entry = decode(&row).map_err(|error| format!("entry {expected}: {error}"))?;
            let index = entry.log_id.index;
            if index != expected {
                check_beginning(expected)?;
            }
            expected = index + 1;
            entries.push(entry);
        }
        if expected != end {
            check_beginning(expected)?;
        }
        Ok(entries)
    }
}

/// Read options with a lower and an upper bound, so that iterators do not scan the tombstones of
/// purged and truncated entries.
pub(super) fn bounds(start: u64, end: u64) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(key(start));
    options.set_iterate_upper_bound(key(end));
    options
}

fn key(index: u64) -> [u8; 8] {
    index.to_be_bytes()
}

pub(super) fn decode(row: &[u8]) -> Result<Entry, WireError> {
    into_entry(wire::decode(row)?)
}

fn into_entry(mut entry: WireEntry) -> Result<Entry, WireError> {
    if let WirePayload::Command(command) = &mut entry.payload
        && mutant!("lose-request-ids")
    {
        command.write_id = None;
    }
    entry.into_entry()
}
