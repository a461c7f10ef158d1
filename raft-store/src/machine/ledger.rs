//! The ledger: what each entry of the log has changed, from a floor on ([`LedgerEntry`]). A node keeps what it has
//! applied itself: on the disk, in the batches that write the rows, and in memory until then. So a crash leaves neither
//! gap nor repetition: what was not flushed is applied and written again.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
pub use placement_model::ledger::Floor;
use placement_model::types::Timestamp;
use placement_model::{LedgerEntry, mutant};
use rocksdb::WriteBatch;
use serde::{Deserialize, Serialize};

use super::database::StateDatabase;
use super::views::AppliedState;
use crate::base::Base;
use crate::wire::{self, Blob, RecordVersion, WireError};

/// It is dropped in so many pieces.
const PIECES: u64 = 16;
/// So many bytes of entries are one value of the database, for which each of them would cost more than its bytes.
const PACK_BYTES: usize = 16 * 1024;

/// Where that of a new node begins.
const NEW: Floor = Floor {
    index: 0,
    at: Timestamp(i64::MIN),
};

fn behind(applied: &AppliedState) -> Floor {
    Floor {
        index: applied.index().unwrap_or(NEW.index),
        at: applied.last_stamp.unwrap_or(NEW.at),
    }
}

/// Why entries cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Some are not there, or not any more.
    #[error("what was changed up to entry {} is not kept", .0.index)]
    Gone(Floor),
    /// An entry is not what was written.
    #[error("the ledger is damaged: {0}")]
    Damaged(#[from] WireError),
    /// The database cannot be read.
    #[error("the ledger cannot be read: {0}")]
    Io(#[from] rocksdb::Error),
    /// The node has stopped.
    #[error("the store is closed")]
    Closed,
}

/// What is on the disk; written in the same batch as the entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LedgerRecord {
    pub(crate) floor: Floor,
    /// The last entry of the log when it was written. Another one among the rows is of a version without a ledger.
    pub(crate) up_to: Option<u64>,
    /// What follows the floor: the last entry of each piece, and its bytes.
    pub(crate) pieces: VecDeque<(Floor, u64)>,
}

impl LedgerRecord {
    fn new(applied: &AppliedState) -> Self {
        Self {
            floor: behind(applied),
            up_to: applied.index(),
            pieces: VecDeque::new(),
        }
    }

    fn bytes(&self) -> u64 {
        self.pieces.iter().map(|(_, bytes)| bytes).sum()
    }

    fn add(&mut self, last: Floor, bytes: u64, most: u64) {
        match self.pieces.back_mut() {
            Some((end, sum)) if end.index == last.index || *sum < most / PIECES => {
                (*end, *sum) = (last, *sum + bytes);
            }
            _ => self.pieces.push_back((last, bytes)),
        }
    }

    /// Drops the oldest pieces that are too many.
    fn shorten(&mut self, most: u64) {
        while self.bytes() > most
            && let Some((end, _)) = self.pieces.pop_front()
        {
            self.floor = end;
        }
    }
}

/// An entry as it is written.
#[derive(Clone)]
pub(super) struct Written {
    last: Floor,
    record: Blob,
}

impl Written {
    /// Written at once, while what it was made of is in the processor's caches.
    pub(super) fn of(version: RecordVersion, entry: &LedgerEntry) -> Self {
        Self {
            last: Floor {
                index: entry.index,
                at: entry.at,
            },
            record: Blob(wire::encode(version, entry).into()),
        }
    }
}

/// Entries that are one value of the database.
struct Pack {
    last: Floor,
    bytes: Vec<u8>,
}

impl Pack {
    fn of(version: RecordVersion, entries: &[Written]) -> Self {
        let records: Vec<_> = entries.iter().map(|entry| &entry.record).collect();
        Self {
            last: entries.last().map_or(NEW, |entry| entry.last),
            bytes: wire::encode(version, &records),
        }
    }
}

/// Those of one place in the log are not parted.
fn packs(entries: &[Written]) -> impl Iterator<Item = &[Written]> {
    let mut bytes = 0;
    entries.chunk_by(move |one, next| {
        bytes += one.record.0.len();
        let goes_on = bytes < PACK_BYTES || one.last.index == next.last.index;
        bytes = if goes_on { bytes } else { 0 };
        goes_on
    })
}

/// An entry that was read, and its bytes.
type Read = Result<(LedgerEntry, usize), LedgerError>;

fn read(record: &Blob) -> Read {
    Ok((wire::decode(&record.0)?, record.0.len()))
}

fn unpack(pack: Result<Box<[u8]>, rocksdb::Error>) -> Result<Vec<Blob>, LedgerError> {
    Ok(wire::decode(&pack?)?)
}

/// Entries in the order of the log, and of one place of it by partition.
type Entries = VecDeque<Written>;

/// What readers and the writer share.
struct Kept {
    /// Raised before the database drops what is below it.
    record: LedgerRecord,
    /// Those that may not be in the database yet.
    tail: Entries,
}

/// What readers open for as long as they read.
struct Opened {
    database: Arc<StateDatabase>,
    /// Last: it holds the lock of the directory until the database is closed.
    _base: Arc<Base>,
}

/// The writing end.
pub(super) struct LedgerWriter {
    kept: Arc<Mutex<Kept>>,
    opened: Arc<Opened>,
    most: u64,
}

impl LedgerWriter {
    /// Goes on with what is in the database, if it is that of the state.
    pub(super) fn open(
        base: &Arc<Base>,
        database: Arc<StateDatabase>,
        applied: &AppliedState,
    ) -> crate::error::Result<Self> {
        let found: Option<LedgerRecord> = database.ledger()?;
        let found = found.filter(|record| record.up_to == applied.index());
        let record = found.unwrap_or_else(|| LedgerRecord::new(applied));
        let mut tail = Entries::new();
        if mutant!("tail-read-twice") {
            let packs = database.packs(NEW.index, u64::MAX, false);
            let records = packs.filter_map(|pack| unpack(pack).ok()).flatten();
            tail.extend(records.filter_map(|record| {
                let (entry, _) = read(&record).ok()?;
                let last = Floor {
                    index: entry.index,
                    at: entry.at,
                };
                Some(Written { last, record })
            }));
        }
        let kept = Arc::new(Mutex::new(Kept { record, tail }));
        let opened = Arc::new(Opened {
            database,
            _base: Arc::clone(base),
        });
        let most = base.options.ledger_bytes;
        Ok(Self { kept, opened, most })
    }

    pub(super) fn reader(&self) -> Ledger {
        Ledger {
            kept: Arc::clone(&self.kept),
            opened: Arc::downgrade(&self.opened),
        }
    }

    /// Takes in what was changed, before others see it.
    pub(super) fn note(&self, entries: Vec<Written>) {
        self.kept.lock().tail.extend(entries);
    }

    /// Adds to a batch what was noted up to the state that it writes. What is too old is not there any more from now
    /// on; the batch removes it.
    pub(super) fn put(
        &self,
        batch: &mut WriteBatch,
        version: RecordVersion,
        applied: &AppliedState,
    ) {
        let database = &self.opened.database;
        let (entries, mut record) = {
            let kept = self.kept.lock();
            let applied = kept
                .tail
                .partition_point(|entry| Some(entry.last.index) <= applied.index());
            let entries: Vec<_> = kept.tail.range(..applied).cloned().collect();
            (entries, kept.record.clone())
        };
        let before = record.floor;
        let packs: Vec<_> = packs(&entries)
            .map(|pack| Pack::of(version, pack))
            .collect();
        for pack in &packs {
            record.add(pack.last, pack.bytes.len() as u64, self.most);
        }
        record.shorten(self.most);
        record.up_to = applied.index();
        if record.floor != before {
            database.delete_packs(batch, record.floor.index);
        }
        for pack in packs
            .iter()
            .filter(|pack| pack.last.index > record.floor.index)
        {
            database.put_pack(batch, pack.last.index, &pack.bytes);
        }
        database.put_ledger(batch, version, &record);
        self.kept.lock().record = record;
    }

    /// The batch is written: readers find it in the database.
    pub(super) fn written(&self, applied: &AppliedState) {
        let mut kept = self.kept.lock();
        let next = kept
            .tail
            .partition_point(|entry| Some(entry.last.index) <= applied.index());
        kept.tail.drain(..next);
    }

    /// Begins again behind a state that takes the place of the rows.
    pub(super) fn replace(&self, applied: &AppliedState) {
        if mutant!("ledger-outlives-a-snapshot") {
            return;
        }
        let mut kept = self.kept.lock();
        kept.tail.clear();
        kept.record = LedgerRecord::new(applied);
    }
}

/// What this node has applied, change by change. Cheap to clone; holds no database open.
#[derive(Clone)]
pub struct Ledger {
    kept: Arc<Mutex<Kept>>,
    opened: Weak<Opened>,
}

/// Some entries, up to a limit that is passed between places in the log alone.
struct Page {
    entries: Vec<Arc<LedgerEntry>>,
    bytes_left: Option<usize>,
}

impl Page {
    fn of(at_most_bytes: usize) -> Self {
        Self {
            entries: Vec::new(),
            bytes_left: Some(at_most_bytes),
        }
    }

    /// Returns whether all were taken.
    fn take(&mut self, entries: impl Iterator<Item = Read>) -> Result<bool, LedgerError> {
        for read in entries {
            let (entry, bytes) = read?;
            let last = self.entries.last();
            let is_over = last.is_some_and(|last| last.index != entry.index);
            if self.bytes_left.is_none() && is_over {
                return Ok(false);
            }
            let left = self.bytes_left.unwrap_or(0).checked_sub(bytes);
            self.bytes_left = left.filter(|left| *left > 0);
            self.entries.push(Arc::new(entry));
        }
        Ok(true)
    }
}

impl Opened {
    /// What is in the database of these places, both included.
    fn entries(&self, from: u64, up_to: u64, backwards: bool) -> impl Iterator<Item = Read> + '_ {
        let read_all = move |pack| match unpack(pack) {
            Ok(mut records) => {
                if backwards {
                    records.reverse();
                }
                records.iter().map(read).collect()
            }
            Err(error) => vec![Err(error)],
        };
        let is_outside = move |read: &Read| matches!(read, Ok((entry, _)) if !(from..=up_to).contains(&entry.index));
        let packs = self.database.packs(from, up_to, backwards);
        let inside = packs.flat_map(read_all).skip_while(is_outside);
        inside.take_while(move |read| !is_outside(read))
    }
}

impl Ledger {
    /// Where it begins. All entries after it that this node has applied are there.
    pub fn floor(&self) -> Floor {
        if mutant!("floor-forgotten") {
            return NEW;
        }
        self.kept.lock().record.floor
    }

    /// Bytes on the disk, as they were written.
    pub fn bytes(&self) -> u64 {
        self.kept.lock().record.bytes()
    }

    /// The entries after `after` up to `up_to`, which is applied, in order, of about so many bytes at most; one at
    /// least, if there is one. Those of one place in the log are not parted.
    ///
    /// # Errors
    /// [`LedgerError`]; never a gap.
    pub fn forward(
        &self,
        after: u64,
        up_to: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerError> {
        let opened = self.opened.upgrade().ok_or(LedgerError::Closed)?;
        self.check(after)?;
        let mut page = Page::of(at_most_bytes);
        let from = after.saturating_add(1);
        // What leaves the tail from now on is in the database.
        let (tail_from, tail) = self.tail(|kept| {
            let noted = kept.partition_point(|entry| entry.last.index < from);
            let noted = kept.range(noted..);
            some(
                noted.take_while(|entry| entry.last.index <= up_to),
                at_most_bytes,
            )
        });
        let mut in_database = tail_from.map_or(up_to, |first| up_to.min(first.saturating_sub(1)));
        if mutant!("tail-read-twice") {
            in_database = up_to;
        }
        let mut has_all = true;
        if from <= in_database {
            has_all = page.take(opened.entries(from, in_database, false))?;
        }
        // What was dropped while it was read is below the floor by now.
        self.check(after)?;
        if has_all {
            page.take(tail.iter().map(read))?;
        }
        Ok(page.entries)
    }

    /// The entries up to `from`, the newest first, of about so many bytes at most; nothing if none is left above the
    /// floor. Those of one place in the log are not parted. Who needs all of them looks at the floor afterwards.
    ///
    /// # Errors
    /// [`LedgerError`], but [`LedgerError::Gone`].
    pub fn backward(
        &self,
        from: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerError> {
        let opened = self.opened.upgrade().ok_or(LedgerError::Closed)?;
        let mut page = Page::of(at_most_bytes);
        let (tail_from, tail) = self.tail(|kept| {
            let noted = kept.partition_point(|entry| entry.last.index <= from);
            some(kept.range(..noted).rev(), at_most_bytes)
        });
        let has_all = page.take(tail.iter().map(read))?;
        let to = self.floor().index.saturating_add(1);
        let in_database = tail_from.map_or(from, |first| from.min(first.saturating_sub(1)));
        if has_all && to <= in_database {
            page.take(opened.entries(to, in_database, true))?;
        }
        Ok(page.entries)
    }

    /// Where the tail begins, and what is taken from it.
    fn tail<T>(&self, take: impl FnOnce(&Entries) -> T) -> (Option<u64>, T) {
        let kept = self.kept.lock();
        let first = kept.tail.front().map(|entry| entry.last.index);
        (first, take(&kept.tail))
    }

    fn check(&self, after: u64) -> Result<(), LedgerError> {
        let floor = self.floor();
        match after < floor.index {
            true => Err(LedgerError::Gone(floor)),
            false => Ok(()),
        }
    }
}

/// The records of the first entries, to so many bytes at least.
fn some<'a>(entries: impl Iterator<Item = &'a Written>, at_least_bytes: usize) -> Vec<Blob> {
    let (mut bytes, mut last) = (0, 0);
    let is_wanted = |entry: &&Written| {
        let is_wanted = bytes <= at_least_bytes || last == entry.last.index;
        (bytes, last) = (bytes + entry.record.0.len(), entry.last.index);
        is_wanted
    };
    let records = entries.take_while(is_wanted);
    records.map(|entry| entry.record.clone()).collect()
}
