//! How old this node's state may be at most, measured on this node's clock alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use placement_api::world::Clock;

/// A moment from which age is counted. A machine that is suspended grows older, though its timers
/// stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    suspended: Duration,
}

/// The latest moment at which this node's state is known to have been complete: everything that
/// was acknowledged anywhere before it has been applied here.
pub(crate) struct Freshness {
    clock: Arc<dyn Clock>,
    complete_at: Mutex<Option<Moment>>,
    /// Whether the last question to the leader was in vain.
    is_cut_off: AtomicBool,
}

impl Freshness {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            complete_at: Mutex::default(),
            is_cut_off: AtomicBool::default(),
        }
    }

    /// This moment.
    pub(crate) fn now(&self) -> Moment {
        Moment {
            at: Instant::now(),
            suspended: self.clock.suspended(),
        }
    }

    /// The leader has answered a question of the moment `asked` with its commit index; and this
    /// node has applied as far since.
    pub(crate) fn confirm(&self, asked: Moment) {
        let mut complete_at = self.complete_at.lock();
        *complete_at = (*complete_at).max(Some(asked));
        self.is_cut_off.store(false, Ordering::Relaxed);
    }

    /// No one could answer how far this node should be.
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
        complete_at.map(|Moment { at, suspended }| {
            at.elapsed() + self.clock.suspended().saturating_sub(suspended)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// Says how long the machine was suspended.
    #[derive(Default)]
    struct Sleeper(Mutex<Duration>);

    impl Clock for Sleeper {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }

        fn suspended(&self) -> Duration {
            *self.0.lock()
        }
    }

    #[test]
    fn age_counts_from_when_the_question_was_asked_and_an_old_answer_changes_nothing() {
        let freshness = Freshness::new(Arc::new(Sleeper::default()));
        assert_eq!(freshness.staleness(), None);
        let late = freshness.now();
        let early = Moment {
            at: late.at - Duration::from_secs(100),
            ..late
        };
        freshness.confirm(early);
        assert!(freshness.staleness().unwrap() >= Duration::from_secs(100));
        freshness.confirm(late);
        freshness.confirm(early);
        assert!(freshness.staleness().unwrap() < Duration::from_secs(50));
    }

    #[test]
    fn a_suspended_machine_grows_older() {
        let clock = Arc::new(Sleeper::default());
        let freshness = Freshness::new(clock.clone());
        let asked = freshness.now();
        // Between the question and its answer, and after it.
        *clock.0.lock() += Duration::from_secs(1_000);
        freshness.confirm(asked);
        *clock.0.lock() += Duration::from_secs(2_000);
        assert!(freshness.is_older_than(Duration::from_secs(2_999)));
        freshness.confirm(freshness.now());
        assert!(!freshness.is_older_than(Duration::from_secs(1_000)));
    }
}
