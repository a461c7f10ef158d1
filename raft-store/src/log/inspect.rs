//! The log of a node that does not run, looked at and left as it is.

use std::path::Path;

use rocksdb::{Cache, DB, DBIteratorWithThreadMode, IteratorMode, ReadOptions};

use super::check_nothing_lost;
use super::database::{Ends, LogDatabase, decode, key};
use super::reached;
use crate::error::OpenError;
use crate::options::StoreOptions;
use crate::types::Entry;

/// A log that is only read.
pub(crate) struct LogInspector(LogDatabase);

/// An entry that was found at an index, with the bytes of its row, or why it cannot be read.
pub(crate) struct FoundEntry {
    pub(crate) index: u64,
    pub(crate) bytes: usize,
    pub(crate) entry: Result<Entry, String>,
}

impl LogInspector {
    pub(crate) fn open(options: &StoreOptions, cache: &Cache) -> Result<Self, OpenError> {
        LogDatabase::open_to_read(options, cache).map(Self)
    }

    pub(crate) fn ends(&self) -> Result<Ends, OpenError> {
        self.0.ends()
    }

    /// Whether it has lost what is noted as having been on disk.
    pub(crate) fn check_nothing_lost(&self, dir: &Path, ends: &Ends) -> Result<(), OpenError> {
        match reached::noted(dir)? {
            Some(mark) => check_nothing_lost(&self.0, ends, mark),
            None => Ok(()),
        }
    }

    /// What is there of the entries `from..=to`. Ends where the database cannot be read any further,
    /// and says so.
    pub(crate) fn entries(&self, from: u64, to: u64) -> Entries<'_> {
        let mut read = ReadOptions::default();
        read.set_iterate_lower_bound(key(from));
        read.set_iterate_upper_bound(key(to.saturating_add(1)));
        read.fill_cache(false);
        let database = &self.0;
        Entries {
            rows: (database.db).iterator_cf_opt(database.log(), read, IteratorMode::Start),
            next: from,
            ended: false,
        }
    }
}

/// Walks over entries.
pub(crate) struct Entries<'a> {
    rows: DBIteratorWithThreadMode<'a, DB>,
    next: u64,
    ended: bool,
}

impl Iterator for Entries<'_> {
    type Item = FoundEntry;

    fn next(&mut self) -> Option<FoundEntry> {
        if self.ended {
            return None;
        }
        let (index, bytes, entry) = match self.rows.next()? {
            Err(error) => {
                self.ended = true;
                let reason = format!("nothing can be read from here on: {error}");
                (self.next, 0, Err(reason))
            }
            Ok((found, row)) => {
                let index = <[u8; 8]>::try_from(&*found).map(u64::from_be_bytes);
                match (index, decode(&row)) {
                    (Err(_), _) => (self.next, row.len(), Err("its key is no index".to_owned())),
                    (Ok(index), Err(error)) => (index, row.len(), Err(error.to_string())),
                    (Ok(index), Ok(entry)) if entry.log_id.index != index => {
                        let reason = format!("it says that it is entry {}", entry.log_id);
                        (index, row.len(), Err(reason))
                    }
                    (Ok(index), Ok(entry)) => (index, row.len(), Ok(entry)),
                }
            }
        };
        self.next = index.saturating_add(1);
        Some(FoundEntry {
            index,
            bytes,
            entry,
        })
    }
}
