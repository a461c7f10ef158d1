//! Room of the data directory.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk_space::DiskSpace;

/// Room of the data directory as it was found last, in bytes.
#[derive(Debug, Default)]
pub(super) struct Space {
    pub(super) used_bytes: AtomicU64,
    /// One more than what is free; 0 if it is not known.
    free_bytes_and_one: AtomicU64,
}

impl Space {
    pub(super) fn note(&self, found: DiskSpace) {
        let free = found.free_bytes.map_or(0, |free| free.saturating_add(1));
        self.used_bytes.store(found.used_bytes, Ordering::Relaxed);
        self.free_bytes_and_one.store(free, Ordering::Relaxed);
    }

    pub(super) fn free(&self) -> Option<u64> {
        self.free_bytes_and_one
            .load(Ordering::Relaxed)
            .checked_sub(1)
    }
}
