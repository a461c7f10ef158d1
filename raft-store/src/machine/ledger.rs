//! The ledger: what each entry of the log has changed, from a floor on ([`LedgerEntry`]). A node
//! keeps what it has applied itself: on the disk, in the batches that write the rows, and in memory
//! until then. So a crash leaves neither gap nor repetition: what was not flushed is applied and
//! written again.

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

/// It is dropped in so many pieces.
const PIECES: u64 = 16;

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
    /// The last entry of the log when it was written. Another one among the rows is of a version
    /// without a ledger.
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

/// What readers and the writer share.
struct Kept {
    /// Raised before the database drops what is below it.
    record: LedgerRecord,
    /// Those that may not be in the database yet, in the order of the log.
    tail: VecDeque<Arc<Pack>>,
}

impl Kept {
    /// How many packs of the tail this state has.
    fn up_to(&self, applied: &AppliedState) -> usize {
        let index = applied.index();
        (self.tail).partition_point(|pack| Some(pack.last.index) <= index)
    }
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
        let mut tail = Vec::new();
        if mutant!("tail-read-twice") {
            let packs = database.packs(NEW.index, u64::MAX, false).flatten();
            for (entry, _) in packs.flat_map(|pack| unpack(&pack).flatten().collect::<Vec<_>>()) {
                pack::add(&mut tail, applied.record_version(), &entry);
            }
        }
        let tail = tail.into_iter().map(Arc::new).collect();
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
    pub(super) fn note(&self, packs: Vec<Pack>) {
        self.kept
            .lock()
            .tail
            .extend(packs.into_iter().map(Arc::new));
    }

    /// Adds to a batch what was noted up to the state that it writes. What is too old is not there
    /// any more from now on; the batch removes it.
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

    /// The batch is written: readers find it in the database.
    pub(super) fn written(&self, applied: &AppliedState) {
        let mut kept = self.kept.lock();
        let next = kept.up_to(applied);
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
    fn take(&mut self, entries: impl Iterator<Item = Found>) -> Result<bool, LedgerError> {
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

/// What was read, or why not.
type Found = Result<(LedgerEntry, usize), LedgerError>;

fn in_order(pack: &[u8], backwards: bool) -> Vec<Found> {
    let mut entries: Vec<_> = unpack(pack).map(|read| Ok(read?)).collect();
    if backwards {
        entries.reverse();
    }
    entries
}

/// Those of these places, both included.
fn between(
    from: u64,
    up_to: u64,
    found: impl Iterator<Item = Found>,
) -> impl Iterator<Item = Found> {
    let is_outside = move |found: &Found| matches!(found, Ok((entry, _)) if !(from..=up_to).contains(&entry.index));
    let inside = found.skip_while(is_outside);
    inside.take_while(move |found| !is_outside(found))
}

impl Opened {
    /// What is in the database of these places, both included.
    fn entries(&self, from: u64, up_to: u64, backwards: bool) -> impl Iterator<Item = Found> + '_ {
        let read_all = move |pack: Result<Box<[u8]>, rocksdb::Error>| match pack {
            Ok(pack) => in_order(&pack, backwards),
            Err(error) => vec![Err(error.into())],
        };
        let packs = self.database.packs(from, up_to, backwards);
        between(from, up_to, packs.flat_map(read_all))
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

    /// The entries after `after` up to `up_to`, which is applied, in order, of about so many bytes
    /// at most; one at least, if there is one. Those of one place in the log are not parted.
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
        let (tail_from, (tail, _)) = self.tail(|kept| {
            let noted = kept.partition_point(|pack| pack.last.index < from);
            some(kept.range(noted..), at_most_bytes)
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
            page.take(between(
                from,
                up_to,
                tail.iter().flat_map(|pack| in_order(&pack.bytes, false)),
            ))?;
        }
        Ok(page.entries)
    }

    /// The entries up to `from`, the newest first, of about so many bytes at most; nothing if none
    /// is left above the floor. Those of one place in the log are not parted. Who needs all of them
    /// looks at the floor afterwards.
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
        let (tail_from, (tail, is_whole)) = self.tail(|kept| {
            // The last of them may have later entries, too.
            let noted = kept.partition_point(|pack| pack.first <= from);
            some(kept.range(..noted).rev(), at_most_bytes)
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

    /// Where the tail begins, and what is taken from it.
    fn tail<T>(&self, take: impl FnOnce(&VecDeque<Arc<Pack>>) -> T) -> (Option<u64>, T) {
        let kept = self.kept.lock();
        let first = kept.tail.front().map(|pack| pack.first);
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

/// The first packs, with so many bytes at least; and whether that is all of them.
fn some<'a>(
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
