//! Waiters for log entries: a waiter is woken once, when its entry is applied or with the outcome
//! of its command.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tracing::Span;

/// The state machine is closed: this node applies no further entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this node has stopped applying its log")]
pub struct Stopped;

/// Waiters for a key `K`, each of which gets a `T`. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Waiters<K, T>(Arc<Mutex<Registrations<K, T>>>);

#[derive(Debug)]
struct Registrations<K, T> {
    /// Senders by key and order of registration, each with the span of its waiter.
    senders: BTreeMap<(K, u64), (oneshot::Sender<T>, Span)>,
    came: u64,
    /// Set when no further entries are applied.
    is_closed: bool,
}

/// A registered waiter. Dropping it removes it.
#[derive(Debug)]
pub struct Waiter<K: Ord + Copy, T> {
    key: (K, u64),
    answer: oneshot::Receiver<T>,
    among: Waiters<K, T>,
}

impl<K: Ord + Copy, T> Drop for Waiter<K, T> {
    fn drop(&mut self) {
        self.among.0.lock().senders.remove(&self.key);
    }
}

impl<K: Ord + Copy, T> Waiter<K, T> {
    /// Waits for the answer. `None` if no answer can arrive, or if it was already returned.
    pub async fn answer(&mut self) -> Option<T> {
        if self.is_over() {
            return None;
        }
        (&mut self.answer).await.ok()
    }

    /// Whether no answer can arrive any more.
    pub fn is_over(&self) -> bool {
        self.answer.is_terminated()
    }
}

impl<K, T> Default for Waiters<K, T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Registrations {
            senders: BTreeMap::new(),
            came: 0,
            is_closed: false,
        })))
    }
}

impl<K: Ord + Copy, T> Waiters<K, T> {
    /// Registers a waiter. `None` if `is_over` returns true.
    pub(super) fn enter(
        &self,
        what: K,
        is_over: impl FnOnce() -> bool,
    ) -> Result<Option<Waiter<K, T>>, Stopped> {
        let mut waiting = self.0.lock();
        // Checked under the lock: an event after this check wakes the waiter that is registered
        // below.
        if is_over() {
            return Ok(None);
        }
        if waiting.is_closed {
            return Err(Stopped);
        }
        let (sender, answer) = oneshot::channel();
        let key = (what, waiting.came);
        waiting.came += 1;
        waiting.senders.insert(key, (sender, Span::current()));
        let among = Self(Arc::clone(&self.0));
        Ok(Some(Waiter { key, answer, among }))
    }

    /// Removes all waiters for a key and returns the last one. The others get no answer.
    pub(super) fn take(&self, what: K) -> Option<oneshot::Sender<T>> {
        let senders = &mut self.0.lock().senders;
        let mut last = None;
        while let Some((&key, _)) = senders.range((what, 0)..=(what, u64::MAX)).next() {
            last = senders.remove(&key);
        }
        last.map(|(sender, _)| sender)
    }

    /// The span of the last waiter for a key.
    pub(super) fn span_of(&self, what: K) -> Option<Span> {
        let senders = &self.0.lock().senders;
        let mut waiters = senders.range((what, 0)..=(what, u64::MAX));
        waiters.next_back().map(|(_, (_, span))| span.clone())
    }

    /// Removes all waiters; they get no answer.
    pub(super) fn forget(&self) {
        self.0.lock().senders.clear();
    }

    /// Removes all waiters, which get no answer, and rejects new ones.
    pub(super) fn close(&self) {
        let mut waiting = self.0.lock();
        waiting.is_closed = true;
        waiting.senders.clear();
    }
}

impl Waiters<u64, ()> {
    /// Waits until the entry at `index` is applied, unless `is_applied` returns true.
    pub(super) async fn wait(
        &self,
        index: u64,
        is_applied: impl Fn() -> bool,
    ) -> Result<(), Stopped> {
        match self.enter(index, is_applied)? {
            Some(mut waiter) => waiter.answer().await.ok_or(Stopped),
            None => Ok(()),
        }
    }

    /// Wakes the waiters for entries up to this one.
    pub(super) fn wake(&self, index: u64) {
        let mut waiting = self.0.lock();
        while let Some(first) = waiting.senders.first_entry()
            && first.key().0 <= index
        {
            // This fails if the waiter has just given up.
            let _ = first.remove().0.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::{join_all, poll_immediate};

    use super::*;

    #[tokio::test]
    async fn each_waiter_is_woken_by_its_own_entry() {
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

    /// The one order of two threads in which a wake-up could be lost: the entry is applied after
    /// the check and before its waiter is registered.
    #[tokio::test]
    #[expect(
        clippy::disallowed_methods,
        reason = "no simulation: the test needs two concurrent threads"
    )]
    async fn entry_applied_during_registration_wakes_the_waiter() {
        let waiters = Waiters::default();
        let (looked, applies) = std::sync::mpsc::channel();
        let waker = waiters.clone();
        let (woke, is_over) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            applies.recv().unwrap();
            waker.wake(5);
            woke.send(()).unwrap();
        });
        let waiter = waiters.enter(5, || {
            looked.send(()).unwrap();
            // Long enough for the other thread to wake the registered waiters, if it can.
            let _ = is_over.recv_timeout(std::time::Duration::from_millis(200));
            false
        });
        let mut waiter = waiter.unwrap().expect("it was not applied yet");
        thread.join().unwrap();
        assert_eq!(poll_immediate(waiter.answer()).await, Some(Some(())));
    }

    #[tokio::test]
    async fn a_waiter_that_gives_up_leaves_nothing_behind() {
        let waiters = Waiters::default();
        let waiting = (0..10).map(|index| waiters.wait(index, || false).boxed());
        assert_eq!(poll_immediate(join_all(waiting)).await, None);
        assert!(waiters.0.lock().senders.is_empty());
    }
}
