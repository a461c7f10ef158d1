//! The log of a node that does not run, read and not changed.

use placement_model::types::Timestamp;
use rocksdb::IteratorMode;

use super::database::{LogDatabase, bounds, decode};
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
    /// When a node has kept it with its backups, by that node's clock.
    pub kept_at: Option<Timestamp>,
}

impl LogLine {
    pub(crate) fn new(index: u64, bytes: usize, entry: Result<Entry, String>) -> Self {
        Self {
            index,
            bytes,
            entry,
            kept_at: None,
        }
    }
}

impl LogDatabase {
    /// What is there of the entries `from..=to`. Ends where the database cannot be read any
    /// further, and says so.
    pub(crate) fn lines(&self, from: u64, to: u64) -> impl Iterator<Item = LogLine> {
        let mut read = bounds(from, to.saturating_add(1));
        read.fill_cache(false);
        let rows = (self.rocks.db).iterator_cf_opt(self.log(), read, IteratorMode::Start);
        rows.scan(Some(from), |next, row| {
            let expected = next.take()?;
            let (key, row) = match row {
                Ok(row) => row,
                Err(error) => {
                    let reason = format!("nothing can be read from here on: {error}");
                    return Some(LogLine::new(expected, 0, Err(reason)));
                }
            };
            let key = <[u8; 8]>::try_from(&*key).map(u64::from_be_bytes);
            let index = key.unwrap_or(expected);
            *next = Some(index.saturating_add(1));
            let entry = match decode(&row) {
                _ if key.is_err() => Err("its key is no index".to_owned()),
                Err(error) => Err(error.to_string()),
                Ok(entry) if entry.log_id.index != index => {
                    Err(format!("it says that it is entry {}", entry.log_id))
                }
                Ok(entry) => Ok(entry),
            };
            Some(LogLine::new(index, row.len(), entry))
        })
    }
}
