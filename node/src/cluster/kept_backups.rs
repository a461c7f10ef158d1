//! What is known of the backups that this node makes by itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

/// The numbers of a node, and how its two tasks for backups talk to each other.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// When the last good one was made, in seconds since 1970; 0: never.
    last: AtomicU64,
    /// The last entry of the log that is kept.
    logged: AtomicU64,
    /// Backups that were not made, and entries that could not be kept.
    failures: AtomicU64,
    due: Notify,
}

impl Kept {
    /// When the last good one was made, in seconds since 1970.
    pub(crate) fn last(&self) -> Option<u64> {
        Some(self.last.load(Ordering::Relaxed)).filter(|last| *last > 0)
    }

    /// The last entry of the log that is kept.
    pub(crate) fn logged(&self) -> u64 {
        self.logged.load(Ordering::Relaxed)
    }

    /// How often something has failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn is_logged_up_to(&self, index: u64) {
        self.logged.store(index, Ordering::Relaxed);
    }

    /// The next backup does not wait for its time.
    pub(super) fn make_one_now(&self) {
        self.due.notify_one();
    }

    /// Waits until the next backup is not to wait for its time.
    pub(super) async fn is_due(&self) {
        self.due.notified().await;
    }

    pub(super) fn made(&self, at: SystemTime) {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last.store(since.as_secs(), Ordering::Relaxed);
    }
}
