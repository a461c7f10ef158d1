//! Entries of the ledger, several in one value of the database: for each alone, its bytes would be
//! the least of what it costs.

use placement_model::LedgerEntry;
use placement_model::ledger::Floor;

use crate::wire::{self, RecordVersion, WireError};

/// A pack with so many bytes takes no more entries.
const FULL_BYTES: usize = 16 * 1024;

/// Entries in the order of the log, each behind its length; all of one place in the log.
pub(super) struct Pack {
    /// The place of the first.
    pub(super) first: u64,
    /// Where a ledger begins that has it no more.
    pub(super) last: Floor,
    pub(super) bytes: Vec<u8>,
}

/// An entry that was read, and its bytes.
pub(super) type Read = Result<(LedgerEntry, usize), WireError>;

/// Adds an entry to the last of these packs, or to a new one: at once, while the entry is in the
/// caches of the processor.
pub(super) fn add(packs: &mut Vec<Pack>, version: RecordVersion, entry: &LedgerEntry) {
    let last = Floor {
        index: entry.index,
        at: entry.at,
    };
    let is_open = |pack: &Pack| pack.bytes.len() < FULL_BYTES || pack.last.index == entry.index;
    if !packs.last().is_some_and(is_open) {
        packs.push(Pack {
            first: entry.index,
            last,
            bytes: Vec::with_capacity(FULL_BYTES / 8),
        });
    }
    if let Some(pack) = packs.last_mut() {
        pack.last = last;
        let at = pack.bytes.len();
        pack.bytes.extend_from_slice(&[0; 4]);
        wire::encode_into(&mut pack.bytes, version, entry);
        let length =
            u32::try_from(pack.bytes.len() - at - 4).expect("a command is shorter than 4 GiB");
        pack.bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// The entries of a pack; nothing after one that cannot be read.
pub(super) fn unpack(mut pack: &[u8]) -> impl Iterator<Item = Read> {
    std::iter::from_fn(move || {
        if pack.is_empty() {
            return None;
        }
        let whole = pack.split_first_chunk().and_then(|(length, rest)| {
            let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            rest.split_at_checked(length)
        });
        let Some((record, rest)) = whole else {
            pack = &[];
            return Some(Err(WireError::Damaged("a pack is cut".to_owned())));
        };
        pack = rest;
        Some(wire::decode(record).map(|entry| (entry, record.len())))
    })
}
