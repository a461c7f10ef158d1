//! Cached values that take a while to compute: a task computes one for all callers that ask at
//! about the same time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use placement_base::tasks::Tasks;

/// Maximum age of a returned value; Prometheus also uses a sample for five minutes.
const OLD: Duration = Duration::from_secs(300);

/// A cached value, and the task that computes a newer one.
#[derive(Clone)]
pub(crate) struct Recent<T> {
    tasks: Tasks,
    known: Arc<watch::Sender<CachedValue<T>>>,
}

struct CachedValue<T> {
    last: Option<(Instant, T)>,
    /// Whether a task computes a newer one.
    is_sought: bool,
}

impl<T: Clone + Send + Sync + 'static> Recent<T> {
    /// The computing tasks belong to this group.
    pub(crate) fn new(tasks: &Tasks) -> Self {
        let known = CachedValue {
            last: None,
            is_sought: false,
        };
        Self {
            tasks: tasks.clone(),
            known: Arc::new(watch::Sender::new(known)),
        }
    }

    /// Returns the last value if it is fresh, and otherwise waits for one that is computed after
    /// this call. If that takes longer than `patience`, returns the previous value, or `None` if it
    /// is older than five minutes; the computation then continues for later callers.
    pub(crate) async fn get(
        &self,
        is_fresh: impl Fn(Duration, &T) -> bool,
        patience: Duration,
        find: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let asked = Instant::now();
        let is_good = |known: &CachedValue<T>| match &known.last {
            Some((at, value)) => *at >= asked || is_fresh(at.elapsed(), value),
            None => false,
        };
        let mut seen = self.known.subscribe();
        let begins = self.known.send_if_modified(|known| {
            let begins = !known.is_sought && !is_good(known);
            known.is_sought |= begins;
            begins
        });
        if begins {
            let known = self.known.clone();
            self.tasks.spawn(async move {
                let found = find.await;
                known.send_replace(CachedValue {
                    last: Some((Instant::now(), found)),
                    is_sought: false,
                });
            });
        }
        // After a timeout the known value is used.
        let _ = timeout(patience, seen.wait_for(is_good)).await;
        let last = self.known.borrow().last.clone();
        last.and_then(|(at, value)| (at.elapsed() < OLD).then_some(value))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::future::join_all;

    use super::*;

    const FRESH: Duration = Duration::from_millis(200);

    /// A question whose answer takes 50 ms, with the number of its computations.
    struct Question {
        recent: Recent<u32>,
        found: Arc<AtomicU32>,
    }

    impl Question {
        fn new() -> Self {
            Self {
                recent: Recent::new(&Tasks::on_current_runtime()),
                found: Arc::default(),
            }
        }

        async fn ask(&self, patience: Duration) -> Option<u32> {
            let found = self.found.clone();
            let find = async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                found.fetch_add(1, Ordering::Relaxed)
            };
            self.recent.get(|age, _| age < FRESH, patience, find).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn simultaneous_questions_share_one_answer() {
        let question = Question::new();
        let crowd = || join_all((0..100).map(|_| question.ask(Duration::MAX)));
        assert_eq!(crowd().await, [Some(0); 100]);
        tokio::time::advance(FRESH - Duration::from_millis(2)).await;
        assert_eq!(crowd().await, [Some(0); 100]);
        tokio::time::advance(Duration::from_millis(2)).await;
        assert_eq!(crowd().await, [Some(1); 100]);
    }

    #[tokio::test(start_paused = true)]
    async fn search_goes_on_when_it_is_not_waited_for() {
        let question = Question::new();
        let short = Duration::from_millis(30);
        assert_eq!(question.ask(short).await, None);
        assert!(timeout(short, question.ask(Duration::MAX)).await.is_ok());
        assert_eq!(question.found.load(Ordering::Relaxed), 1);

        tokio::time::advance(FRESH).await;
        assert_eq!(question.ask(short).await, Some(0), "the one from before");
        let given_up = timeout(short / 30, question.ask(Duration::MAX)).await;
        assert!(given_up.is_err());
        tokio::time::sleep(short).await;
        assert_eq!(question.ask(Duration::ZERO).await, Some(1));
        tokio::time::advance(OLD).await;
        assert_eq!(question.ask(short).await, None, "it is too old");
    }
}
