//! Detects files that RocksDB would read without end.
//!
//! RocksDB writes its write-ahead logs and manifests in one format, with other record types in
//! files that it reuses. Its reader does not advance past a record of such a type in a file whose
//! first record has an ordinary type (<https://github.com/facebook/rocksdb/issues/13333>), so one
//! flipped bit would make a start hang. `ReadPhysicalRecord` in its `db/log_reader.cc` defines the
//! rule.

use std::fs;
use std::path::Path;

use crate::error::{OpenError, Result};

/// Bytes of a block. No record crosses the end of a block.
const BLOCK: usize = 32 << 10;
/// Bytes of the shortest header: checksum (4), length (2), type (1).
const HEADER: usize = 7;

/// Whether only reused files have records of this type (`RecordType` in `db/log_format.h`).
fn is_of_reused_files(kind: u8) -> bool {
    matches!(kind, 5..=8 | 11 | 131)
}

/// Fails if RocksDB would read one of a database's files without end.
///
/// # Errors
/// [`OpenError::Damaged`] names the file and the record; [`OpenError::Io`].
pub(crate) fn check(database: &Path) -> Result<()> {
    let failed = |error| OpenError::io("list", database, error);
    for entry in fs::read_dir(database).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_read_at_start(&path) {
            let bytes = fs::read(&path).map_err(|error| OpenError::io("read", &path, error))?;
            if let Some(at) = endless_record(&bytes) {
                let reason = format!("the record at byte {at} has a type of another kind of file");
                return Err(OpenError::Damaged(path, reason));
            }
        }
    }
    Ok(())
}

fn is_read_at_start(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("MANIFEST-") || path.extension().is_some_and(|extension| extension == "log")
}

/// Position of a record that RocksDB's reader does not pass. The checksums are not compared: where
/// one is wrong, RocksDB skips the rest of the block.
fn endless_record(file: &[u8]) -> Option<usize> {
    let first = *file.get(HEADER - 1)?;
    if is_of_reused_files(first) {
        return None;
    }
    let mut blocks = file.chunks(BLOCK).enumerate();
    blocks.find_map(|(number, block)| Some(number * BLOCK + endless_in(block)?))
}

fn endless_in(block: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(header) = block.get(at..at + HEADER) {
        if is_of_reused_files(header[6]) {
            return Some(at);
        }
        let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
        if header[6] == 0 && length == 0 {
            return None;
        }
        at += HEADER + length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, length: u16) -> Vec<u8> {
        let header = [&[0; 4][..], &length.to_le_bytes(), &[kind]].concat();
        [header, vec![255; usize::from(length)]].concat()
    }

    #[test]
    fn record_of_a_reused_file_ends_in_no_other_file() {
        let ordinary = [record(2, 20), record(4, 3)].concat();
        assert_eq!(
            endless_record(&[ordinary.clone(), record(5, 9)].concat()),
            Some(37)
        );
        let reused = [record(5, 20), record(8, 3), record(1, 9)].concat();
        assert_eq!(endless_record(&reused), None);
        for unfinished in [&[][..], &ordinary[..5], &ordinary[..29], &ordinary] {
            assert_eq!(endless_record(unfinished), None);
        }
    }

    #[test]
    fn a_block_is_read_like_the_first_one() {
        let mut file = record(1, 100);
        file.resize(BLOCK, 0);
        file.extend(record(1, 5));
        assert_eq!(endless_record(&file), None);
        let next = file.len();
        file.extend(record(131, 5));
        assert_eq!(endless_record(&file), Some(next));
    }
}
