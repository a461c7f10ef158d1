//! Who waits until this node has applied an entry. Each is woken once, when its own entry is applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The state machine is closed: this node applies no further entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this node has stopped applying its log")]
pub struct Stopped;

/// Those who wait. Clones are the same ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiters(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    /// By the entry that is waited for, and in the order in which they came.
    senders: BTreeMap<(u64, u64), oneshot::Sender<()>>,
    came: u64,
    /// No further entry is applied.
    is_closed: bool,
}

/// A place among those who wait, until it is dropped.
struct Waiter<'a> {
    key: (u64, u64),
    applied: oneshot::Receiver<()>,
    among: &'a Waiters,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.among.0.lock().senders.remove(&self.key);
    }
}

impl Waiters {
    /// Waits until the entry at `index` is applied, unless `is_applied` says already.
    pub(super) async fn wait(
        &self,
        index: u64,
        is_applied: impl Fn() -> bool,
    ) -> Result<(), Stopped> {
        let mut waiter = {
            let mut waiting = self.0.lock();
            // Under the lock: what is applied from now on wakes who is noted by then.
            if is_applied() {
                return Ok(());
            }
            if waiting.is_closed {
                return Err(Stopped);
            }
            let (sender, applied) = oneshot::channel();
            let key = (index, waiting.came);
            waiting.came += 1;
            waiting.senders.insert(key, sender);
            let among = self;
            Waiter {
                key,
                applied,
                among,
            }
        };
        (&mut waiter.applied).await.map_err(|_closed| Stopped)
    }

    /// Entries up to this one are applied.
    pub(super) fn wake(&self, index: u64) {
        let mut waiting = self.0.lock();
        while let Some(first) = waiting.senders.first_entry()
            && first.key().0 <= index
        {
            // Who has given up in this moment needs no news.
            let _ = first.remove().send(());
        }
    }

    /// Nothing is applied any more.
    pub(super) fn close(&self) {
        let mut waiting = self.0.lock();
        waiting.is_closed = true;
        waiting.senders.clear();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::{join_all, poll_immediate};

    use super::*;

    #[tokio::test]
    async fn each_is_woken_by_its_own_entry() {
        let waiters = Waiters::default();
        let mut early = Box::pin(waiters.wait(5, || false));
        let mut late = Box::pin(waiters.wait(6, || false));
        assert_eq!(poll_immediate(&mut early).await, None);
        assert_eq!(poll_immediate(&mut late).await, None);
        waiters.wake(4);
        assert_eq!(poll_immediate(&mut early).await, None);
        waiters.wake(5);
        assert_eq!(early.await, Ok(()));
        assert_eq!(poll_immediate(&mut late).await, None);
        waiters.close();
        assert_eq!(late.await, Err(Stopped));
        assert_eq!(waiters.wait(7, || false).await, Err(Stopped));
        assert_eq!(waiters.wait(7, || true).await, Ok(()));
    }

    #[tokio::test]
    async fn who_gives_up_leaves_nothing_behind() {
        let waiters = Waiters::default();
        let waiting = (0..10).map(|index| waiters.wait(index, || false).boxed());
        assert_eq!(poll_immediate(join_all(waiting)).await, None);
        assert!(waiters.0.lock().senders.is_empty());
    }
}
