//! The way of a record from the request to the thread that writes it. It has an end: what has no
//! room is lost and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use tokio::sync::oneshot;

use super::record::{Outcome, Record};

/// Records that wait to be written. A record has some kilobytes at most.
const WAITING_MAX: usize = 8_192;
/// Of these, so many may be of requests that were refused: a client that sends what is refused, as
/// much as it likes, keeps no one else's record out.
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

/// What requests and the thread know of each other.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) numbers: Arc<Numbers>,
    /// Records that wait to be written.
    pub(super) waiting: AtomicUsize,
    /// When the call began that the thread is in, by the monotonic clock.
    pub(super) in_call_since: Mutex<Option<Duration>>,
    /// Whether the file is to be opened again.
    pub(super) reopen: AtomicBool,
    /// Whether the node stops.
    pub(super) ends: AtomicBool,
}

impl State {
    /// Why no record can be kept now; `hung` is how long a call may take.
    pub(super) fn why_not(&self, now: Duration, hung: Duration) -> Option<&'static str> {
        if self.numbers.failed.load(Ordering::Relaxed) {
            return Some("they cannot be written");
        }
        let since = *self.in_call_since.lock();
        if since.is_some_and(|since| now.saturating_sub(since) > hung) {
            return Some("what they are written to does not answer");
        }
        (self.waiting.load(Ordering::Relaxed) >= WAITING_MAX)
            .then_some("too many wait to be written")
    }
}

/// Where records are put in.
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

    /// Puts a record in, if there is room. `kept` is notified when it is kept, and dropped if it is
    /// lost.
    pub(super) fn put(&self, record: Record, kept: Option<oneshot::Sender<()>>) {
        let most = match record.outcome {
            Outcome::Refused | Outcome::Abandoned => REFUSED_MAX,
            _ => WAITING_MAX,
        };
        let waiting = &self.state.waiting;
        let has_room = |waiting: usize| (waiting < most).then_some(waiting + 1);
        let room = waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, has_room);
        let record = Box::new(record);
        if room.is_ok() {
            match self.items.try_send(Item::Record { record, kept }) {
                Ok(()) => return,
                // Other items have the place.
                Err(TrySendError::Full(_)) => drop(waiting.fetch_sub(1, Ordering::Relaxed)),
                // The thread is gone. Once as many as may wait are lost, no write is taken.
                Err(TrySendError::Disconnected(_)) => {}
            }
        }
        self.state.numbers.lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn reopen(&self) {
        self.state.reopen.store(true, Ordering::Relaxed);
        // If there is no room, the thread is awake.
        let _ = self.items.try_send(Item::Wake);
    }

    /// Resolves once all that was put in before was tried.
    pub(super) fn flushed(&self) -> Option<oneshot::Receiver<()>> {
        let (done, flushed) = oneshot::channel();
        self.items.try_send(Item::Flush(done)).ok()?;
        Some(flushed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::unauthenticated;
    use super::*;

    #[test]
    fn record_that_found_no_place_takes_none() {
        let (queue, _receiver) = Queue::new();
        (0..WAITING_MAX + 2).for_each(|_| queue.reopen());
        queue.put(unauthenticated(), None);
        assert_eq!(queue.state.numbers.lost.load(Ordering::Relaxed), 1);
        assert_eq!(queue.state.waiting.load(Ordering::Relaxed), 0);
    }
}
