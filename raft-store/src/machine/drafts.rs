//! Builds this node's snapshots outside of openraft: a failure is retried and does not stop the
//! node.

use std::io;
use std::sync::{Arc, Weak};

use placement_model::mutant;

use super::core::Core;
use super::snapshot_file::{Snapshot, SnapshotData, SnapshotFile};
use placement_base::runtime;

/// Builds snapshots of this node's state. Cheap to clone; does not keep the database open.
#[derive(Clone)]
pub struct Drafts {
    pub(super) core: Weak<Core>,
}

impl Drafts {
    /// Makes the current rows durable, so that the log can be purged up to them. The next time that
    /// openraft takes a snapshot, it takes the state that this call made durable.
    ///
    /// # Errors
    /// A full disk or no file descriptors; nothing has changed. If RocksDB no longer accepts
    /// writes, the node's storage has failed ([`Health`](crate::Health)).
    pub async fn cover(&self) -> io::Result<()> {
        let core = self.core()?;
        let covering = Arc::clone(&core);
        let mut applied = runtime::blocking(move || covering.cover()).await?;
        if mutant!("cover-what-is-not-flushed") {
            applied = core.current();
        }
        if mutant!("older-snapshot-returns") {
            core.publish(applied.as_ref().clone());
        }
        core.keep_covered(applied);
        Ok(())
    }

    /// Makes the current rows durable, so that the next start replays less of the log. Does not
    /// purge the log.
    ///
    /// # Errors
    /// The errors of [`Drafts::cover`].
    pub async fn flush(&self) -> io::Result<()> {
        let core = self.core()?;
        runtime::blocking(move || core.make_rows_durable()).await
    }

    /// Returns the file of a snapshot to send. If the snapshot is only in memory, writes the file
    /// first.
    ///
    /// # Errors
    /// File system errors.
    pub async fn write_down(&self, snapshot: &Snapshot) -> io::Result<SnapshotFile> {
        match &snapshot.snapshot {
            SnapshotData::File(file) => Ok(file.clone()),
            SnapshotData::State(applied) => {
                let (core, applied) = (self.core()?, Arc::clone(applied));
                runtime::blocking(move || core.write_down(&applied)).await
            }
        }
    }

    /// Verifies the snapshot that is being sent, and removes it if it is damaged; the next transfer
    /// writes a new one. Returns whether it was damaged.
    ///
    /// # Errors
    /// The store is closed.
    pub async fn repair(&self) -> io::Result<bool> {
        let core = self.core()?;
        Ok(runtime::blocking(move || core.repair_snapshot()).await)
    }

    fn core(&self) -> io::Result<Arc<Core>> {
        let closed = || io::Error::other("the store is closed");
        self.core.upgrade().ok_or_else(closed)
    }
}
