//! How long the store has been waiting for its disk: a disk that hangs gives no error.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

/// The calls to the disk that are under way.
#[derive(Debug, Default)]
pub(crate) struct DiskWait(Arc<Mutex<Calls>>);

/// When they began, in their order.
#[derive(Debug, Default)]
struct Calls {
    begun: u64,
    since: BTreeMap<u64, Instant>,
}

/// A call that is under way. It is over when this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    number: u64,
    calls: Arc<Mutex<Calls>>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.calls.lock().since.remove(&self.number);
    }
}

impl DiskWait {
    /// A call to the disk begins.
    pub(crate) fn begin(&self) -> UnderWay {
        let mut calls = self.0.lock();
        calls.begun += 1;
        let number = calls.begun;
        calls.since.insert(number, Instant::now());
        UnderWay {
            number,
            calls: Arc::clone(&self.0),
        }
    }

    /// How long the longest call that is under way has taken so far.
    pub(crate) fn longest(&self) -> Option<Duration> {
        let calls = self.0.lock();
        let (_, first) = calls.since.first_key_value()?;
        Some(first.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_call_that_is_under_way_counts() {
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
