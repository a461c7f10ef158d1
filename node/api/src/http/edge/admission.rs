//! What costs the whole process something for a while: searches, lists, and the bytes of bodies and
//! answers. So much is let in at once; what comes beyond it is refused at once, and may come again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::budget::{Account, Budget, Caller, Held};
use super::settings::{ApiSettings, CandidateSettings};
use crate::http::errors::ApiError;

/// Bytes are taken in such steps.
const STEP_BYTES: usize = 4 * 1024;
/// What each request may take without asking, so that large ones leave room for small ones. How
/// much this is in all follows from the number of connections.
const FREE_BYTES: usize = 64 * 1024;
/// So many questions of people wait for their turn, of each kind; and as many more of each user
/// wait for its own.
const PEOPLE_WAITING_MAX: usize = 8;
/// Streams of events at once, of all partitions. One user alone may have half of them.
const STREAMS_MAX: usize = 512;

/// What is let in.
#[derive(Clone)]
pub(crate) struct Admission {
    /// Searches for candidates: services wait for them.
    pub(crate) searches: Queue,
    /// Lists, which are mostly for monitoring: however many are asked for, no search waits behind
    /// them, and they get half of the processors that searches get.
    pub(crate) lists: Queue,
    /// Explanations, for people: one at a time.
    pub(crate) explanations: UserQueue,
    /// Reads of earlier moments: explanations have their turn while they wait for one.
    pub(crate) moments: UserQueue,
    /// Questions what would be if.
    pub(crate) what_ifs: UserQueue,
    /// Pieces of streams of events: however many streams there are, they get half of the processors
    /// that searches get.
    pub(crate) events: Queue,
    streams: Arc<Budget>,
    bodies: Arc<Budget>,
    answers: Arc<Budget>,
    /// Whose share of these it is.
    partition: u64,
}

/// Numbers partitions: one that is created again under an old name has shares of its own.
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

    /// The same for another partition: queues of its own, so that nothing waits behind what this
    /// one is asked, and a share of the bytes and streams, as the process has no more.
    pub(crate) fn for_partition(&self, settings: &ApiSettings) -> Self {
        Self {
            streams: self.streams.clone(),
            bodies: self.bodies.clone(),
            answers: self.answers.clone(),
            ..Self::new(settings)
        }
    }

    /// The place of a stream of events, until it is dropped.
    ///
    /// # Errors
    /// 503 if its caller or its partition has its share of them.
    pub(crate) fn stream(&self, caller: Caller) -> Result<Held, ApiError> {
        let mut place = self.streams.nothing(self.account(caller));
        place.grow(1)?;
        Ok(place)
    }

    /// How many streams of events there are.
    pub(crate) fn streams_open(&self) -> usize {
        self.streams.taken()
    }

    /// Memory for the body of a request; none yet.
    pub(crate) fn body(&self, caller: Caller) -> Memory {
        Memory(self.bodies.nothing(self.account(caller)))
    }

    /// Memory for an answer; none yet.
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

/// Bytes that a request takes of what the process has for all, until it is dropped.
#[derive(Debug)]
pub(crate) struct Memory(Held);

impl Memory {
    /// Holds so many bytes in all, if it does not yet. The first of them are free.
    ///
    /// # Errors
    /// 503 if that exceeds the share of the partition, the user or the address.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let counted = bytes.saturating_sub(FREE_BYTES);
        self.0.grow(counted.div_ceil(STEP_BYTES) * STEP_BYTES)
    }

    /// Whether there is nothing to give back.
    pub(super) fn is_free(&self) -> bool {
        self.0.is_nothing()
    }
}

/// Where work of one kind waits for its turn.
#[derive(Clone)]
pub(crate) struct Queue {
    running: Arc<Semaphore>,
    /// What runs and what waits.
    places: Arc<Semaphore>,
    /// How many may wait.
    waiting_max: usize,
    /// What it is called, in the plural.
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

    /// Whether anyone has it besides the one who asks: as a turn, or to wait for one.
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.running) > 1
    }

    /// How many wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        let taken = self.waiting_max + self.running.available_permits();
        taken.saturating_sub(self.places.available_permits())
    }

    /// Waits for a turn, so long at most.
    ///
    /// # Errors
    /// 503 if too many wait already, or if its turn did not come.
    pub(crate) async fn turn(&self, patience: Duration) -> Result<Turn, ApiError> {
        let busy = || ApiError::busy(&format!("Too many {} are waiting on this node", self.kind));
        let place = self.places.clone().try_acquire_owned();
        let place = place.map_err(|_| busy())?;
        match timeout(patience, self.running.clone().acquire_owned()).await {
            Ok(Ok(running)) => Ok(Turn {
                _permits: [running, place],
            }),
            _ => Err(busy()),
        }
    }
}

/// The turn of a search or a list, until it is dropped.
pub(crate) struct Turn {
    _permits: [OwnedSemaphorePermit; 2],
}

/// Where questions of people wait for their turn, of which there is one at a time. A user has one
/// place: further questions of the same one wait behind it, so that a user who asks much delays
/// another one by one turn.
#[derive(Clone)]
pub(crate) struct UserQueue {
    all: Queue,
    /// Of each user that has a question here; `None`: of those that have no name.
    users: Arc<Mutex<HashMap<Option<u64>, Queue>>>,
}

impl UserQueue {
    fn new(kind: &'static str) -> Self {
        Self {
            all: Queue::new(1, PEOPLE_WAITING_MAX, kind),
            users: Arc::default(),
        }
    }

    /// Waits for the place of the user, so long at most.
    ///
    /// # Errors
    /// 503 if too many of the user's questions wait already, or if it was not free in time.
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

    /// Waits for a turn, so long at most.
    ///
    /// # Errors
    /// As [`UserQueue::place`] and [`UserPlace::turn`].
    pub(crate) async fn turn(
        &self,
        caller: Caller,
        patience: Duration,
    ) -> Result<(UserPlace, Turn), ApiError> {
        let begun = Instant::now();
        let place = self.place(caller, patience).await?;
        let turn = place.turn(patience.saturating_sub(begun.elapsed()));
        let turn = turn.await?;
        Ok((place, turn))
    }
}

/// The one place of a user, until it is dropped.
pub(crate) struct UserPlace {
    _own: Turn,
    all: Queue,
}

impl UserPlace {
    /// Waits for a turn among those of other users, so long at most.
    ///
    /// # Errors
    /// 503 if too many users wait already, or if its turn did not come.
    pub(crate) async fn turn(&self, patience: Duration) -> Result<Turn, ApiError> {
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
        let message = |refused: Result<Turn, ApiError>| refused.err().unwrap().message;
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
        // Who takes little is always let in, and bodies have memory of their own.
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
