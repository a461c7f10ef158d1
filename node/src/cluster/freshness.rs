//! How old this node's state may be at most, measured on this node's clock alone.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The latest moment at which this node's state is known to have been complete: everything that
/// was acknowledged anywhere before it has been applied here.
#[derive(Debug, Default)]
pub(crate) struct Freshness {
    complete_at: Mutex<Option<Instant>>,
}

impl Freshness {
    /// The leader said, in answer to a question asked at `asked`, how far it was; and this node has
    /// applied as far since.
    pub(crate) fn confirm(&self, asked: Instant) {
        let mut complete_at = self.complete_at.lock();
        *complete_at = (*complete_at).max(Some(asked));
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
