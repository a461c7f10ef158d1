//! Measures how old this node's state may be, using only this node's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use placement_base::world::Clock;

/// A moment from which an age is measured. The age includes time during which the machine was
/// suspended, although timers stop then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    suspended: Duration,
}

/// The latest moment at which this node's state is known to have been complete: this node has
/// applied every write that any node acknowledged before that moment.
pub struct Freshness {
    clock: Arc<dyn Clock>,
    complete_at: Mutex<Option<Moment>>,
    /// Whether the last attempt to reach the leader failed.
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

    pub(crate) fn now(&self) -> Moment {
        Moment {
            at: Instant::now(),
            suspended: self.clock.suspended(),
        }
    }

    /// Notes that the leader answered a request sent at `asked` with its commit index, and that
    /// this node has since applied the log up to that index.
    pub(crate) fn confirm(&self, asked: Moment) {
        let mut complete_at = self.complete_at.lock();
        *complete_at = (*complete_at).max(Some(asked));
        self.is_cut_off.store(false, Ordering::Relaxed);
    }

    /// Notes that no leader could be reached.
    pub(crate) fn cut_off(&self) {
        self.is_cut_off.store(true, Ordering::Relaxed);
    }

    /// Whether the last attempt to reach the leader failed, so that a new one would likely fail
    /// too.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Ordering::Relaxed)
    }

    /// Whether the state may be older than `bound`.
    pub(crate) fn is_older_than(&self, bound: Duration) -> bool {
        self.staleness().is_none_or(|age| age > bound)
    }

    /// The maximum age of the state; `None`: unknown.
    pub fn staleness(&self) -> Option<Duration> {
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

    /// A clock that reports how long the machine was suspended.
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
    fn age_counts_from_the_question_and_old_answers_are_ignored() {
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
