//! The ledger: the changes ([`LedgerEntry`]) of each log entry after the *floor*, the last entry
//! whose changes are not retained. A node records the changes of the entries that it applies: first
//! in memory, later on disk, in the batch that writes the rows. So a crash leaves neither gaps nor
//! duplicates: unflushed entries are applied and recorded again.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

pub use placement_model::ledger::Floor;
use placement_model::types::Timestamp;
use placement_model::{LedgerEntry, mutant};
use rocksdb::WriteBatch;
use serde::{Deserialize, Serialize};

use super::database::StateDatabase;
use super::lock::Mutex;
use super::pack::{self, Pack, unpack};
use super::views::AppliedState;
use crate::base::Base;
use crate::wire::{RecordVersion, WireError};

/// Number of pieces of a full ledger. The oldest entries are dropped one piece at a time.
const PIECES: u64 = 16;

/// The floor of a node that has applied nothing.
const NEW: Floor = Floor {
    index: 0,
    at: Timestamp(i64::MIN),
};

fn empty_floor(applied: &AppliedState) -> Floor {
    Floor {
        index: applied.index().unwrap_or(NEW.index),
        at: applied.last_stamp.unwrap_or(NEW.at),
    }
}

/// Why ledger entries cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Some requested entries are no longer retained.
    #[error("the changes up to entry {} are no longer in the ledger", .0.index)]
    Gone(Floor),
    /// An entry does not read back as written.
    #[error("the ledger is damaged: {0}")]
    Damaged(#[from] WireError),
    /// RocksDB returned an error.
    #[error("the ledger cannot be read: {0}")]
    Io(#[from] rocksdb::Error),
    /// The node has stopped.
    #[error("the store is closed")]
    Closed,
}

/// Extent of the ledger on disk; written in the same batch as the entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LedgerRecord {
    pub(crate) floor: Floor,
    /// The last applied entry when the record was written. If the rows have another last entry,
    /// a version of placementd without a ledger has written them.
    pub(crate) up_to: Option<u64>,
    /// The pieces after the floor: last entry and length in bytes of each.
    pub(crate) pieces: VecDeque<(Floor, u64)>,
}

impl LedgerRecord {
    fn new(applied: &AppliedState) -> Self {
        Self {
            floor: empty_floor(applied),
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

    /// Drops the oldest pieces beyond `most` bytes.
    fn shorten(&mut self, most: u64) {
        while self.bytes() > most
            && let Some((end, _)) = self.pieces.pop_front()
        {
            self.floor = end;
        }
    }
}

/// State shared by readers and the writer.
struct LedgerState {
    /// The floor in the record is raised before the entries up to the floor are removed from the
    /// database.
    record: LedgerRecord,
    /// Packs that may not be in the database yet, in log order.
    tail: VecDeque<Arc<Pack>>,
}

impl LedgerState {
    /// Number of packs in the tail whose entries `applied` contains.
    fn up_to(&self, applied: &AppliedState) -> usize {
        let index = applied.index();
        (self.tail).partition_point(|pack| Some(pack.last.index) <= index)
    }
}

/// The open database of a ledger. A reader keeps it open while it reads.
struct OpenLedger {
    database: Arc<StateDatabase>,
    /// Declared last, so that it is dropped last: it holds the lock of the directory until the
    /// database is closed.
    _base: Arc<Base>,
}

/// Appends the results of applied entries to the ledger.
pub(super) struct LedgerWriter {
    kept: Arc<Mutex<LedgerState>>,
    opened: Arc<OpenLedger>,
    most: u64,
}

impl LedgerWriter {
    /// Continues the ledger in the database, if it matches the state.
    pub(super) fn open(
        base: &Arc<Base>,
        database: Arc<StateDatabase>,
        applied: &AppliedState,
    ) -> crate::error::Result<Self> {
        let found: Option<LedgerRecord> = database.ledger()?;
        let found = found.filter(|record| record.up_to == applied.index());
        let record = found.unwrap_or_else(|| LedgerRecord::new(applied));
        let mut tail = Vec::new();
        if mutant!("tail-read-twice") {
            let packs = database.packs(NEW.index, u64::MAX, false).flatten();
            for (entry, _) in packs.flat_map(|pack| unpack(&pack).flatten().collect::<Vec<_>>()) {
                pack::add(&mut tail, applied.record_version(), &entry);
            }
        }
        let tail = tail.into_iter().map(Arc::new).collect();
        let kept = Arc::new(Mutex::new(LedgerState { record, tail }));
        let opened = Arc::new(OpenLedger {
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

    /// Adds new packs. Must be called before the state that contains their entries is published.
    pub(super) fn note(&self, packs: Vec<Pack>) {
        self.kept
            .lock()
            .tail
            .extend(packs.into_iter().map(Arc::new));
    }

    /// Adds the packs whose entries `applied` contains to a batch. If the ledger is then too large,
    /// raises the floor and adds the removal of the oldest entries to the batch.
    pub(super) fn put(
        &self,
        batch: &mut WriteBatch,
        version: RecordVersion,
        applied: &AppliedState,
    ) {
        let database = &self.opened.database;
        let (packs, mut record) = {
            let kept = self.kept.lock();
            let packs: Vec<_> = kept.tail.range(..kept.up_to(applied)).cloned().collect();
            (packs, kept.record.clone())
        };
        let before = record.floor;
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

    /// Removes written packs from the tail; readers find them in the database.
    pub(super) fn written(&self, applied: &AppliedState) {
        let mut kept = self.kept.lock();
        let next = kept.up_to(applied);
        kept.tail.drain(..next);
    }

    /// Empties the ledger: it begins again after `applied`, which replaces the rows.
    pub(super) fn replace(&self, applied: &AppliedState) {
        if mutant!("ledger-outlives-a-snapshot") {
            return;
        }
        let mut kept = self.kept.lock();
        kept.tail.clear();
        kept.record = LedgerRecord::new(applied);
    }
}

/// The changes that this node has applied. Cheap to clone; does not keep the database open.
#[derive(Clone)]
pub struct Ledger {
    kept: Arc<Mutex<LedgerState>>,
    opened: Weak<OpenLedger>,
}

/// Entries up to a byte limit. The limit may be exceeded to keep the entries of one log index
/// together.
struct Page {
    entries: Vec<Arc<LedgerEntry>>,
    bytes_left: Option<usize>,
}

impl Page {
    fn with_limit(at_most_bytes: usize) -> Self {
        Self {
            entries: Vec::new(),
            bytes_left: Some(at_most_bytes),
        }
    }

    /// Adds entries up to the limit. Returns whether all were added.
    fn take(&mut self, entries: impl Iterator<Item = SizedEntry>) -> Result<bool, LedgerError> {
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

/// An entry with its length, or an error.
type SizedEntry = Result<(LedgerEntry, usize), LedgerError>;

fn in_order(pack: &[u8], backwards: bool) -> Vec<SizedEntry> {
    let mut entries: Vec<_> = unpack(pack).map(|read| Ok(read?)).collect();
    if backwards {
        entries.reverse();
    }
    entries
}

/// The entries of `from..=up_to`.
fn between(
    from: u64,
    up_to: u64,
    found: impl Iterator<Item = SizedEntry>,
) -> impl Iterator<Item = SizedEntry> {
    let is_outside = move |found: &SizedEntry| matches!(found, Ok((entry, _)) if !(from..=up_to).contains(&entry.index));
    let inside = found.skip_while(is_outside);
    inside.take_while(move |found| !is_outside(found))
}

impl OpenLedger {
    /// The entries of `from..=up_to` in the database.
    fn entries(
        &self,
        from: u64,
        up_to: u64,
        backwards: bool,
    ) -> impl Iterator<Item = SizedEntry> + '_ {
        let read_all = move |pack: Result<Box<[u8]>, rocksdb::Error>| match pack {
            Ok(pack) => in_order(&pack, backwards),
            Err(error) => vec![Err(error.into())],
        };
        let packs = self.database.packs(from, up_to, backwards);
        between(from, up_to, packs.flat_map(read_all))
    }
}

impl Ledger {
    /// The floor. The ledger contains all later entries that this node has applied.
    pub fn floor(&self) -> Floor {
        if mutant!("floor-forgotten") {
            return NEW;
        }
        self.kept.lock().record.floor
    }

    /// Encoded length of the ledger on disk.
    pub fn bytes(&self) -> u64 {
        self.kept.lock().record.bytes()
    }

    /// The entries after `after` up to and including `up_to`, which must be applied, in log order.
    /// Returns about `at_most_bytes`, and at least one entry if there is one. Entries of one log
    /// index are not split.
    ///
    /// # Errors
    /// [`LedgerError`]. The result never has a gap.
    pub fn forward(
        &self,
        after: u64,
        up_to: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerError> {
        let opened = self.opened.upgrade().ok_or(LedgerError::Closed)?;
        self.check(after)?;
        let mut page = Page::with_limit(at_most_bytes);
        let from = after.saturating_add(1);
        // Packs that leave the tail from now on are in the database.
        let (tail_from, (tail, _)) = self.tail(|kept| {
            let noted = kept.partition_point(|pack| pack.last.index < from);
            first_packs(kept.range(noted..), at_most_bytes)
        });
        let mut in_database = tail_from.map_or(up_to, |first| up_to.min(first.saturating_sub(1)));
        if mutant!("tail-read-twice") {
            in_database = up_to;
        }
        let mut has_all = true;
        if from <= in_database {
            has_all = page.take(opened.entries(from, in_database, false))?;
        }
        // If entries were dropped during the read, the floor has already been raised.
        self.check(after)?;
        if has_all {
            page.take(between(
                from,
                up_to,
                tail.iter().flat_map(|pack| in_order(&pack.bytes, false)),
            ))?;
        }
        Ok(page.entries)
    }

    /// The entries up to `from`, newest first, about `at_most_bytes`; none if all are below the
    /// floor. Entries of one log index are not split. A caller that needs all entries must check
    /// the floor afterwards.
    ///
    /// # Errors
    /// [`LedgerError`], except [`LedgerError::Gone`].
    pub fn backward(
        &self,
        from: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerError> {
        let opened = self.opened.upgrade().ok_or(LedgerError::Closed)?;
        let mut page = Page::with_limit(at_most_bytes);
        let (tail_from, (tail, is_whole)) = self.tail(|kept| {
            // The last pack may also contain later entries.
            let noted = kept.partition_point(|pack| pack.first <= from);
            first_packs(kept.range(..noted).rev(), at_most_bytes)
        });
        let noted = tail.iter().flat_map(|pack| in_order(&pack.bytes, true));
        let has_all = page.take(between(0, from, noted))? && is_whole;
        let to = self.floor().index.saturating_add(1);
        let in_database = tail_from.map_or(from, |first| from.min(first.saturating_sub(1)));
        if has_all && to <= in_database {
            page.take(opened.entries(to, in_database, true))?;
        }
        Ok(page.entries)
    }

    /// The first index of the tail, and the result of `take`.
    fn tail<T>(&self, take: impl FnOnce(&VecDeque<Arc<Pack>>) -> T) -> (Option<u64>, T) {
        let kept = self.kept.lock();
        let first = kept.tail.front().map(|pack| pack.first);
        (first, take(&kept.tail))
    }

    fn check(&self, after: u64) -> Result<(), LedgerError> {
        let floor = self.floor();
        if after < floor.index {
            Err(LedgerError::Gone(floor))
        } else {
            Ok(())
        }
    }
}

/// The first packs, at least `at_least_bytes` long together, and whether these are all packs.
fn first_packs<'a>(
    packs: impl Iterator<Item = &'a Arc<Pack>>,
    at_least_bytes: usize,
) -> (Vec<Arc<Pack>>, bool) {
    let (mut some, mut bytes) = (Vec::new(), 0);
    for pack in packs {
        if bytes > at_least_bytes {
            return (some, false);
        }
        bytes += pack.bytes.len();
        some.push(Arc::clone(pack));
    }
    (some, true)
}
