//! The log of a node that does not run, looked at and left as it is.

use std::path::Path;

use rocksdb::{IteratorMode, ReadOptions};

use super::check_nothing_lost;
use super::database::{Ends, LogDatabase, decode, key};
use super::reached;
use crate::error::OpenError;
use crate::types::Entry;

/// One entry of a log, or why it cannot be read.
#[derive(Debug)]
pub struct LogLine {
    /// Its index.
    pub index: u64,
    /// Bytes of its row.
    pub bytes: usize,
    /// The entry.
    pub entry: Result<Entry, String>,
}

impl LogDatabase {
    /// Whether it has lost what is noted as having been on disk.
    pub(crate) fn check_nothing_lost(&self, dir: &Path, ends: &Ends) -> Result<(), OpenError> {
        match reached::noted(dir)? {
            Some(mark) => check_nothing_lost(self, ends, mark),
            None => Ok(()),
        }
    }

    /// What is there of the entries `from..=to`. Ends where the database cannot be read any further,
    /// and says so.
    pub(crate) fn lines(&self, from: u64, to: u64) -> impl Iterator<Item = LogLine> {
        let mut read = ReadOptions::default();
        read.set_iterate_lower_bound(key(from));
        read.set_iterate_upper_bound(key(to.saturating_add(1)));
        read.fill_cache(false);
        let rows = (self.db).iterator_cf_opt(self.log(), read, IteratorMode::Start);
        rows.scan(Some(from), |next, row| {
            let line = match row {
                Err(error) => LogLine {
                    index: next.take()?,
                    bytes: 0,
                    entry: Err(format!("nothing can be read from here on: {error}")),
                },
                Ok((found, row)) => {
                    let index = <[u8; 8]>::try_from(&*found).map(u64::from_be_bytes);
                    LogLine {
                        index: index.unwrap_or((*next)?),
                        bytes: row.len(),
                        entry: match (index, decode(&row)) {
                            (Err(_), _) => Err("its key is no index".to_owned()),
                            (Ok(_), Err(error)) => Err(error.to_string()),
                            (Ok(index), Ok(entry)) if entry.log_id.index != index => {
                                Err(format!("it says that it is entry {}", entry.log_id))
                            }
                            (Ok(_), Ok(entry)) => Ok(entry),
                        },
                    }
                }
            };
            *next = next.map(|_| line.index.saturating_add(1));
            Some(line)
        })
    }
}
