//! Measures how long disk calls in progress have taken: a disk that hangs returns no error.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

/// Start times of the disk calls in progress, oldest first. Calls that have ended are removed when
/// the next call begins.
#[derive(Debug, Default)]
pub(crate) struct DiskWait(Mutex<Vec<Weak<Instant>>>);

/// A disk call in progress. Dropping it ends the call.
#[derive(Debug)]
pub(crate) struct DiskCall {
    _since: Arc<Instant>,
}

impl DiskWait {
    /// Registers a disk call.
    pub(crate) fn begin(&self) -> DiskCall {
        let mut calls = self.0.lock();
        calls.retain(|call| call.strong_count() > 0);
        let since = Arc::new(Instant::now());
        calls.push(Arc::downgrade(&since));
        DiskCall { _since: since }
    }

    /// How long the longest call in progress has taken so far.
    pub(crate) fn longest(&self) -> Option<Duration> {
        let calls = self.0.lock();
        let first = calls.iter().find_map(Weak::upgrade)?;
        Some(first.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_call_in_progress_counts() {
        let waits = DiskWait::default();
        assert!(waits.longest().is_none());
        let first = waits.begin();
        while waits.longest() < Some(Duration::from_millis(5)) {
            std::hint::spin_loop();
        }
        let between = Instant::now();
        let second = waits.begin();
        assert!(waits.longest() >= Some(Duration::from_millis(5)));
        drop(first);
        assert!(waits.longest() <= Some(between.elapsed()));
        drop(second);
        assert!(waits.longest().is_none());
    }
}
