//! The bounded queue from requests to the writer thread. Records that do not fit are dropped and
//! counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use tokio::sync::oneshot;

use super::record::{Outcome, Record};

/// Maximum number of waiting records. A record has at most some kilobytes.
const WAITING_MAX: usize = 8_192;
/// Maximum number of waiting records of rejected requests, so that a client that floods the node
/// with bad requests cannot displace other records.
const REFUSED_MAX: usize = WAITING_MAX / 2;

/// Input of the writer thread.
pub(super) enum Item {
    Record {
        record: Box<Record>,
        /// Notified when the record is written.
        kept: Option<oneshot::Sender<()>>,
    },
    /// Wakes the thread to check the flags of [`State`].
    Wake,
    /// Notified after one attempt to write everything queued before.
    Flush(oneshot::Sender<()>),
}

/// Counters of the audit log.
#[derive(Debug)]
pub struct Numbers {
    /// Number of records written.
    pub records: AtomicU64,
    /// Bytes of the records written.
    pub bytes: AtomicU64,
    /// Number of records dropped.
    pub lost: AtomicU64,
    /// Whether writing currently fails.
    pub failed: AtomicBool,
    /// Durations of file syncs, in seconds.
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

/// State shared by requests and the thread.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) numbers: Arc<Numbers>,
    /// Number of records waiting.
    pub(super) waiting: AtomicUsize,
    /// Start of the sink call in progress, by the monotonic clock.
    pub(super) in_call_since: Mutex<Option<Duration>>,
    /// Whether the file must be reopened.
    pub(super) reopen: AtomicBool,
    /// Set when the node stops.
    pub(super) ends: AtomicBool,
}

impl State {
    /// Why no record can be written now. A call of the sink that takes longer than `hung` counts as
    /// hung.
    pub(super) fn why_not(&self, now: Duration, hung: Duration) -> Option<&'static str> {
        if self.numbers.failed.load(Ordering::Relaxed) {
            return Some("audit records cannot be written");
        }
        let since = *self.in_call_since.lock();
        if since.is_some_and(|since| now.saturating_sub(since) > hung) {
            return Some("the audit log's disk or pipe does not answer");
        }
        (self.waiting.load(Ordering::Relaxed) >= WAITING_MAX)
            .then_some("too many audit records are waiting")
    }
}

/// The sending end of the queue.
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
        // Two more places, for items that are not records.
        let (items, receiver) = sync_channel(WAITING_MAX + 2);
        let state = Arc::default();
        (Self { items, state }, receiver)
    }

    /// Queues a record, if there is room. `kept` is notified when the record is written, and
    /// dropped if the record is lost.
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
                // Other items filled the queue.
                Err(TrySendError::Full(_)) => drop(waiting.fetch_sub(1, Ordering::Relaxed)),
                // The thread has ended. `waiting` stays increased, so that writes are rejected once
                // it reaches the limit.
                Err(TrySendError::Disconnected(_)) => {}
            }
        }
        self.state.numbers.lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn reopen(&self) {
        self.state.reopen.store(true, Ordering::Relaxed);
        // If the queue is full, the thread is awake and checks the flag anyway.
        let _ = self.items.try_send(Item::Wake);
    }

    /// Resolves after one attempt to write everything queued before. `None` if the queue is full.
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
    fn dropped_record_frees_its_place() {
        let (queue, _receiver) = Queue::new();
        (0..WAITING_MAX + 2).for_each(|_| queue.reopen());
        queue.put(unauthenticated(), None);
        assert_eq!(queue.state.numbers.lost.load(Ordering::Relaxed), 1);
        assert_eq!(queue.state.waiting.load(Ordering::Relaxed), 0);
    }
}
