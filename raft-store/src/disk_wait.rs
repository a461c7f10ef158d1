//! How long the store has been waiting for its disk: a disk that hangs gives no error.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

/// The calls to the disk that are under way, one of each kind at most.
#[derive(Debug, Default)]
pub(crate) struct DiskWait {
    log: Arc<Mutex<Option<Instant>>>,
    state: Arc<Mutex<Option<Instant>>>,
}

/// A call that is under way. It is over when this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Mutex<Option<Instant>>>);

impl UnderWay {
    fn begin(since: &Arc<Mutex<Option<Instant>>>) -> Self {
        *since.lock() = Some(Instant::now());
        Self(Arc::clone(since))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl DiskWait {
    /// The log is written and synced.
    pub(crate) fn for_log(&self) -> UnderWay {
        UnderWay::begin(&self.log)
    }

    /// The rows of the state are written.
    pub(crate) fn for_state(&self) -> UnderWay {
        UnderWay::begin(&self.state)
    }

    /// How long the longest call that is under way has taken so far.
    pub(crate) fn longest(&self) -> Option<Duration> {
        let since = [&self.log, &self.state].map(|since| *since.lock());
        since.into_iter().flatten().map(|at| at.elapsed()).max()
    }
}
