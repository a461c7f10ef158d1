//! Packs: several ledger entries in one database value. With one value per entry, the overhead of a
//! value would be larger than the entry.

use placement_model::LedgerEntry;
use placement_model::ledger::Floor;

use crate::wire::{self, RecordVersion, WireError};

/// A pack of this length accepts no entries of further log indexes.
const FULL_BYTES: usize = 16 * 1024;

/// Entries in log order, each preceded by its length. All entries of a log index are in one pack.
pub(super) struct Pack {
    /// Log index of the first entry.
    pub(super) first: u64,
    /// The floor of a ledger that has dropped this pack.
    pub(super) last: Floor,
    pub(super) bytes: Vec<u8>,
}

/// A decoded entry with its length.
pub(super) type Read = Result<(LedgerEntry, usize), WireError>;

/// Adds an entry to the last pack, or to a new one. Encodes it immediately, while the entry is in
/// the processor's caches.
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

/// The entries of a pack, up to the first unreadable one.
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
            return Some(Err(WireError::Damaged("a pack is truncated".to_owned())));
        };
        pack = rest;
        Some(wire::decode(record).map(|entry| (entry, record.len())))
    })
}
