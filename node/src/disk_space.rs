//! How much room a data directory takes, and how much its disk has left.

use std::io;
use std::path::{Path, PathBuf};

use placement_raft_store::{StoreMetrics, runtime};

/// Room that is left for the log, in bytes.
const RESERVE_BYTES: u64 = 32 << 20;

/// Room, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskSpace {
    /// Length of all files in the directory.
    pub(crate) used_bytes: u64,
    /// What is free on the disk for users who are not root; `None` if the system does not say.
    pub(crate) free_bytes: Option<u64>,
}

impl DiskSpace {
    /// Looks at a directory, which need not exist yet, on a thread that may wait for the disk.
    pub(crate) fn of(dir: &Path) -> Self {
        Self {
            used_bytes: used(dir),
            free_bytes: free_now(dir),
        }
    }
}

/// Whether there is room for what a store writes besides its log. What fills the disk would take from the log
/// what it needs.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    dir: PathBuf,
    store: StoreMetrics,
}

impl Room {
    /// For a store in the data directory `dir`.
    pub(crate) fn new(dir: PathBuf, store: StoreMetrics) -> Self {
        Self { dir, store }
    }

    /// What a snapshot of the state weighs, about, in bytes.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        let state = self.store.state();
        2 * state.sst_bytes + state.memtable_bytes
    }

    /// Whether the rows can be flushed, and so many bytes be written besides.
    ///
    /// # Errors
    /// Of the kind [`io::ErrorKind::StorageFull`].
    pub(crate) async fn check(&self, bytes: u64) -> io::Result<()> {
        let needed = bytes + self.store.state().memtable_bytes + RESERVE_BYTES;
        match free(&self.dir).await {
            Some(free) if free < needed => Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("it needs about {needed} bytes, and the disk has {free} left"),
            )),
            _ => Ok(()),
        }
    }
}

/// Files come and go while they are counted: what is gone counts nothing.
fn used(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => used(&entry.path()),
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    });
    sizes.sum()
}

/// What is free on the disk of a directory, in bytes; `None` if the system does not report it.
pub(crate) async fn free(dir: &Path) -> Option<u64> {
    let dir = dir.to_owned();
    runtime::blocking(move || free_now(&dir)).await
}

/// The same, for a thread that may wait for the disk.
pub(crate) fn free_now(dir: &Path) -> Option<u64> {
    // Before a node joins a cluster, the directory is not made yet, but its parent is.
    let existing = dir.ancestors().find(|path| path.exists())?;
    let found = rustix::fs::statvfs(existing).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_subdirectories_count() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        assert_eq!(used(&data), 0);
        assert!(free_now(&data).is_some());
        std::fs::create_dir_all(data.join("log")).unwrap();
        std::fs::write(data.join("log/1"), [0; 100]).unwrap();
        std::fs::write(data.join("2"), [0; 11]).unwrap();
        assert_eq!(used(&data), 111);
    }
}
