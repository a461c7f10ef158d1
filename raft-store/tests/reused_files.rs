//! RocksDB overwrites obsolete log files, so old entries follow the new ones in a file. Whatever
//! part of the last write is on disk after a loss of power, synced data stays and no old entry
//! reappears.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::common::{
    append, assert_says, blank, new_dir, newest_wal, options, provider, read_all, refusal, run,
};
use openraft::storage::RaftLogStorage;
use placement_raft_store::{Store, StoreOptions, open};
use rand_openraft::rngs::StdRng;
use rand_openraft::{RngExt, SeedableRng};

/// The unit that a disk writes atomically.
const SECTOR: usize = 512;
/// Number of entries per write.
const BATCH: u64 = 20;
/// Entries that remain after a purge.
const KEPT: usize = 100;

/// A loss of power while a reused file is written.
struct Torn {
    file: PathBuf,
    synced: Vec<u8>,
    written: Vec<u8>,
    /// The note of the last synced position at that time.
    reached: Vec<u8>,
}

impl Torn {
    /// The range that the last write changed.
    fn changed(&self) -> Range<usize> {
        let differs = |at: &usize| self.synced.get(*at) != Some(&self.written[*at]);
        let first = (0..self.written.len()).find(differs).unwrap();
        let last = (0..self.written.len()).rfind(differs).unwrap();
        first..last + 1
    }

    /// Writes the file as left on disk: `is_new` selects the old or the new content of each changed
    /// sector.
    fn leave(&self, dir: &Path, mut is_new: impl FnMut(usize) -> bool) {
        let changed = self.changed();
        let mut bytes = self.synced.clone();
        bytes.resize(self.written.len().max(bytes.len()), 0);
        let mut at = changed.start;
        while at < changed.end {
            let end = ((at / SECTOR + 1) * SECTOR).min(changed.end);
            if is_new(at) {
                bytes[at..end].copy_from_slice(&self.written[at..end]);
            }
            at = end;
        }
        fs::write(&self.file, bytes).unwrap();
        fs::write(dir.join("reached"), &self.reached).unwrap();
    }
}

/// Appends and purges until a file is reused, then appends once more. Returns the last write and
/// the last synced index.
async fn until_torn(store: &mut Store, dir: &Path, term: u64) -> (Torn, u64) {
    let mut names = BTreeMap::<u64, PathBuf>::new();
    loop {
        let last = store.log.get_log_state().await.unwrap().last_log_id;
        let mut next = last.map_or(0, |last| last.index + 1);
        let mut write = async |store: &mut Store| {
            let batch = (next..next + BATCH).map(|index| match index {
                0 => blank(term, 0),
                index => provider(term, index),
            });
            append(&mut store.log, batch.collect()).await;
            next += BATCH;
        };
        write(store).await;
        let file = newest_wal(dir);
        let inode = fs::metadata(&file).unwrap().ino();
        let first_name = names.entry(inode).or_insert_with(|| file.clone());
        if *first_name != file {
            let synced = fs::read(&file).unwrap();
            let reached = fs::read(dir.join("reached")).unwrap();
            write(store).await;
            let written = fs::read(&file).unwrap();
            if newest_wal(dir) == file && written.len() == synced.len() {
                let torn = Torn {
                    file,
                    synced,
                    written,
                    reached,
                };
                return (torn, next - 1 - BATCH);
            }
        }
        let entries = read_all(&mut store.log).await;
        if let Some(cut) = entries.len().checked_sub(KEPT + 1) {
            store.log.purge(entries[cut].log_id).await.unwrap();
        }
    }
}

#[test]
fn torn_write_to_a_reused_file_keeps_synced_entries() {
    let dir = new_dir();
    let dir = dir.path();
    let mut random = StdRng::seed_from_u64(7);
    let options = StoreOptions {
        log_buffer_bytes: 64 << 10,
        ..options(dir)
    };
    for round in 1..=16_u64 {
        let (torn, synced, there) = run(async {
            let mut store = open(options.clone()).unwrap();
            let (torn, synced) = until_torn(&mut store, dir, round).await;
            (torn, synced, read_all(&mut store.log).await)
        });
        assert_eq!(newest_wal(dir), torn.file);
        let changed = torn.changed();
        match round % 4 {
            0 => torn.leave(dir, |_| false),
            1 => torn.leave(dir, |_| random.random_bool(0.5)),
            _ => {
                let end = random.random_range(changed);
                torn.leave(dir, |at| at < end);
            }
        }
        let found = run(async { read_all(&mut open(options.clone()).unwrap().log).await });
        let last = found.last().unwrap().log_id.index;
        assert!((synced..=synced + BATCH).contains(&last), "round {round}");
        assert_eq!(found, there[..found.len()], "round {round}");
    }
}

/// In a reused file, RocksDB treats damage as the end of the log, because old entries follow it.
#[test]
fn flipped_bit_in_a_reused_file_is_detected() {
    let mut random = StdRng::seed_from_u64(8);
    for round in 1..=8_u64 {
        let dir = new_dir();
        let options = StoreOptions {
            log_buffer_bytes: 64 << 10,
            ..options(dir.path())
        };
        let (torn, _) = run(async {
            let mut store = open(options.clone()).unwrap();
            until_torn(&mut store, dir.path(), round).await
        });
        let mut bytes = torn.written.clone();
        let at = random.random_range(0..torn.changed().end);
        bytes[at] ^= 1 << random.random_range(0..8);
        fs::write(&torn.file, bytes).unwrap();
        assert_says(&refusal(options), "has lost synced data");
    }
}
