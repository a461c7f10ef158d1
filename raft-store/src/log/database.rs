//! The log's rows. Column family `log`: an entry under its index, big-endian. Column family
//! `meta`: the vote, the commit index, and the last entry that was purged.

use std::path::PathBuf;
use std::sync::Arc;

use placement_model::mutant;
use rocksdb::{Cache, ColumnFamily, DB, IteratorMode, ReadOptions, WriteBatch, WriteOptions};

use crate::data_dir::LOG_DIR;
use crate::error::OpenError;
use crate::log_disk::LogDisk;
use crate::options::StoreOptions;
use crate::rocks;
use crate::types::{Entry, LogId, Vote};
use crate::wire::{self, RecordVersion, WireEntry, WireError, WireLogId, WirePayload, WireVote};

/// The column families of the log.
pub(crate) const FAMILIES: [&str; 2] = [LOG, META];
const LOG: &str = "log";
const META: &str = "meta";
const VOTE: &[u8] = b"vote";
const COMMITTED: &[u8] = b"committed";
const PURGED: &[u8] = b"purged";

#[derive(Debug, Clone)]
pub(crate) struct LogDatabase {
    pub(super) db: Arc<DB>,
    pub(super) dir: PathBuf,
    pub(super) disk: Arc<dyn LogDisk>,
}

/// What the log says of itself at start.
pub(crate) struct Ends {
    pub(crate) purged: Option<LogId>,
    pub(crate) last: Option<LogId>,
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
}

impl LogDatabase {
    pub(super) fn open(store: &StoreOptions, cache: &Cache) -> Result<Self, OpenError> {
        let dir = store.dir.join(LOG_DIR);
        let options = rocks::options(store, cache, &dir)?;
        let db = rocks::open(&options, &dir, &FAMILIES)?;
        Ok(Self::of(store, dir, db))
    }

    /// Opens it without writing a byte.
    pub(crate) fn open_to_read(store: &StoreOptions, cache: &Cache) -> Result<Self, OpenError> {
        let dir = store.dir.join(LOG_DIR);
        let options = rocks::options(store, cache, &dir)?;
        let db = rocks::open_to_read(options, &dir, &FAMILIES, &FAMILIES)?;
        Ok(Self::of(store, dir, db))
    }

    fn of(store: &StoreOptions, dir: PathBuf, db: DB) -> Self {
        Self {
            db: Arc::new(db),
            dir,
            disk: Arc::clone(&store.disk),
        }
    }

    pub(super) fn log(&self) -> &ColumnFamily {
        rocks::family(&self.db, LOG)
    }

    fn meta(&self) -> &ColumnFamily {
        rocks::family(&self.db, META)
    }

    /// Reads the ends of the log.
    pub(crate) fn ends(&self) -> Result<Ends, OpenError> {
        let purged = self.meta_row::<WireLogId>(PURGED)?.map(LogId::from);
        let last = self.behind(purged, IteratorMode::End).next().transpose()?;
        Ok(Ends {
            purged,
            last: last.map(|entry| entry.log_id).or(purged),
            vote: self.meta_row::<WireVote>(VOTE)?.map(Vote::from),
            committed: self.meta_row::<WireLogId>(COMMITTED)?.map(LogId::from),
        })
    }

    /// All entries that the log has.
    pub(super) fn entries(&self, ends: &Ends) -> Result<Vec<Entry>, OpenError> {
        self.behind(ends.purged, IteratorMode::Start).collect()
    }

    fn behind(
        &self,
        purged: Option<LogId>,
        mode: IteratorMode<'_>,
    ) -> impl Iterator<Item = Result<Entry, OpenError>> {
        let mut read = ReadOptions::default();
        read.set_iterate_lower_bound(key(purged.map_or(0, |id| id.index + 1)));
        let rows = self.db.iterator_cf_opt(self.log(), read, mode);
        rows.map(|row| {
            let (_, row) = row.map_err(|error| rocks::open_error(&self.dir, &error))?;
            decode(&row).map_err(|error| OpenError::unreadable(&self.dir, &error))
        })
    }

    /// The entry at an index, if it is there.
    pub(super) fn entry_at(&self, index: u64) -> Result<Option<Entry>, OpenError> {
        let row = self
            .db
            .get_pinned_cf(self.log(), key(index))
            .map_err(|error| rocks::open_error(&self.dir, &error))?;
        let entry = row.map(|row| decode(&row)).transpose();
        entry.map_err(|error| OpenError::unreadable(&self.dir, &error))
    }

    /// The id of the entry at an index, if it is there.
    pub(super) fn id_at(&self, index: u64) -> Result<Option<LogId>, OpenError> {
        Ok(self.entry_at(index)?.map(|entry| entry.log_id))
    }

    /// Forgets all entries, durably: the state has everything up to `applied`.
    pub(super) fn begin_behind(
        &self,
        version: RecordVersion,
        applied: &LogId,
    ) -> Result<(), OpenError> {
        self.write_synced(|batch| {
            self.truncate(batch, 0);
            self.purge(batch, version, applied);
        })
    }

    /// Writes what `fill` puts into a batch, durably.
    pub(super) fn write_synced(&self, fill: impl FnOnce(&mut WriteBatch)) -> Result<(), OpenError> {
        let mut batch = WriteBatch::default();
        fill(&mut batch);
        (self.db.write_opt(batch, &WriteOptions::default()))
            .map_err(|error| rocks::open_error(&self.dir, &error))?;
        (self.disk.sync(&self.db)).map_err(|error| OpenError::io("sync", &self.dir, error))
    }

    fn meta_row<T: serde::de::DeserializeOwned>(
        &self,
        name: &[u8],
    ) -> Result<Option<T>, OpenError> {
        let row = self
            .db
            .get_pinned_cf(self.meta(), name)
            .map_err(|error| rocks::open_error(&self.dir, &error))?;
        row.map(|row| wire::decode(&row).map_err(|error| OpenError::unreadable(&self.dir, &error)))
            .transpose()
    }

    pub(super) fn put_entry(&self, batch: &mut WriteBatch, index: u64, row: &[u8]) {
        batch.put_cf(self.log(), key(index), row);
    }

    pub(super) fn put_vote(&self, batch: &mut WriteBatch, version: RecordVersion, vote: &Vote) {
        let record = wire::encode(version, &WireVote::from(vote));
        batch.put_cf(self.meta(), VOTE, record);
    }

    pub(super) fn put_committed(
        &self,
        batch: &mut WriteBatch,
        version: RecordVersion,
        committed: LogId,
    ) {
        let record = wire::encode(version, &WireLogId::from(&committed));
        batch.put_cf(self.meta(), COMMITTED, record);
    }

    /// Removes every entry from `index` on.
    pub(super) fn truncate(&self, batch: &mut WriteBatch, index: u64) {
        batch.delete_range_cf(self.log(), key(index), key(u64::MAX));
    }

    /// Removes every entry up to and including `upto`.
    pub(super) fn purge(&self, batch: &mut WriteBatch, version: RecordVersion, upto: &LogId) {
        let record = wire::encode(version, &WireLogId::from(upto));
        batch.put_cf(self.meta(), PURGED, record);
        batch.delete_range_cf(self.log(), key(0), key(upto.index + 1));
    }
}

/// Reads the rows from `start` to before `end`, as many as weigh `bytes_max` and at least one.
/// Bounds on both sides keep the iterator off the tombstones of what was purged and truncated.
///
/// A log may begin later than `start`, but what it has begun with has no holes.
pub(super) fn read(
    database: &LogDatabase,
    snapshot: &rocksdb::Snapshot<'_>,
    (start, end): (u64, u64),
    bytes_max: usize,
) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    let mut bytes = 0;
    let mut expected = start;
    for row in rows(database, snapshot, start, end) {
        let (_, row) = row.map_err(|error| error.to_string())?;
        bytes += row.len();
        if bytes > bytes_max && !entries.is_empty() {
            return Ok(entries);
        }
        let entry = decode(&row).map_err(|error| format!("entry {expected}: {error}"))?;
        let index = entry.log_id.index;
        if index != expected {
            check_beginning(database, snapshot, start, expected)?;
            expected = index;
        }
        expected += 1;
        entries.push(entry);
    }
    if expected != end {
        check_beginning(database, snapshot, start, expected)?;
    }
    Ok(entries)
}

/// The entry at `missing` may be missing if it precedes the whole log.
fn check_beginning(
    database: &LogDatabase,
    snapshot: &rocksdb::Snapshot<'_>,
    start: u64,
    missing: u64,
) -> Result<(), String> {
    let precedes_all = missing == start && rows(database, snapshot, 0, start).next().is_none();
    if precedes_all {
        Ok(())
    } else {
        Err(format!("entry {missing} is missing"))
    }
}

fn rows<'a>(
    database: &LogDatabase,
    snapshot: &'a rocksdb::Snapshot<'_>,
    start: u64,
    end: u64,
) -> rocksdb::DBIteratorWithThreadMode<'a, DB> {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(key(start));
    options.set_iterate_upper_bound(key(end));
    snapshot.iterator_cf_opt(database.log(), options, IteratorMode::Start)
}

pub(super) fn key(index: u64) -> [u8; 8] {
    index.to_be_bytes()
}

pub(super) fn decode(row: &[u8]) -> Result<Entry, WireError> {
    let mut entry: WireEntry = wire::decode(row)?;
    if let WirePayload::Command(command) = &mut entry.payload
        && mutant!("lose-request-ids")
    {
        command.write_id = None;
    }
    entry.into_entry()
}
