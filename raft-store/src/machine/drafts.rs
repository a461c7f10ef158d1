//! Builds this node's snapshots, outside of openraft: what fails here is tried again, and ends nothing.

use std::io;
use std::sync::{Arc, Weak};

use super::core::Core;
use crate::runtime;

/// Builds snapshots of what this node has applied. Cheap to clone; holds no database open.
#[derive(Debug, Clone)]
pub struct Drafts {
    core: Weak<Core>,
}

impl Drafts {
    pub(super) fn new(core: Weak<Core>) -> Self {
        Self { core }
    }

    /// Builds a snapshot of the state as it is now, and makes it the current one. openraft learns of
    /// it when it is told to take a snapshot.
    ///
    /// # Errors
    /// A full disk, no descriptors: the snapshot before stays. If RocksDB takes no writes any more,
    /// the node's storage has failed ([`Health`](crate::Health)).
    pub async fn build(&self) -> io::Result<()> {
        let core = self.core()?;
        runtime::blocking(move || core.build_snapshot(&core.current()).map(drop)).await
    }

    /// Makes the rows durable as they are now, so that the next start applies less of the log again.
    /// There is no snapshot of them, and the log stays.
    ///
    /// # Errors
    /// As [`Drafts::build`].
    pub async fn flush(&self) -> io::Result<()> {
        let core = self.core()?;
        runtime::blocking(move || core.make_rows_durable()).await
    }

    /// Reads the current snapshot, whole, and builds another one if it is bad. Returns whether it
    /// was.
    ///
    /// # Errors
    /// It is bad, and as [`Drafts::build`].
    pub async fn mend(&self) -> io::Result<bool> {
        let core = self.core()?;
        runtime::blocking(move || core.mend_snapshot()).await
    }

    fn core(&self) -> io::Result<Arc<Core>> {
        let closed = || io::Error::other("the store is closed");
        self.core.upgrade().ok_or_else(closed)
    }
}
