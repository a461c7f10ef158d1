//! Sends answers to the calls of other nodes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use placement_base::record::{self, RecordVersion};
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use super::denied::Denied;
use super::frame::{Frame, Kind, UNANSWERED};
use super::wire_io::Outbox;

/// Maximum number of concurrent calls on one connection; further calls are not read until one ends.
/// A write no longer counts once it is proposed.
pub(super) const CALLS_MAX: usize = 8192;

/// Sends the answer to one call. If this is dropped without an answer, the caller gets
/// [`Denied::GivenUp`].
pub struct Reply {
    /// Version of the records on its connection.
    pub records: RecordVersion,
    call: u64,
    outbox: Weak<Outbox>,
    /// Keeps the connection open for the answer.
    open: Option<Arc<Outbox>>,
}

impl Reply {
    pub(super) fn new(records: RecordVersion, call: u64, outbox: &Arc<Outbox>) -> Self {
        Self {
            records,
            call,
            outbox: Arc::downgrade(outbox),
            open: Some(outbox.clone()),
        }
    }

    /// Sends the answer: an encoded record, or an error.
    pub fn send(mut self, answer: Result<Vec<u8>, Denied>) {
        self.answer(answer);
    }

    /// Drops this without an answer.
    fn leave(mut self) {
        self.outbox = Weak::new();
    }

    fn answer(&mut self, answer: Result<Vec<u8>, Denied>) {
        let outbox = std::mem::take(&mut self.outbox).upgrade();
        let Some(outbox) = outbox.filter(|_| self.call != UNANSWERED) else {
            return;
        };
        let frame = match answer {
            Ok(body) => Frame::new(Kind::Response, self.call, body),
            Err(denied) => {
                let failure = record::encode(self.records, &denied.failure());
                Frame::new(Kind::Failure, self.call, failure)
            }
        };
        // If the connection is closed, the answer is lost, and the caller does not wait for it.
        outbox.send(frame);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.answer(Err(Denied::GivenUp));
    }
}

/// Answers the node that forwarded a write. A committed write gets no answer. If this is dropped
/// without an answer, the caller gets [`Denied::GivenUp`], unless it has closed the connection:
/// this does not keep the connection open, because such a caller does not wait for the answer.
pub struct Forwarder {
    reply: Reply,
    given_up: Arc<GivenUp>,
    /// A permit of the connection for one concurrent call, held until the write is proposed.
    permit: Option<OwnedSemaphorePermit>,
}

impl Forwarder {
    pub(super) fn new(
        mut reply: Reply,
        given_up: Arc<GivenUp>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        reply.open = None;
        Self {
            reply,
            given_up,
            permit: Some(permit),
        }
    }

    /// Whether the caller has stopped waiting.
    pub fn has_given_up(&self) -> bool {
        self.given_up.has(self.reply.call)
    }

    /// Reports that the write is proposed. It then no longer counts as a concurrent call of its
    /// connection.
    pub fn proposed(&mut self) {
        self.permit = None;
    }

    /// Answers that the write is refused, with the reason as a record.
    pub fn refuse<T: Serialize + ?Sized>(self, refused: Result<&T, Denied>) {
        let records = self.reply.records;
        let refused = refused.map(|refused| record::encode(records, refused));
        self.reply.send(refused);
    }

    /// Ends the call without an answer: the write is committed, and its sender finds it in the log.
    pub fn committed(self) {
        self.reply.leave();
    }
}

/// The writes of one connection whose callers no longer wait.
#[derive(Default)]
pub(super) struct GivenUp {
    /// Whether the connection has ended.
    all: AtomicBool,
    /// The call numbers of the latest cancelled writes, at most [`CALLS_MAX`]. If a write was
    /// proposed before it was cancelled, or never arrived, its number stays here.
    calls: Mutex<BTreeSet<u64>>,
}

impl GivenUp {
    pub(super) fn note(&self, call: u64) {
        let mut calls = self.calls.lock();
        calls.insert(call);
        if calls.len() > CALLS_MAX {
            calls.pop_first();
        }
    }

    /// Records that the connection has ended.
    pub(super) fn note_all(&self) {
        self.all.store(true, Ordering::Relaxed);
    }

    fn has(&self, call: u64) -> bool {
        self.all.load(Ordering::Relaxed) || self.calls.lock().contains(&call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_remembered_given_up_calls_is_bounded() {
        let given_up = GivenUp::default();
        let last = 3 * CALLS_MAX as u64;
        (1..=last).for_each(|call| given_up.note(call));
        assert_eq!(given_up.calls.lock().len(), CALLS_MAX);
        assert!(given_up.has(last) && !given_up.has(1) && !given_up.has(last + 1));
    }
}
