//! RocksDB, as used by both databases.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, DB, DBCompressionType, Env, IteratorMode, LogLevel,
    Options,
};
use serde::de::DeserializeOwned;

use crate::endless_file;
use crate::error::{OpenError, Result};
use crate::wire;
use placement_base::platform::here;

/// Number of databases of a node: log and state. All databases of a process share the flush threads
/// and the compaction threads.
const DATABASES: i32 = 2;

/// Options of a database and of each of its column families, with write buffers of `buffer_bytes`;
/// `special` adds further options as text.
pub(crate) fn options(buffer_bytes: usize, cache: &Cache, special: &str) -> Options {
    // Closing a store does not flush unsynced data, which is not needed. So a closed store has the
    // same data on disk as a killed one. These options have no setters.
    let of_the_machine = here(|platform| platform.rocksdb_options());
    let text = format!("avoid_flush_during_shutdown=true;{special}{of_the_machine}");
    let options = Options::default().get_options_from_string(text);
    let mut options = options.expect("RocksDB knows these options");
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_block_based_table_factory(&table_options(cache));
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(buffer_bytes);
    options.set_max_write_buffer_number(3);
    options.set_max_open_files(256);
    options.set_max_background_jobs(2);
    options.set_bytes_per_sync(1 << 20);
    options.set_log_level(LogLevel::Warn);
    options.set_max_log_file_size(1 << 20);
    options.set_keep_log_file_num(2);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options
}

fn table_options(cache: &Cache) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table.set_format_version(5);
    table
}

/// Whether a database exists: `CURRENT` is the last file that is written when a database is
/// created.
pub(crate) fn database_exists(dir: &Path) -> bool {
    dir.join("CURRENT").exists()
}

/// A column family that was named when the database was opened.
pub(crate) fn family<'a>(db: &'a DB, name: &str) -> &'a ColumnFamily {
    db.cf_handle(name)
        .expect("the database was opened with all its column families")
}

/// The column families in `there` that this binary does not know.
fn unknown_families(mut there: Vec<String>, families: &[&str]) -> Vec<String> {
    there.retain(|name| name != "default" && !families.contains(&name.as_str()));
    there
}

/// A database and its directory.
pub(crate) struct Database {
    pub(crate) db: Arc<DB>,
    pub(crate) dir: PathBuf,
}

impl Database {
    /// Opens a database with these column families. Unknown column families were created by another
    /// version; they are accepted if they are empty.
    pub(crate) fn open(options: &Options, dir: PathBuf, families: &[&str]) -> Result<Self> {
        let failed = |error| open_error(&dir, &error);
        reserve_threads().map_err(failed)?;
        let mut unknown = Vec::new();
        if database_exists(&dir) {
            endless_file::check(&dir)?;
            unknown = unknown_families(DB::list_cf(options, &dir).map_err(failed)?, families);
        }
        let all = (families.iter().copied())
            .chain(unknown.iter().map(String::as_str))
            .map(|name| (name, options.clone()));
        let db = DB::open_cf_with_opts(options, &dir, all).map_err(failed)?;
        Self::without(unknown, db, dir)
    }

    /// Opens a database without writing or removing anything.
    pub(crate) fn open_to_read(
        mut options: Options,
        dir: PathBuf,
        families: &[&str],
    ) -> Result<Self> {
        options.create_if_missing(false);
        options.create_missing_column_families(false);
        endless_file::check(&dir)?;
        let failed = |error| open_error(&dir, &error);
        let there = DB::list_cf(&options, &dir).map_err(failed)?;
        let described = there.iter().map(|name| (name, options.clone()));
        let db = DB::open_cf_with_opts_for_read_only(&options, &dir, described, false)
            .map_err(failed)?;
        let missing = families.iter().find(|name| db.cf_handle(name).is_none());
        let database = Self::without(unknown_families(there, families), db, dir)?;
        match missing {
            None => Ok(database),
            Some(missing) => {
                let reason = format!("it has no table {missing:?}");
                Err(OpenError::Damaged(database.dir, reason))
            }
        }
    }

    /// Fails if one of the column families `unknown` contains rows.
    fn without(unknown: Vec<String>, db: DB, dir: PathBuf) -> Result<Self> {
        for table in unknown {
            let mut rows = db.iterator_cf(family(&db, &table), IteratorMode::Start);
            if rows.next().is_some() {
                return Err(OpenError::UnknownTable(dir, table));
            }
        }
        let db = Arc::new(db);
        Ok(Self { db, dir })
    }

    /// A column family that was named when the database was opened.
    pub(crate) fn family(&self, name: &str) -> &ColumnFamily {
        family(&self.db, name)
    }

    /// The record with a key in a column family, if it exists.
    pub(crate) fn record<T: DeserializeOwned>(
        &self,
        family: &str,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<T>> {
        let row = self
            .db
            .get_pinned_cf(self.family(family), key)
            .map_err(|error| self.failed(&error))?;
        let record = row.map(|row| wire::decode(&row)).transpose();
        record.map_err(|error| OpenError::unreadable(&self.dir, &error))
    }

    /// Converts a RocksDB error.
    pub(crate) fn failed(&self, error: &rocksdb::Error) -> OpenError {
        open_error(&self.dir, error)
    }
}

/// Gives each database a thread for flushes and one for compactions. On a shared thread, a flush of
/// the log would wait for a long flush of the state, and writes to the log would wait for both.
fn reserve_threads() -> Result<(), rocksdb::Error> {
    let mut threads = Env::new()?;
    threads.set_high_priority_background_threads(DATABASES);
    threads.set_low_priority_background_threads(DATABASES);
    Ok(())
}

fn open_error(dir: &Path, error: &rocksdb::Error) -> OpenError {
    match error.kind() {
        rocksdb::ErrorKind::Corruption => OpenError::damaged(dir, error.to_string()),
        _ => {
            let error = io::Error::other(error.to_string());
            OpenError::io("open the database", dir, error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::StoreOptions;

    #[test]
    fn log_and_state_have_separate_flush_and_compaction_threads() {
        let dir = tempfile::TempDir::new().unwrap();
        let cache = StoreOptions::new(dir.path()).cache();
        let open = |name| {
            let options = options(1 << 20, &cache, "");
            Database::open(&options, dir.path().join(name), &["rows"]).unwrap()
        };
        let _databases = [open("one"), open("other")];
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let names: Vec<_> = threads
            .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok())
            .collect();
        for of_kind in ["rocksdb:high", "rocksdb:low"] {
            let count = names.iter().filter(|name| name.trim() == of_kind).count();
            assert_eq!(count, 2, "{names:?}");
        }
    }
}
