//! Numbers for this node's writes, by which the state machine recognises a write that comes twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use placement_model::command::RequestId;

/// Hands out request ids, and knows which writes are still being answered.
#[derive(Debug)]
pub(super) struct WriteIds {
    origin: u64,
    boot: u64,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    sequences: BTreeSet<u64>,
}

/// One write's number. Dropping it says that the write is answered, one way or the other, and will
/// never be sent again.
#[derive(Debug)]
pub(super) struct WriteId {
    request: RequestId,
    ids: Arc<WriteIds>,
}

impl WriteIds {
    pub(super) fn new(origin: u64, boot: u64) -> Self {
        Self {
            origin,
            boot,
            open: Mutex::default(),
        }
    }

    /// A number for a new write.
    pub(super) fn issue(self: &Arc<Self>) -> WriteId {
        let mut open = self.open.lock();
        let sequence = open.next;
        open.next += 1;
        open.sequences.insert(sequence);
        let answered_below = open.sequences.first().copied().unwrap_or(sequence);
        WriteId {
            request: RequestId {
                origin: self.origin,
                boot: self.boot,
                sequence,
                answered_below,
            },
            ids: self.clone(),
        }
    }
}

impl WriteId {
    /// The request id that travels with the write.
    pub(super) fn request(&self) -> RequestId {
        self.request
    }
}

impl Drop for WriteId {
    fn drop(&mut self) {
        let mut open = self.ids.open.lock();
        open.sequences.remove(&self.request.sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_answered_out_of_order_are_remembered_until_the_oldest_is_answered() {
        let ids = Arc::new(WriteIds::new(1, 1));
        let first = ids.issue();
        let second = ids.issue();
        assert_eq!(second.request().answered_below, 0);
        drop(second);
        assert_eq!(ids.issue().request().answered_below, 0);
        drop(first);
        let later = ids.issue();
        assert_eq!(later.request().sequence, 3);
        assert_eq!(later.request().answered_below, 3);
    }
}
