//! How much room a data directory takes, and how much its disk has left.

use std::path::{Path, PathBuf};

use placement_raft_store::runtime;

/// Room, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskSpace {
    /// Length of all files in the directory.
    pub(crate) used_bytes: u64,
    /// What is free on the disk for users who are not root; `None` if the system does not say.
    pub(crate) free_bytes: Option<u64>,
}

impl DiskSpace {
    /// Looks at a directory, which need not exist yet.
    pub(crate) async fn of(dir: PathBuf) -> Self {
        runtime::blocking(move || Self {
            used_bytes: used(&dir),
            free_bytes: free(&dir),
        })
        .await
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

/// What is free on the disk of a directory, in bytes; `None` if the system does not say.
pub(crate) fn free(dir: &Path) -> Option<u64> {
    // Before a node joins a cluster, the directory is not made yet, but its parent is.
    let existing = dir.ancestors().find(|path| path.exists())?;
    let found = rustix::fs::statvfs(existing).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_subdirectories_count_and_a_missing_directory_has_a_disk_too() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        assert_eq!(used(&data), 0);
        assert!(free(&data).is_some());
        std::fs::create_dir_all(data.join("log")).unwrap();
        std::fs::write(data.join("log/1"), [0; 100]).unwrap();
        std::fs::write(data.join("2"), [0; 11]).unwrap();
        assert_eq!(used(&data), 111);
    }
}
