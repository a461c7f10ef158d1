//! The file `reached`, which notes the last synced position of the log. RocksDB opens a log that
//! has lost synced entries without an error, just like a log whose incomplete, unsynced end was
//! truncated. The note distinguishes the two.
//!
//! The note is never ahead of the log: it is raised after a sync, and lowered durably before a
//! truncation is written, so no crash causes a false alarm. The file is overwritten in place after
//! each sync of the log, but is itself synced only when the store closes. After a `kill -9` the
//! note is exact; after a loss of power it may be a few seconds old.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::data_dir;
use crate::error::{OpenError, Result};
use crate::files;
use crate::types::{LogId, Vote};
use crate::wire::{self, RecordVersion, WireLogId, WireVote};
use placement_base::log_messages::log;

const NAME: &str = "reached";
/// Length of the file in bytes: one sector, which a disk writes atomically.
const LENGTH: usize = 512;
const CHECKSUM: usize = 8;
/// An operator writes this into the file to accept the log unchecked.
const UNKNOWN: &[u8] = b"unknown";

/// The entries and the vote that are known to be on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct SyncedPosition {
    pub(super) last: Option<LogId>,
    pub(super) vote: Option<Vote>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    last: Option<WireLogId>,
    vote: Option<WireVote>,
}

/// The open note file, as used by the log writer.
#[derive(Debug)]
pub(super) struct ReachedFile {
    file: File,
    noted: SyncedPosition,
}

impl SyncedPosition {
    pub(super) fn truncate(&mut self, last: Option<LogId>) {
        if self.last.map(|id| id.index) > last.map(|id| id.index) {
            self.last = last;
        }
    }

    fn encode(&self) -> Vec<u8> {
        let record = Record {
            last: self.last.as_ref().map(WireLogId::from),
            vote: self.vote.as_ref().map(WireVote::from),
        };
        let record = wire::encode(RecordVersion::FIRST, &record);
        let length = u16::try_from(record.len()).expect("a log id and a vote are short");
        let mut body = length.to_le_bytes().to_vec();
        body.extend(record);
        assert!(
            body.len() <= LENGTH - CHECKSUM,
            "a log id and a vote fit into a sector"
        );
        body.resize(LENGTH - CHECKSUM, 0);
        let mut bytes = xxh3_64(&body).to_le_bytes().to_vec();
        bytes.extend(body);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (checksum, body) = bytes.split_first_chunk::<CHECKSUM>()?;
        if xxh3_64(body) != u64::from_le_bytes(*checksum) {
            return None;
        }
        let (length, body) = body.split_first_chunk::<2>()?;
        let record = body.get(..usize::from(u16::from_le_bytes(*length)))?;
        let record: Record = wire::decode(record).ok()?;
        Some(Self {
            last: record.last.map(LogId::from),
            vote: record.vote.map(Vote::from),
        })
    }
}

/// Reads the note in a data directory. `None` before the first start, or if an operator accepts the
/// log unchecked.
pub(super) fn read_note(dir: &Path) -> Result<Option<SyncedPosition>> {
    let path = path(dir);
    let lost = |what| OpenError::ReachedLost(path.clone(), what);
    let Some(bytes) = data_dir::read(dir, NAME)? else {
        // The note is created before the first start is counted.
        return match data_dir::boots(dir)? {
            0 => Ok(None),
            _ => Err(lost("missing")),
        };
    };
    if bytes.trim_ascii() == UNKNOWN {
        log!(
            LOG_UNCHECKED,
            file = %path.display(),
            "the log is accepted unchecked, as an operator requested; it may have lost entries"
        );
        return Ok(None);
    }
    SyncedPosition::decode(&bytes)
        .map(Some)
        .ok_or_else(|| lost("damaged"))
}

fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

impl ReachedFile {
    /// Creates the note durably, with the last entry and the vote found in the log.
    pub(super) fn begin(dir: &Path, found: SyncedPosition) -> Result<Self> {
        let path = path(dir);
        let begin = || -> io::Result<Self> {
            let file = files::to_write().open(&path)?;
            let mut reached = Self { file, noted: found };
            reached.write(found)?;
            files::sync(&reached.file)?;
            Ok(reached)
        };
        begin().map_err(|error| OpenError::io("write", &path, error))
    }

    /// The position that was last written.
    pub(super) fn position(&self) -> SyncedPosition {
        self.noted
    }

    /// Lowers the note durably before the log is truncated after `last`.
    pub(super) fn lower(&mut self, last: Option<LogId>) -> io::Result<()> {
        let mut lower = self.noted;
        lower.truncate(last);
        if lower == self.noted {
            return Ok(());
        }
        self.write(lower)?;
        files::sync(&self.file)
    }

    /// Raises the note after a sync.
    pub(super) fn raise(&mut self, synced: SyncedPosition) {
        if synced != self.noted
            && let Err(error) = self.write(synced)
        {
            // The log is intact. A note that is too low stays correct.
            log!(
                REACHED_NOT_WRITTEN,
                %error,
                "cannot update the note of the last synced log position"
            );
        }
    }

    /// Syncs the note before the store closes.
    pub(super) fn finish(&self) {
        if let Err(error) = files::sync(&self.file) {
            log!(
                REACHED_NOT_WRITTEN,
                %error,
                "cannot update the note of the last synced log position"
            );
        }
    }

    fn write(&mut self, mark: SyncedPosition) -> io::Result<()> {
        // Set before the attempt: a failed write may still have written the whole record.
        self.noted = mark;
        self.file.write_all_at(&mark.encode(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(term: u64, index: u64) -> LogId {
        WireLogId {
            term,
            node: 1,
            index,
        }
        .into()
    }

    #[test]
    fn note_is_read_back_exactly_or_rejected() {
        for mark in [
            SyncedPosition::default(),
            SyncedPosition {
                last: Some(id(u64::MAX, u64::MAX)),
                vote: Some(Vote::new_committed(u64::MAX, u64::MAX)),
            },
        ] {
            let bytes = mark.encode();
            assert_eq!(bytes.len(), LENGTH);
            assert_eq!(SyncedPosition::decode(&bytes), Some(mark));
            for at in 0..LENGTH {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1;
                assert_eq!(SyncedPosition::decode(&damaged), None);
            }
            assert_eq!(SyncedPosition::decode(&bytes[..100]), None);
        }
        assert_eq!(SyncedPosition::decode(&[]), None);
    }

    #[test]
    fn truncation_lowers_the_mark_only_below_its_own_end() {
        let mut mark = SyncedPosition {
            last: Some(id(3, 60)),
            vote: None,
        };
        mark.truncate(Some(id(3, 70)));
        assert_eq!(mark.last, Some(id(3, 60)));
        mark.truncate(Some(id(2, 39)));
        assert_eq!(mark.last, Some(id(2, 39)));
        mark.truncate(None);
        assert_eq!(mark.last, None);
    }
}
