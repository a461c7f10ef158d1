//! In-memory part of the log: its first and last position, the vote, and its newest entries.

use std::collections::VecDeque;

use super::database::LogEnds;
use crate::types::{Entry, LogId, Vote};

/// The newest entries of the log, its first and last position, and the vote. An entry stays here
/// from its append at least until it is written to RocksDB.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// The last purged entry; all earlier entries are purged, too.
    pub(super) purged: Option<LogId>,
    /// The last entry, or the last purged one if the log is empty.
    pub(super) last: Option<LogId>,
    /// The last durable vote.
    pub(super) vote: Option<Vote>,
    /// The last entry that openraft reported as committed.
    pub(super) committed: Option<LogId>,
    /// The commit index last written to RocksDB.
    committed_written: Option<LogId>,
    /// Consecutive entries up to `last`.
    entries: VecDeque<Cached>,
    bytes: usize,
    bytes_max: usize,
    /// Appends up to this number are in RocksDB.
    written: u64,
}

#[derive(Debug)]
struct Cached {
    entry: Entry,
    bytes: usize,
    /// Number of the append that contained it.
    append: u64,
}

impl Tail {
    pub(super) fn new(ends: &LogEnds, bytes_max: usize) -> Self {
        Self {
            purged: ends.purged,
            last: ends.last,
            vote: ends.vote,
            committed: ends.committed,
            committed_written: ends.committed,
            bytes_max,
            ..Self::default()
        }
    }

    /// Returns the commit index to write, and counts it as written. `None` if it is already in
    /// RocksDB or beyond `last`.
    pub(super) fn take_committed(&mut self, last: Option<LogId>) -> Option<LogId> {
        let last = last?.index;
        let committed = self.committed.filter(|id| id.index <= last)?;
        let is_new = self.committed_written.replace(committed) != Some(committed);
        is_new.then_some(committed)
    }

    /// The index after the last purged entry.
    pub(super) fn first_index(&self) -> u64 {
        next_index(self.purged.as_ref())
    }

    /// The index after the last entry.
    pub(super) fn end_index(&self) -> u64 {
        next_index(self.last.as_ref())
    }

    /// The first cached index; all earlier entries are in RocksDB.
    pub(super) fn first_cached(&self) -> u64 {
        self.end_index()
            .checked_sub(self.entries.len() as u64)
            .expect("the tail contains consecutive entries up to the last one")
    }

    /// The entries from `start` to before `end`, up to `bytes_max` bytes but at least one. All of
    /// them must be cached.
    pub(super) fn range(&self, start: u64, end: u64, bytes_max: usize) -> Vec<Entry> {
        let (first, behind) = (self.first_cached(), self.end_index());
        assert!(
            first <= start && start <= end && end <= behind,
            "entries {start}..{end} are requested, but the tail contains {first}..{behind}"
        );
        let position = |index| usize::try_from(index - first).expect("entries fit in memory");
        let (from, to) = (position(start), position(end));
        let mut bytes = 0;
        let mut entries = Vec::with_capacity(to - from);
        for cached in self.entries.range(from..to) {
            bytes += cached.bytes;
            if bytes > bytes_max && !entries.is_empty() {
                break;
            }
            entries.push(cached.entry.clone());
        }
        entries
    }

    /// Appends entries that follow the last one, each with its encoded length.
    pub(super) fn append(&mut self, append: u64, entries: Vec<(Entry, usize)>) {
        for (entry, bytes) in entries {
            assert!(
                self.follows(entry.log_id.index),
                "entries are appended without gaps, but {} follows {:?}",
                entry.log_id,
                self.last
            );
            self.last = Some(entry.log_id);
            self.bytes += bytes;
            self.entries.push_back(Cached {
                entry,
                bytes,
                append,
            });
        }
    }

    /// Whether an entry with this index may be appended. An empty log may begin at any index.
    pub(super) fn follows(&self, index: u64) -> bool {
        self.last.is_none_or(|last| index == last.index + 1)
    }

    /// Removes the entries after `last`.
    pub(super) fn truncate(&mut self, last: Option<LogId>) {
        let end = next_index(last.as_ref()).max(self.first_index());
        if self.end_index() <= end {
            return;
        }
        let kept = end.saturating_sub(self.first_cached());
        while self.entries.len() as u64 > kept
            && let Some(cached) = self.entries.pop_back()
        {
            self.bytes -= cached.bytes;
        }
        self.last = last
            .filter(|id| id.index >= self.first_index())
            .or(self.purged);
    }

    /// Removes the entries up to and including `upto`. If the last entry precedes `upto`, the log
    /// then begins after `upto`.
    pub(super) fn purge(&mut self, upto: LogId) {
        while self.first_cached() <= upto.index {
            match self.entries.pop_front() {
                Some(cached) => self.bytes -= cached.bytes,
                None => break,
            }
        }
        if self.first_index() <= upto.index {
            self.purged = Some(upto);
        }
        if self.end_index() <= upto.index {
            self.last = Some(upto);
        }
    }

    /// Marks the appends up to this number as written to RocksDB, so that their entries may be
    /// evicted.
    pub(super) fn written(&mut self, append: u64) {
        self.written = self.written.max(append);
        while self.bytes > self.bytes_max
            && let Some(cached) = self
                .entries
                .pop_front_if(|cached| cached.append <= self.written)
        {
            self.bytes -= cached.bytes;
        }
    }
}

fn next_index(id: Option<&LogId>) -> u64 {
    id.map_or(0, |id| id.index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::WireLogId;

    fn id(index: u64) -> LogId {
        let (term, node) = (1, 1);
        WireLogId { term, node, index }.into()
    }

    /// A loss of power may take entries that are not written yet. A start must not find them
    /// committed.
    #[test]
    fn commit_index_is_written_after_its_entry() {
        let mut tail = Tail {
            committed: Some(id(7)),
            ..Tail::default()
        };
        assert_eq!(tail.take_committed(None), None);
        assert_eq!(tail.take_committed(Some(id(6))), None);
        assert_eq!(tail.take_committed(Some(id(7))), Some(id(7)));
        assert_eq!(tail.take_committed(Some(id(9))), None, "it is written");
    }
}
