//! Size of a data directory, and free space on its disk.

use std::io;
use std::path::{Path, PathBuf};

use placement_base::runtime;

use crate::{Store, StoreMetrics, Views};

/// Room reserved for the log, in bytes.
const RESERVE_BYTES: u64 = 32 << 20;

/// Used and free space, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Length of all files in the directory.
    pub used_bytes: u64,
    /// Free space on the disk for users other than root; `None` if the system does not report it.
    pub free_bytes: Option<u64>,
}

impl DiskSpace {
    /// Measures a directory, which need not exist yet. Blocks on the disk.
    pub fn measure(dir: &Path) -> Self {
        Self {
            used_bytes: used(dir),
            free_bytes: free_now(dir),
        }
    }
}

/// A message if a disk has less room than `[disk] min_free_bytes`.
pub fn nearly_full(free: u64, min: u64) -> Option<String> {
    (free < min).then(|| {
        let [free, min] = [free, min].map(|bytes| bytes as f64 / f64::from(1 << 20));
        format!(
            "the disk is nearly full: {free:.1} MiB are free, [disk] min_free_bytes is {min:.1} MiB"
        )
    })
}

/// Checks whether the disk has room for writes other than those of the log: they must not take the
/// space that the log needs.
#[derive(Debug, Clone)]
pub struct SpaceCheck {
    dir: PathBuf,
    metrics: StoreMetrics,
    views: Views,
}

impl SpaceCheck {
    /// For a store in the data directory `dir`.
    pub fn new(dir: PathBuf, store: &Store) -> Self {
        Self {
            dir,
            metrics: store.metrics.clone(),
            views: store.views.clone(),
        }
    }

    /// The approximate length of a snapshot of the state, in bytes. The size of the database would
    /// be too large, because it includes the ledger.
    pub fn snapshot_bytes(&self) -> u64 {
        self.views.current().digest().bytes
    }

    /// Checks that the rows can be flushed and `bytes` more bytes written.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`].
    pub async fn check(&self, bytes: u64) -> io::Result<()> {
        let needed = bytes + self.metrics.state().memtable_bytes + RESERVE_BYTES;
        match free(&self.dir).await {
            Some(free) if free < needed => Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!(
                    "about {needed} bytes are needed on the disk of {}, and {free} are free",
                    self.dir.display()
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// Length of all files in a directory, in bytes. Files that are deleted during the call are not
/// counted.
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

/// Free space on the disk of a directory, in bytes; `None` if the system does not report it.
pub async fn free(dir: &Path) -> Option<u64> {
    let dir = dir.to_owned();
    runtime::blocking(move || free_now(&dir)).await
}

/// Like `free`, for a thread that may wait for the disk.
pub fn free_now(dir: &Path) -> Option<u64> {
    // Before a node joins a cluster, the directory does not exist yet, but its parent does.
    let existing = dir.ancestors().find(|path| path.exists())?;
    let found = rustix::fs::statvfs(existing).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::wire::{RecordVersion, WireLogId};
    use crate::{Entry, LoggedCommand, Payload};
    use futures::stream;
    use openraft::entry::RaftEntry;
    use openraft::storage::RaftStateMachine;
    use placement_model::command::{CreateProvider, ReplaceProviderAggregates};
    use placement_model::types::{AggregateUuid, PartitionId, ProviderUuid, Timestamp};
    use placement_model::{Command, Stamped};
    use uuid::Uuid;

    use super::*;
    use crate::data_dir::create_any;
    use crate::{StoreOptions, open};

    fn new_store(dir: &Path) -> Store {
        create_any(dir);
        open(StoreOptions::new(dir)).unwrap()
    }

    async fn apply(store: &mut Store, commands: impl IntoIterator<Item = Command>) {
        for command in commands {
            let index = store.views.applied_index().unwrap_or(0) + 1;
            let stamped = Stamped {
                partition: PartitionId::DEFAULT,
                routes: 0,
                at: Timestamp(1),
                write_id: None,
                command,
                request_id: None,
            };
            let (term, node) = (1, 1);
            let id = WireLogId { term, node, index };
            let command = LoggedCommand::encoded(RecordVersion::NEWEST, stamped);
            let entry = Entry::new(id.into(), Payload::Normal(command));
            let entries = stream::iter([Ok((entry, None))]);
            store.machine.apply(entries).await.unwrap();
        }
    }

    fn host(number: u32) -> ProviderUuid {
        ProviderUuid(Uuid::from_u128(u128::from(number) + 1))
    }

    fn hosts(count: u32) -> impl Iterator<Item = Command> {
        (0..count).map(|number| {
            Command::CreateProvider(CreateProvider {
                uuid: host(number),
                name: format!("cmp-{number}").try_into().unwrap(),
                parent: None,
            })
        })
    }

    /// Puts a host into `count` aggregates.
    fn aggregates(count: u128) -> Command {
        let aggregates: BTreeSet<_> = (0..count)
            .map(|number| {
                // Compression would exploit the similarity of consecutive numbers.
                let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                AggregateUuid(Uuid::from_u128(spread).to_string().into())
            })
            .collect();
        Command::ReplaceProviderAggregates(ReplaceProviderAggregates {
            provider: host(0),
            generation: None,
            aggregates,
        })
    }

    async fn written_down(store: &mut Store) -> u64 {
        let snapshot = store.machine.get_current_snapshot().await.unwrap();
        let file = store.drafts.write_down(&snapshot.unwrap()).await.unwrap();
        file.length()
    }

    /// The expected length decides when the log is purged, so the ledger must not count.
    #[tokio::test]
    async fn length_of_snapshot_follows_from_state_and_not_from_ledger() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = new_store(dir.path());
        let room = SpaceCheck::new(dir.path().to_owned(), &store);
        assert_eq!(room.snapshot_bytes(), 0);
        apply(&mut store, hosts(100)).await;
        let before = room.snapshot_bytes();
        while store.ledger.bytes() < 32 << 20 {
            apply(&mut store, [aggregates(20_000), aggregates(0)]).await;
            store.drafts.flush().await.unwrap();
        }
        // Only the encoded generation of one host is longer than before.
        let growth = room.snapshot_bytes() - before;
        assert!(growth < 10, "{growth}");
        let (expected, length) = (room.snapshot_bytes(), written_down(&mut store).await);
        assert!(
            (length / 2..length * 2).contains(&expected),
            "{expected} bytes are expected, and a snapshot has {length}"
        );
        let light = runtime::limits().light_snapshot;
        assert!(expected < light && room.metrics.state().sst_bytes > light);
    }

    #[tokio::test]
    async fn room_is_checked_for_the_bytes_that_are_to_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let store = new_store(dir.path());
        let room = SpaceCheck::new(dir.path().to_owned(), &store);
        room.check(0).await.unwrap();
        let free = free_now(dir.path()).unwrap();
        let error = room.check(free + free / 4).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    }

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
