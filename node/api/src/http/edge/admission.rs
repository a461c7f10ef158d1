//! What costs the whole process something for a while: searches, lists, and the bytes of bodies and answers.
//! So much is let in at once; what comes beyond it is refused at once, and may come again.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::settings::{ApiSettings, CandidateSettings};
use crate::http::errors::ApiError;

/// Bytes are counted in these.
const UNIT_BYTES: usize = 1024;
/// What each request may take without asking, so that large ones leave room for small ones. How much this
/// is in all follows from the number of connections.
const FREE_BYTES: usize = 64 * 1024;
/// So many questions of people wait for their turn, of each kind.
const PEOPLE_WAITING_MAX: usize = 8;
/// Streams of events at once, of all partitions.
const STREAMS_MAX: usize = 256;

/// What is let in.
#[derive(Clone)]
pub(crate) struct Admission {
    /// Searches for candidates: services wait for them.
    pub(crate) searches: Queue,
    /// Lists, which are mostly for monitoring: however many are asked for, no search waits behind them, and they
    /// get half of the processors that searches get.
    pub(crate) lists: Queue,
    /// Explanations, for people: one at a time.
    pub(crate) explanations: Queue,
    /// Reads of earlier moments: explanations have their turn while they wait for one.
    pub(crate) moments: Queue,
    /// Questions what would be if.
    pub(crate) what_ifs: Queue,
    /// Pieces of streams of events: however many streams there are, they get half of the processors that searches get.
    pub(crate) events: Queue,
    streams: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

impl Admission {
    pub(crate) fn new(settings: &ApiSettings) -> Self {
        let CandidateSettings {
            concurrency, queue, ..
        } = settings.candidates;
        Self {
            searches: Queue::new(concurrency, queue, "candidate searches"),
            lists: Queue::new(concurrency.div_ceil(2), queue, "long lists"),
            explanations: Queue::new(1, PEOPLE_WAITING_MAX, "explanations"),
            moments: Queue::new(1, PEOPLE_WAITING_MAX, "reads of an earlier moment"),
            what_ifs: Queue::new(1, PEOPLE_WAITING_MAX, "what-if questions"),
            events: Queue::new(concurrency.div_ceil(2), STREAMS_MAX, "streams of events"),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            bytes: Arc::new(Semaphore::new(settings.limits.in_flight_bytes / UNIT_BYTES)),
        }
    }

    /// The same for another partition: queues of its own, so that nothing waits behind what this one is asked, and
    /// the same bytes and places of streams, as the process has no more.
    pub(crate) fn for_partition(&self, settings: &ApiSettings) -> Self {
        Self {
            bytes: self.bytes.clone(),
            streams: self.streams.clone(),
            ..Self::new(settings)
        }
    }

    /// The place of a stream of events, until it is dropped.
    ///
    /// # Errors
    /// 503 if there are too many.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let place = self.streams.clone().try_acquire_owned();
        place.map_err(|_| {
            let reason =
                format!("This node has {STREAMS_MAX} streams of events, the most that it may");
            ApiError::busy(&reason)
        })
    }

    /// How many streams of events there are.
    pub(crate) fn streams_open(&self) -> usize {
        STREAMS_MAX - self.streams.available_permits()
    }

    /// Bytes that a request is about to take; none yet.
    pub(crate) fn bytes(&self) -> Held {
        let nothing = self.bytes.clone().try_acquire_many_owned(0);
        Held(nothing.expect("the semaphore is never closed"))
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

/// Bytes that a request takes of what the process has for all, until it is dropped.
pub(crate) struct Held(OwnedSemaphorePermit);

impl Held {
    /// Holds so many bytes in all, if it does not yet. The first of them are everybody's.
    ///
    /// # Errors
    /// 503 if others hold too many.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let counted = bytes.saturating_sub(FREE_BYTES).div_ceil(UNIT_BYTES);
        let more = counted.saturating_sub(self.0.num_permits());
        if more == 0 {
            return Ok(());
        }
        let all = self.0.semaphore().clone();
        let more = u32::try_from(more).ok();
        let taken = more.and_then(|more| all.try_acquire_many_owned(more).ok());
        self.0.merge(taken.ok_or_else(|| {
            ApiError::busy(
                "Other requests' bodies and answers take all the memory that there is for them",
            )
        })?);
        Ok(())
    }
}

/// An answer that holds its bytes until it is sent.
pub(super) struct HeldBody {
    pieces: VecDeque<Bytes>,
    left_bytes: u64,
    _held: Held,
}

impl HeldBody {
    pub(super) fn new(pieces: Vec<Bytes>, held: Held) -> Self {
        Self {
            left_bytes: pieces.iter().map(|piece| piece.len() as u64).sum(),
            pieces: pieces.into(),
            _held: held,
        }
    }
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = self.pieces.pop_front();
        self.left_bytes -= piece.as_ref().map_or(0, Bytes::len) as u64;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left_bytes)
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

    #[test]
    fn bytes_come_back() {
        let admission = admission(1, 1, 10 * UNIT_BYTES);
        let mut one = admission.bytes();
        let mut other = admission.bytes();
        let units = |count: usize| FREE_BYTES + count * UNIT_BYTES;
        one.grow_to(1).unwrap();
        one.grow_to(units(4)).unwrap();
        one.grow_to(2).unwrap();
        other.grow_to(units(7)).unwrap_err();
        other.grow_to(units(6)).unwrap();
        one.grow_to(units(5)).unwrap_err();
        // Who takes little is always let in.
        admission.bytes().grow_to(FREE_BYTES).unwrap();
        drop(other);
        one.grow_to(units(10)).unwrap();
        drop(one);
        admission.bytes().grow_to(units(10)).unwrap();
    }
}
