//! Reads the log of a stopped node without changing it.

use placement_model::types::Timestamp;
use rocksdb::IteratorMode;

use super::database::{LogDatabase, bounds, decode};
use crate::types::Entry;

/// A log entry, or why it cannot be read.
#[derive(Debug)]
pub struct LogLine {
    /// Index of the entry.
    pub index: u64,
    /// Length of its row in bytes.
    pub bytes: usize,
    /// The entry, or why it cannot be read.
    pub entry: Result<Entry, String>,
    /// When a node archived it, by that node's clock; `None` unless it is from an archived log.
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
    /// The existing entries `from..=to`. If the database becomes unreadable, the last line contains
    /// the error.
    pub(crate) fn lines(&self, from: u64, to: u64) -> impl Iterator<Item = LogLine> {
        let mut read = bounds(from, to.saturating_add(1));
        read.fill_cache(false);
        let rows = (self.rocks.db).iterator_cf_opt(self.log(), read, IteratorMode::Start);
        rows.scan(Some(from), |next, row| {
            let expected = next.take()?;
            let (key, row) = match row {
                Ok(row) => row,
                Err(error) => {
                    let reason = format!("cannot read from here on: {error}");
                    return Some(LogLine::new(expected, 0, Err(reason)));
                }
            };
            let key = <[u8; 8]>::try_from(&*key).map(u64::from_be_bytes);
            let index = key.unwrap_or(expected);
            *next = Some(index.saturating_add(1));
            let entry = match decode(&row) {
                _ if key.is_err() => Err("its key is not an index".to_owned()),
                Err(error) => Err(error.to_string()),
                Ok(entry) if entry.log_id.index != index => {
                    Err(format!("it contains entry {}", entry.log_id))
                }
                Ok(entry) => Ok(entry),
            };
            Some(LogLine::new(index, row.len(), entry))
        })
    }
}
