//! How old this node's state may be at most, measured on this node's clock alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The latest moment at which this node's state is known to have been complete: everything that
/// was acknowledged anywhere before it has been applied here.
#[derive(Debug, Default)]
pub(crate) struct Freshness {
    complete_at: Mutex<Option<Instant>>,
    /// Whether the last question to the leader was in vain.
    is_cut_off: AtomicBool,
}

impl Freshness {
    /// The leader said, in answer to a question asked at `asked`, how far it was; and this node has
    /// applied as far since.
    pub(crate) fn confirm(&self, asked: Instant) {
        let mut complete_at = self.complete_at.lock();
        *complete_at = (*complete_at).max(Some(asked));
        self.is_cut_off.store(false, Ordering::Relaxed);
    }

    /// Nobody could tell how far this node should be.
    pub(crate) fn cut_off(&self) {
        self.is_cut_off.store(true, Ordering::Relaxed);
    }

    /// Whether to ask would be in vain, by the last time that it was tried.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Ordering::Relaxed)
    }

    /// Whether the state may be older than that.
    pub(crate) fn is_older_than(&self, bound: Duration) -> bool {
        self.staleness().is_none_or(|age| age > bound)
    }

    /// How old the state may be at most; `None`: it is not known.
    pub(crate) fn staleness(&self) -> Option<Duration> {
        let complete_at = self.complete_at.lock();
        complete_at.map(|at| at.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_counts_from_when_the_question_was_asked_and_an_old_answer_changes_nothing() {
        let freshness = Freshness::default();
        assert_eq!(freshness.staleness(), None);
        let late = Instant::now();
        let early = late - Duration::from_secs(100);
        freshness.confirm(early);
        assert!(freshness.staleness().unwrap() >= Duration::from_secs(100));
        freshness.confirm(late);
        freshness.confirm(early);
        assert!(freshness.staleness().unwrap() < Duration::from_secs(50));
    }
}
