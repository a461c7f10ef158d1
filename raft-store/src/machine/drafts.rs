//! Makes this node's snapshots, outside of openraft: what fails here is tried again, and ends
//! nothing.

use std::io;
use std::sync::{Arc, Weak};

use placement_model::mutant;

use super::core::Core;
use super::snapshot_file::{Snapshot, SnapshotData, SnapshotFile};
use crate::runtime;

/// Makes snapshots of what this node has applied. Cheap to clone; holds no database open.
#[derive(Clone)]
pub struct Drafts {
    pub(super) core: Weak<Core>,
}

impl Drafts {
    /// Makes the rows durable as they are now, so that the log can be cut behind them. openraft
    /// learns of it when it is asked to take a snapshot.
    ///
    /// # Errors
    /// A full disk, no descriptors: nothing has changed. If RocksDB takes no writes any more, the
    /// node's storage has failed ([`Health`](crate::Health)).
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

    /// Makes the rows durable as they are now, so that the next start applies less of the log
    /// again. The log stays.
    ///
    /// # Errors
    /// As [`Drafts::cover`].
    pub async fn flush(&self) -> io::Result<()> {
        let core = self.core()?;
        runtime::blocking(move || core.make_rows_durable()).await
    }

    /// The file of a snapshot, to be sent: written now, if it is in memory.
    ///
    /// # Errors
    /// Those of the file system.
    pub async fn write_down(&self, snapshot: &Snapshot) -> io::Result<SnapshotFile> {
        match &snapshot.snapshot {
            SnapshotData::File(file) => Ok(file.clone()),
            SnapshotData::State(applied) => {
                let (core, applied) = (self.core()?, Arc::clone(applied));
                runtime::blocking(move || core.write_down(&applied)).await
            }
        }
    }

    /// Reads the snapshot that is being sent, whole, and removes it if it is bad: the next one is
    /// written again. Returns whether it was.
    ///
    /// # Errors
    /// The store is closed.
    pub async fn mend(&self) -> io::Result<bool> {
        let core = self.core()?;
        Ok(runtime::blocking(move || core.mend_snapshot()).await)
    }

    fn core(&self) -> io::Result<Arc<Core>> {
        let closed = || io::Error::other("the store is closed");
        self.core.upgrade().ok_or_else(closed)
    }
}
