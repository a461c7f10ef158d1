//! Limits of concurrent searches and lists, per partition, and of the memory for bodies and
//! answers, for the whole process. A request that exceeds a limit gets 503 and may be sent again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::budget::{Account, Budget, BudgetShare, Caller};
use super::settings::{ApiSettings, CandidateSettings};
use crate::http::errors::ApiError;

/// Granularity of memory accounting, in bytes.
const STEP_BYTES: usize = 4 * 1024;
/// Bytes that each request may use uncounted, so that small requests are admitted even when large
/// ones use the whole budget. The limit on connections bounds the sum of these bytes.
const FREE_BYTES: usize = 64 * 1024;
/// Maximum number of users that wait in a [`UserQueue`], and maximum number of requests of one user
/// that wait for that user's place.
const PEOPLE_WAITING_MAX: usize = 8;
/// Event streams open at once in this process, over all partitions. One user may have half of this
/// number.
const STREAMS_MAX: usize = 512;

/// The queues and budgets of one partition.
#[derive(Clone)]
pub(crate) struct Admission {
    /// Searches for candidates, such as those of Nova.
    pub(crate) searches: Queue,
    /// Long lists, mostly for monitoring. They have a queue of their own, so no search waits behind
    /// them, and run at most half as many at once as searches.
    pub(crate) lists: Queue,
    /// Explanations, requested by people: one at a time.
    pub(crate) explanations: UserQueue,
    /// Reads of earlier states (`Placement-As-Of`). Their queue is separate, as an explanation of
    /// an earlier state holds its own permit while it reads that state.
    pub(crate) moments: UserQueue,
    /// What-if requests. Applying the changes takes a permit, and so does each question.
    pub(crate) what_ifs: UserQueue,
    /// Reads of the change log for event streams. All streams together run at most half as many at
    /// once as searches.
    pub(crate) events: Queue,
    streams: Arc<Budget>,
    bodies: Arc<Budget>,
    answers: Arc<Budget>,
    /// Number of the partition, to which the budgets charge requests.
    partition: u64,
}

/// Source of partition numbers. A partition that is recreated under its old name gets a new number,
/// and so shares of its own.
static PARTITIONS: AtomicU64 = AtomicU64::new(0);

impl Admission {
    pub(crate) fn new(settings: &ApiSettings) -> Self {
        let CandidateSettings {
            concurrency, queue, ..
        } = settings.candidates;
        Self {
            searches: Queue::new(concurrency, queue, "candidate searches"),
            lists: Queue::new(concurrency.div_ceil(2), queue, "long lists"),
            explanations: UserQueue::new("explanations"),
            moments: UserQueue::new("reads of an earlier moment"),
            what_ifs: UserQueue::new("what-if questions"),
            events: Queue::new(concurrency.div_ceil(2), STREAMS_MAX, "streams of events"),
            streams: Budget::new("streams of events", STREAMS_MAX),
            bodies: Budget::new("memory for bodies", settings.limits.in_flight_bytes),
            answers: Budget::new("memory for answers", settings.limits.in_flight_bytes),
            partition: PARTITIONS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Admission for another partition. It has its own queues, so its requests do not wait behind
    /// requests to this partition. It shares the budgets of bytes and streams, which limit the
    /// whole process.
    pub(crate) fn for_partition(&self, settings: &ApiSettings) -> Self {
        Self {
            streams: self.streams.clone(),
            bodies: self.bodies.clone(),
            answers: self.answers.clone(),
            ..Self::new(settings)
        }
    }

    /// Reserves one event stream in the budget, until the result is dropped.
    ///
    /// # Errors
    /// 503 if the caller or its partition has used up its share.
    pub(crate) fn stream(&self, caller: Caller) -> Result<BudgetShare, ApiError> {
        let mut place = self.streams.nothing(self.account(caller));
        place.grow(1)?;
        Ok(place)
    }

    /// Number of open event streams.
    pub(crate) fn streams_open(&self) -> usize {
        self.streams.taken()
    }

    /// Memory for the body of a request, 0 bytes at first.
    pub(crate) fn body(&self, caller: Caller) -> Memory {
        Memory(self.bodies.nothing(self.account(caller)))
    }

    /// Memory for an answer, 0 bytes at first.
    pub(crate) fn answer(&self, caller: Caller) -> Memory {
        Memory(self.answers.nothing(self.account(caller)))
    }

    fn account(&self, caller: Caller) -> Account {
        Account {
            partition: self.partition,
            caller,
        }
    }
}

/// Bytes that a request has reserved in the budget of the process, until dropped.
#[derive(Debug)]
pub(crate) struct Memory(BudgetShare);

impl Memory {
    /// Increases the reservation to at least `bytes` in total. The first [`FREE_BYTES`] are not
    /// counted.
    ///
    /// # Errors
    /// 503 if the reservation would exceed the share of the partition, the user or the address.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let counted = bytes.saturating_sub(FREE_BYTES);
        self.0.grow(counted.div_ceil(STEP_BYTES) * STEP_BYTES)
    }

    /// Whether no counted memory is reserved.
    pub(super) fn is_free(&self) -> bool {
        self.0.is_zero()
    }
}

/// A queue for work of one kind, with a limit on running and on waiting requests.
#[derive(Clone)]
pub(crate) struct Queue {
    running: Arc<Semaphore>,
    /// Permits for running and waiting requests together.
    places: Arc<Semaphore>,
    /// Maximum number of waiting requests.
    waiting_max: usize,
    /// Name of the work in messages, in the plural.
    kind: &'static str,
}

impl Queue {
    fn new(running: usize, waiting: usize, kind: &'static str) -> Self {
        Self {
            running: Arc::new(Semaphore::new(running)),
            places: Arc::new(Semaphore::new(running + waiting)),
            waiting_max: waiting,
            kind,
        }
    }

    /// Whether a request runs or waits in the queue: it holds a clone of the semaphore.
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.running) > 1
    }

    /// Number of waiting requests.
    pub(crate) fn waiting(&self) -> usize {
        let taken = self.waiting_max + self.running.available_permits();
        taken.saturating_sub(self.places.available_permits())
    }

    /// Waits for a permit to run, at most `patience`.
    ///
    /// # Errors
    /// 503 if too many requests wait already, or if `patience` expires.
    pub(crate) async fn turn(&self, patience: Duration) -> Result<AdmissionPermit, ApiError> {
        let busy = || ApiError::busy(&format!("Too many {} are waiting on this node", self.kind));
        let place = self
            .places
            .clone()
            .try_acquire_owned()
            .map_err(|_| busy())?;
        match timeout(patience, self.running.clone().acquire_owned()).await {
            Ok(Ok(running)) => Ok(AdmissionPermit {
                _permits: [running, place],
            }),
            _ => Err(busy()),
        }
    }
}

/// Permission to run one search or list, until dropped.
pub(crate) struct AdmissionPermit {
    _permits: [OwnedSemaphorePermit; 2],
}

/// A queue for requests of people, which run one at a time. Each user has one place in the queue,
/// and that user's further requests wait for this place. So a user with many requests delays
/// another user by one request only.
#[derive(Clone)]
pub(crate) struct UserQueue {
    all: Queue,
    /// For each user with a request, the queue for that user's place. Requests without a user have
    /// the key `None`.
    users: Arc<Mutex<HashMap<Option<u64>, Queue>>>,
}

impl UserQueue {
    fn new(kind: &'static str) -> Self {
        Self {
            all: Queue::new(1, PEOPLE_WAITING_MAX, kind),
            users: Arc::default(),
        }
    }

    /// Waits for the place of the user, at most `patience`.
    ///
    /// # Errors
    /// 503 if too many of the user's requests wait already, or if the place does not become free in
    /// time.
    pub(crate) async fn place(
        &self,
        caller: Caller,
        patience: Duration,
    ) -> Result<UserPlace, ApiError> {
        let own = {
            let mut users = self.users.lock();
            users.retain(|_, own| own.is_used());
            let new = || Queue::new(1, PEOPLE_WAITING_MAX, self.all.kind);
            users.entry(caller.user()).or_insert_with(new).clone()
        };
        Ok(UserPlace {
            _own: own.turn(patience).await?,
            all: self.all.clone(),
        })
    }

    /// Waits for the place of the user and then for a permit to run, in total at most `patience`.
    ///
    /// # Errors
    /// The errors of [`UserQueue::place`] and [`UserPlace::turn`].
    pub(crate) async fn turn(
        &self,
        caller: Caller,
        patience: Duration,
    ) -> Result<(UserPlace, AdmissionPermit), ApiError> {
        let begun = Instant::now();
        let place = self.place(caller, patience).await?;
        let turn = place.turn(patience.saturating_sub(begun.elapsed())).await?;
        Ok((place, turn))
    }
}

/// The place of one user in a [`UserQueue`], until dropped.
pub(crate) struct UserPlace {
    _own: AdmissionPermit,
    all: Queue,
}

impl UserPlace {
    /// Waits behind other users for a permit to run, at most `patience`.
    ///
    /// # Errors
    /// 503 if too many users wait already, or if `patience` expires.
    pub(crate) async fn turn(&self, patience: Duration) -> Result<AdmissionPermit, ApiError> {
        self.all.turn(patience).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(concurrency: usize, queue: usize, in_flight_bytes: usize) -> Admission {
        let mut settings = ApiSettings::default();
        settings.candidates.concurrency = concurrency;
        settings.candidates.queue = queue;
        settings.limits.in_flight_bytes = in_flight_bytes;
        Admission::new(&settings)
    }

    #[tokio::test]
    async fn searches_beyond_the_queue_are_refused() {
        let admission = Arc::new(admission(1, 1, 0));
        let patience = Duration::from_millis(50);
        let first = admission.searches.turn(patience).await.ok().unwrap();
        let (waits, refused_after) = tokio::join!(admission.searches.turn(patience), async {
            tokio::task::yield_now().await;
            let begun = tokio::time::Instant::now();
            assert!(
                admission
                    .searches
                    .turn(Duration::from_secs(60))
                    .await
                    .is_err()
            );
            begun.elapsed()
        });
        assert!(waits.is_err(), "the first one searches on");
        assert!(refused_after < Duration::from_secs(1));
        drop(first);
        assert!(admission.searches.turn(patience).await.is_ok());
    }

    #[tokio::test]
    async fn no_search_waits_behind_lists_and_no_list_behind_searches() {
        let admission = admission(2, 0, 0);
        let at_once = Duration::ZERO;
        let message = |refused: Result<AdmissionPermit, ApiError>| refused.err().unwrap().message;
        let _list = admission.lists.turn(at_once).await.ok().unwrap();
        let refused = message(admission.lists.turn(at_once).await);
        assert!(
            refused.starts_with("Too many long lists are waiting"),
            "{refused}"
        );
        let _searches = [
            admission.searches.turn(at_once).await.ok().unwrap(),
            admission.searches.turn(at_once).await.ok().unwrap(),
        ];
        let refused = message(admission.searches.turn(at_once).await);
        assert!(
            refused.starts_with("Too many candidate searches are waiting"),
            "{refused}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn user_who_asks_much_delays_another_by_one_turn() {
        let queue = UserQueue::new("explanations");
        let user = |id: &str| Caller::new(Some(id), None);
        let (busy, patience) = (user("busy"), Duration::from_secs(10));
        let first = queue.turn(busy, patience).await.ok().unwrap();
        let more: Vec<_> = (0..PEOPLE_WAITING_MAX)
            .map(|_| queue.clone())
            .map(|queue| async move { queue.turn(busy, patience).await.map(drop) })
            .collect();
        let mut more = Box::pin(futures::future::join_all(more));
        assert!(futures::poll!(&mut more).is_pending());
        let refused = queue.turn(busy, patience).await.err().unwrap();
        assert!(refused.message.contains("Too many explanations"));
        let mut other = Box::pin(queue.turn(user("other"), patience));
        assert!(futures::poll!(&mut other).is_pending());
        drop(first);
        assert!(futures::poll!(&mut other).is_ready(), "the next turn");
        for turn in more.await {
            turn.unwrap();
        }
        let again = queue.turn(user("other"), patience).await;
        assert_eq!(queue.users.lock().len(), 1, "the others are forgotten");
        drop(again);
    }

    #[test]
    fn bytes_come_back() {
        let admission = admission(1, 1, 20 * STEP_BYTES);
        let caller = |id: &str| Caller::new(Some(id), None);
        let [mut one, mut other] = ["one", "other"].map(|id| admission.answer(caller(id)));
        let steps = |count: usize| FREE_BYTES + count * STEP_BYTES;
        one.grow_to(1).unwrap();
        assert!(one.is_free());
        one.grow_to(steps(9)).unwrap();
        one.grow_to(2).unwrap();
        other.grow_to(steps(6)).unwrap_err();
        other.grow_to(steps(4)).unwrap();
        one.grow_to(steps(10)).unwrap_err();
        // Small requests are always admitted, and bodies have a memory budget of their own.
        admission.answer(caller("one")).grow_to(FREE_BYTES).unwrap();
        admission.body(caller("one")).grow_to(steps(10)).unwrap();
        drop(other);
        one.grow_to(steps(10)).unwrap();
        drop(one);
        admission
            .answer(caller("other"))
            .grow_to(steps(10))
            .unwrap();
    }
}
