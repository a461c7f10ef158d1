//! Ids of this node's writes. By these ids the state machine recognises a write that arrives twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use placement_model::command::WriteId;

/// Issues write ids, and tracks the writes that are still being answered.
#[derive(Debug)]
pub(crate) struct WriteIds {
    origin: u64,
    boot: u64,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    sequences: BTreeSet<u64>,
}

/// A write that is being answered. Once this is dropped, the write has been answered and is never
/// sent again.
#[derive(Debug)]
pub(crate) struct OpenWrite {
    pub(crate) id: WriteId,
    ids: Arc<WriteIds>,
}

impl WriteIds {
    pub(crate) fn new(origin: u64, boot: u64) -> Self {
        Self {
            origin,
            boot,
            open: Mutex::default(),
        }
    }

    /// An id for a new write.
    pub(crate) fn issue(self: &Arc<Self>) -> OpenWrite {
        let mut open = self.open.lock();
        let sequence = open.next;
        open.next += 1;
        open.sequences.insert(sequence);
        let answered_below = open.sequences.first().copied().unwrap_or(sequence);
        OpenWrite {
            id: WriteId {
                origin: self.origin,
                boot: self.boot,
                sequence,
                answered_below,
            },
            ids: self.clone(),
        }
    }
}

impl Drop for OpenWrite {
    fn drop(&mut self) {
        let mut open = self.ids.open.lock();
        open.sequences.remove(&self.id.sequence);
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
        assert_eq!(second.id.answered_below, 0);
        drop(second);
        assert_eq!(ids.issue().id.answered_below, 0);
        drop(first);
        let later = ids.issue();
        assert_eq!(later.id.sequence, 3);
        assert_eq!(later.id.answered_below, 3);
    }
}
