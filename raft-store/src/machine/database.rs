//! Rows of the state in RocksDB, and the log position they correspond to. Keys begin with the tag
//! of their table.
//!
//! There is no write-ahead log: after a crash the database contains the rows of an earlier flush,
//! and openraft applies the later entries again. A flush covers one column family, so all tables
//! share one and are flushed at the same position.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use placement_model::mutant;
use placement_model::types::{PartitionId, Timestamp};
use placement_model::{Change, Cluster, Level};
use rocksdb::{
    Cache, ColumnFamily, FlushOptions, IterateBounds, IteratorMode, PrefixRange, ReadOptions,
    WriteBatch, WriteOptions,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::views::AppliedState;
use crate::data_dir::STATE_DIR;
use crate::error::{OpenError, Result};
use crate::files;
use crate::options::StoreOptions;
use crate::rocks::{self, Database};
use crate::tables::{self, Table};
use crate::types::{LogId, StoredMembership};
use crate::wire::{self, RecordVersion, WireError, WireLogId, WireStoredMembership};
use placement_base::coverage::RarePath;
use placement_base::log_messages::log;
use placement_base::runtime;

/// Column families of the state.
pub(crate) const FAMILIES: [&str; 1] = [ROWS];
const ROWS: &str = "rows";
/// Tags 0 and 255 belong to no table.
const TAG_MIN: [u8; 1] = [1];
const TAG_END: [u8; 1] = [u8::MAX];
const APPLIED: &str = "\0applied";
const INSTALLING: &str = "\0installing";
const LEDGER: &str = "\0ledger-packs";
/// Key prefix of a pack of ledger entries; the index of its last entry follows. The prefix sorts
/// before all other keys. So a file with newer packs does not overlap files with older packs, and
/// compactions do not rewrite the older ones. Versions without a ledger do not read the packs.
const ENTRY: [u8; 2] = [0, 0];

pub(crate) struct StateDatabase {
    pub(super) rocks: Database,
    /// Bytes written since the last flush.
    unflushed: AtomicUsize,
}

/// The log position of the rows; written in the same batch as the rows.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AppliedRecord {
    pub(crate) last: Option<WireLogId>,
    pub(crate) membership: WireStoredMembership,
    /// The digest of the rows, formatted by [`placement_model::state::Digest`].
    pub(crate) digest: String,
    /// `None` before the first command.
    pub(crate) last_stamp: Option<Timestamp>,
}

impl StateDatabase {
    pub(super) fn open(store: &StoreOptions, cache: &Cache) -> Result<Self> {
        let mut options = rocks::options(store.write_buffer_bytes, cache, "");
        options.set_db_write_buffer_size(store.write_buffer_bytes);
        // With the default of 64 MiB, compactions would rewrite most rows together with new ledger
        // entries.
        options.set_target_file_size_base(8 << 20);
        Database::open(&options, store.dir.join(STATE_DIR), &FAMILIES).map(Self::new)
    }

    /// Opens the database without writing to disk.
    pub(crate) fn open_to_read(store: &StoreOptions, cache: &Cache) -> Result<Self> {
        let (options, dir) = (
            rocks::options(store.write_buffer_bytes, cache, ""),
            store.dir.join(STATE_DIR),
        );
        Database::open_to_read(options, dir, &FAMILIES).map(Self::new)
    }

    fn new(rocks: Database) -> Self {
        let unflushed = AtomicUsize::default();
        Self { rocks, unflushed }
    }

    fn family(&self) -> &ColumnFamily {
        self.rocks.family(ROWS)
    }

    /// Loads the state as of the last flush.
    ///
    /// # Errors
    /// [`OpenError::Damaged`] if a row cannot be read, or if the rows do not match the digest that
    /// was written with them in this binary's format. [`OpenError::UnknownTable`].
    pub(crate) fn load(&self) -> Result<AppliedState> {
        self.read_all().inspect_err(|error| {
            if let OpenError::Damaged(..) = error {
                RarePath::RowsRefused.ran();
            }
        })
    }

    fn read_all(&self) -> Result<AppliedState> {
        let record = self
            .rocks
            .record(ROWS, APPLIED)?
            .unwrap_or_else(|| AppliedRecord {
                digest: Cluster::default().digest().to_string(),
                ..AppliedRecord::default()
            });
        let cluster = tables::load(self.rows(TAG_MIN..), |reason| self.damaged(reason))?;
        if cluster.level() > Level::NEWEST {
            let dir = self.rocks.dir.clone();
            return Err(OpenError::NewerLevel(dir, cluster.level()));
        }
        let digest = cluster.digest();
        match digest.agrees_with(&record.digest) {
            Some(false) if !mutant!("rows-unproved") => {
                return Err(self.damaged(format!(
                    "its rows have the digest {digest}, but the recorded digest is {}",
                    record.digest
                )));
            }
            None => log!(
                DIGEST_RECOMPUTED,
                written = record.digest,
                %digest,
                "the recorded digest has another version's format; recomputing it"
            ),
            Some(_) => {}
        }
        let membership = StoredMembership::try_from(record.membership)
            .map_err(|error| self.damaged(error.to_string()))?;
        Ok(AppliedState {
            cluster: cluster.into(),
            last: record.last.map(LogId::from),
            membership: Arc::new(membership),
            last_stamp: record.last_stamp,
        })
    }

    pub(super) fn rows_of(
        &self,
        table: Table,
    ) -> impl Iterator<Item = Result<(PartitionId, Change)>> + '_ {
        self.rows(PrefixRange([table.tag()]))
    }

    /// The rows of a key range that begins with a tag.
    fn rows(
        &self,
        keys: impl IterateBounds,
    ) -> impl Iterator<Item = Result<(PartitionId, Change)>> + '_ {
        let mut read = ReadOptions::default();
        read.fill_cache(false);
        read.set_iterate_range(keys);
        let db = &self.rocks.db;
        let rows = db.iterator_cf_opt(self.family(), read, IteratorMode::Start);
        rows.map(move |row| {
            let (key, value) = row.map_err(|error| self.rocks.failed(&error))?;
            let (tag, key) = (key.split_first()).expect("the range begins with a tag");
            let table = Table::from_tag(*tag)
                .ok_or_else(|| OpenError::UnknownTable(self.rocks.dir.clone(), tag.to_string()))?;
            tables::read(table, key, &value).map_err(|error| self.unreadable(table, error))
        })
    }

    fn unreadable(&self, table: Table, error: WireError) -> OpenError {
        match error {
            WireError::Damaged(reason) => self.damaged(format!("{}: {reason}", table.name())),
            error => OpenError::unreadable(&self.rocks.dir, &error),
        }
    }

    fn damaged(&self, reason: String) -> OpenError {
        OpenError::damaged(&self.rocks.dir, reason)
    }

    /// Adds a change to a batch.
    pub(super) fn put(
        &self,
        batch: &mut WriteBatch,
        version: RecordVersion,
        partition: PartitionId,
        change: &Change,
    ) {
        let row = tables::row(version, partition, change);
        let key = key(row.table, &row.key);
        match row.value {
            Some(value) => batch.put_cf(self.family(), key, value),
            None => batch.delete_cf(self.family(), key),
        }
    }

    /// Adds the deletion of all rows of a partition to a batch, as one range deletion per table.
    pub(super) fn delete_rows_of(&self, batch: &mut WriteBatch, partition: PartitionId) {
        let ends = [partition, PartitionId(partition.0.saturating_add(1))];
        for table in Table::ALL {
            let [from, to] = ends.map(|end| key(table, &tables::prefix(end)));
            batch.delete_range_cf(self.family(), from, to);
        }
    }

    /// Adds to a batch the log position that the rows will have after the batch.
    pub(super) fn put_applied(
        &self,
        batch: &mut WriteBatch,
        version: RecordVersion,
        applied: &AppliedState,
    ) {
        let record = AppliedRecord {
            last: applied.last.as_ref().map(WireLogId::from),
            membership: applied.membership.as_ref().into(),
            digest: applied.digest().to_string(),
            last_stamp: applied.last_stamp,
        };
        batch.put_cf(self.family(), APPLIED, wire::encode(version, &record));
    }

    /// Reads the last written ledger record.
    pub(super) fn ledger<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        self.rocks.record(ROWS, LEDGER)
    }

    /// Adds to a batch the ledger record that will be valid after the batch.
    pub(super) fn put_ledger(
        &self,
        batch: &mut WriteBatch,
        version: RecordVersion,
        record: &impl Serialize,
    ) {
        batch.put_cf(self.family(), LEDGER, wire::encode(version, record));
    }

    /// Adds a pack of ledger entries to a batch.
    pub(super) fn put_pack(&self, batch: &mut WriteBatch, last: u64, pack: &[u8]) {
        batch.put_cf(self.family(), pack_key(last), pack);
    }

    /// Adds the deletion of the ledger packs up to an index to a batch.
    pub(super) fn delete_packs(&self, batch: &mut WriteBatch, up_to: u64) {
        let end = pack_key(up_to.saturating_add(1));
        batch.delete_range_cf(self.family(), pack_key(0), end);
    }

    /// The ledger packs that contain entries of `from..=up_to`.
    pub(crate) fn packs(
        &self,
        from: u64,
        up_to: u64,
        backwards: bool,
    ) -> impl Iterator<Item = Result<Box<[u8]>, rocksdb::Error>> + '_ {
        let iterate = |keys: std::ops::Range<Vec<u8>>, mode| {
            let mut read = ReadOptions::default();
            read.fill_cache(false);
            read.set_iterate_range(keys);
            self.rocks.db.iterator_cf_opt(self.family(), read, mode)
        };
        let all = pack_key(from)..[&ENTRY[..1], &[ENTRY[1] + 1]].concat();
        let (keys, mode) = if backwards {
            // The last pack may also contain later entries.
            let last = pack_key(up_to)..all.end.clone();
            let last = iterate(last, IteratorMode::Start).next();
            let end = last.and_then(|pack| Some([&*pack.ok()?.0, &[0]].concat()));
            (all.start..end.unwrap_or(all.end), IteratorMode::End)
        } else {
            (all, IteratorMode::Start)
        };
        iterate(keys, mode).map(|pack| pack.map(|(_, pack)| pack))
    }

    /// Writes a batch to RocksDB's buffer in memory, atomically. Flushes if the buffer is large.
    pub(super) fn write(&self, batch: WriteBatch) -> Result<(), rocksdb::Error> {
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        let bytes = batch.size_in_bytes();
        self.rocks.db.write_opt(batch, &options)?;
        let unflushed = self.unflushed.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if unflushed > runtime::limits().rows_buffer {
            self.sync()
        } else {
            Ok(())
        }
    }

    /// Flushes everything written so far.
    pub(super) fn sync(&self) -> Result<(), rocksdb::Error> {
        let mut options = FlushOptions::default();
        options.set_wait(true);
        self.unflushed.store(0, Ordering::Relaxed);
        self.rocks.db.flush_cf_opt(self.family(), &options)
    }

    /// Name of the snapshot whose installation a crash interrupted.
    pub(crate) fn installing(&self) -> Result<Option<String>> {
        self.rocks.record(ROWS, INSTALLING)
    }

    /// Records durably that `snapshot` is being installed.
    pub(super) fn begin_replacing(
        &self,
        version: RecordVersion,
        snapshot: &str,
    ) -> Result<(), rocksdb::Error> {
        let mut batch = WriteBatch::default();
        let note = wire::encode(version, snapshot);
        batch.put_cf(self.family(), INSTALLING, note);
        self.write(batch)?;
        self.sync()
    }

    /// Replaces the whole state. After a crash in between, [`StateDatabase::installing`] returns
    /// `snapshot`.
    pub(super) fn replace(
        &self,
        snapshot: &str,
        applied: &AppliedState,
    ) -> Result<(), rocksdb::Error> {
        let version = applied.record_version();
        self.begin_replacing(version, snapshot)?;
        files::point("the rows are about to be replaced", &self.rocks.dir);
        let mut batch = WriteBatch::default();
        batch.delete_range_cf(self.family(), TAG_MIN, TAG_END);
        self.delete_packs(&mut batch, u64::MAX);
        let batch_bytes = runtime::limits().install_batch;
        for (partition, change) in applied.cluster.rows() {
            self.put(&mut batch, version, partition, &change);
            if batch.size_in_bytes() > batch_bytes {
                self.write(std::mem::take(&mut batch))?;
            }
        }
        self.put_applied(&mut batch, version, applied);
        // Without a record, the ledger begins after the applied entry of these rows.
        batch.delete_cf(self.family(), LEDGER);
        batch.delete_cf(self.family(), INSTALLING);
        self.write(batch)?;
        files::point("the rows are replaced", &self.rocks.dir);
        self.sync()
    }
}

fn key(table: Table, own: &[u8]) -> Vec<u8> {
    [&[table.tag()], own].concat()
}

fn pack_key(last: u64) -> Vec<u8> {
    [&ENTRY[..], &last.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use placement_model::state::change::{Counters, RowKey};

    use super::*;
    use crate::data_dir::create_any;
    use crate::fixtures::rows_of_all_tables;
    use crate::store::open;

    /// The keys of all rows, read table by table.
    fn keys(database: &StateDatabase) -> BTreeSet<(PartitionId, RowKey)> {
        let mut keys = BTreeSet::new();
        for table in Table::ALL {
            for row in database.rows_of(table) {
                let (partition, change) = row.unwrap();
                let row = tables::row(RecordVersion::NEWEST, partition, &change);
                assert_eq!(row.table, table);
                keys.insert((partition, change.key()));
            }
        }
        keys
    }

    #[test]
    fn key_ranges_of_tables_and_partitions_do_not_overlap() {
        let dir = tempfile::TempDir::new().unwrap();
        let options = StoreOptions::new(dir.path());
        let database = StateDatabase::open(&options, &options.cache()).unwrap();
        let [before, deleted, after] = [6, 7, 8].map(PartitionId);
        let last = PartitionId(u16::MAX - 1);
        let mut rows = rows_of_all_tables();
        // These keys consist of the partition prefix only.
        let shortest = Change::PutCounters(Counters::default());
        rows.extend([before, deleted, after, last].map(|id| (id, shortest.clone())));
        let mut batch = WriteBatch::default();
        for (partition, row) in &rows {
            database.put(&mut batch, RecordVersion::NEWEST, *partition, row);
        }
        database.write(batch).unwrap();
        let note = "a snapshot";
        (database.begin_replacing(RecordVersion::NEWEST, note)).unwrap();

        let mut expected: BTreeSet<_> = (rows.iter().map(|(id, row)| (*id, row.key()))).collect();
        assert_eq!(keys(&database), expected);
        for gone in [deleted, last, PartitionId::DEFAULT] {
            let mut batch = WriteBatch::default();
            database.delete_rows_of(&mut batch, gone);
            database.write(batch).unwrap();
            expected.retain(|(id, _)| *id != gone);
            assert_eq!(keys(&database), expected, "{gone:?} is deleted");
        }
        assert_eq!(database.installing().unwrap().as_deref(), Some(note));
    }

    /// A format that no version writes, and a format of a possible later version.
    #[test]
    fn digest_of_another_format_is_recomputed() {
        for written in ["0".repeat(32), format!("99.{}", "0".repeat(32))] {
            let dir = tempfile::TempDir::new().unwrap();
            create_any(dir.path());
            let options = StoreOptions::new(dir.path());
            let row = Change::PutCounters(Counters {
                provider: 5,
                ..Counters::default()
            });
            {
                let store = open(options.clone()).unwrap();
                let database = &store.machine.core.database;
                let record = AppliedRecord {
                    last: Some(WireLogId {
                        term: 1,
                        node: 1,
                        index: 9,
                    }),
                    digest: written,
                    ..AppliedRecord::default()
                };
                let mut batch = WriteBatch::default();
                database.put(
                    &mut batch,
                    RecordVersion::NEWEST,
                    PartitionId::DEFAULT,
                    &row,
                );
                let record = wire::encode(RecordVersion::NEWEST, &record);
                batch.put_cf(database.family(), APPLIED, record);
                database.write(batch).unwrap();
                database.sync().unwrap();
            }
            let store = open(options).unwrap();
            let mut cluster = Cluster::default();
            cluster.commit(&vec![(PartitionId::DEFAULT, vec![row])]);
            assert_eq!(store.views.current().digest(), cluster.digest());
        }
    }
}
