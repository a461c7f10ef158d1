//! The way of a record from the request to the thread that writes it. It has an end: what has no room is lost and
//! counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use tokio::sync::oneshot;

use super::record::Record;

/// Records that wait to be written. A record has some kilobytes at most.
const WAITING_MAX: usize = 8_192;
/// Of these, so many may be of requests that were refused: a client that sends what is refused, as much as it likes,
/// keeps no one else's record out.
const REFUSED_MAX: usize = WAITING_MAX / 2;

/// What the thread is given.
pub(super) enum Item {
    Record {
        record: Box<Record>,
        /// Who waits until it is kept.
        kept: Option<oneshot::Sender<()>>,
    },
    /// Something else is to be done: [`State`] says what.
    Wake,
    /// All that came before is to be tried once.
    Flush(oneshot::Sender<()>),
}

/// What is counted.
#[derive(Debug)]
pub struct Numbers {
    /// Records that were kept.
    pub records: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// Records that were not kept.
    pub lost: AtomicU64,
    /// Whether records cannot be kept now.
    pub failed: AtomicBool,
    /// How long the file took to sync.
    pub sync: Histogram,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            records: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            sync: Histogram::new(exponential_buckets(0.000_1, 2.5, 14)),
        }
    }
}

/// What those who ask and the thread know of each other.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) numbers: Arc<Numbers>,
    waiting: AtomicUsize,
    /// When the call began that the thread is in, in microseconds of the monotonic clock, and one; 0: in none.
    busy_since: AtomicU64,
    reopen: AtomicBool,
    ends: AtomicBool,
}

impl State {
    /// The thread writes, from now on.
    pub(super) fn begin_call(&self, now: Duration) {
        let micros = u64::try_from(now.as_micros()).unwrap_or(u64::MAX - 1);
        self.busy_since.store(micros + 1, Ordering::Relaxed);
    }

    pub(super) fn end_call(&self) {
        self.busy_since.store(0, Ordering::Relaxed);
    }

    /// How long the thread has been in one call.
    fn in_call(&self, now: Duration) -> Option<Duration> {
        let since = self.busy_since.load(Ordering::Relaxed).checked_sub(1)?;
        Some(now.saturating_sub(Duration::from_micros(since)))
    }

    /// Why no record can be kept now; `hung` is how long a call may take.
    pub(super) fn why_not(&self, now: Duration, hung: Duration) -> Option<&'static str> {
        if self.numbers.failed.load(Ordering::Relaxed) {
            return Some("they cannot be written");
        }
        if self.in_call(now).is_some_and(|took| took > hung) {
            return Some("what they are written to does not answer");
        }
        (self.waiting.load(Ordering::Relaxed) >= WAITING_MAX)
            .then_some("too many wait to be written")
    }

    pub(super) fn taken(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn is_to_reopen(&self) -> bool {
        self.reopen.swap(false, Ordering::Relaxed)
    }

    pub(super) fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

/// The end at which records are put in.
#[derive(Debug)]
pub(super) struct Queue {
    items: SyncSender<Item>,
    pub(super) state: Arc<State>,
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::Relaxed);
    }
}

impl Queue {
    pub(super) fn new() -> (Self, Receiver<Item>) {
        // Two more, for what is no record.
        let (items, receiver) = sync_channel(WAITING_MAX + 2);
        let state = Arc::default();
        (Self { items, state }, receiver)
    }

    /// Puts a record in, if there is room. `kept` is told when it is kept, and dropped if it is lost.
    pub(super) fn put(
        &self,
        record: Box<Record>,
        kept: Option<oneshot::Sender<()>>,
        refused: bool,
    ) {
        let most = if refused { REFUSED_MAX } else { WAITING_MAX };
        let waiting = &self.state.waiting;
        let has_room = |waiting: usize| (waiting < most).then_some(waiting + 1);
        let put = waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, has_room)
            .is_ok_and(|_| {
                let sent = self.items.try_send(Item::Record { record, kept });
                if sent.is_err() {
                    self.state.taken();
                }
                sent.is_ok()
            });
        if !put {
            self.state.numbers.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn reopen(&self) {
        self.state.reopen.store(true, Ordering::Relaxed);
        // If there is no room, the thread is awake.
        let _ = self.items.try_send(Item::Wake);
    }

    /// Resolves once all that was put in before was tried.
    pub(super) fn flushed(&self) -> Option<oneshot::Receiver<()>> {
        let (done, flushed) = oneshot::channel();
        match self.items.try_send(Item::Flush(done)) {
            Ok(()) => Some(flushed),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => None,
        }
    }
}
