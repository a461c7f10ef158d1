//! The record version that a store writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::wire::RecordVersion;

/// The version that one store writes: that of the state it has applied. The state machine sets it,
/// the log follows.
#[derive(Debug, Clone)]
pub(crate) struct WriteVersion(Arc<AtomicU8>);

impl WriteVersion {
    pub(crate) fn new(version: RecordVersion) -> Self {
        Self(Arc::new(AtomicU8::new(version.0)))
    }

    pub(crate) fn get(&self) -> RecordVersion {
        RecordVersion(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, version: RecordVersion) {
        self.0.store(version.0, Ordering::Relaxed);
    }
}
