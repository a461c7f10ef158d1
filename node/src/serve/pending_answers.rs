//! The answers that an HTTP/2 connection is sending, and the deadline for its client to read each.
//! Over HTTP/1 there is one at a time: [`PacedStream`](super::paced::PacedStream) watches it, and
//! hyper itself closes an idle connection.
//!
//! An HTTP/2 client controls by its windows how much of each answer is sent, so the socket does not
//! show its progress. An answer that is not read in time is reset. hyper cannot reset a stream once
//! hyper has the last piece of the answer, and that piece may wait in hyper's queue for a window.
//! So an answer counts as sent only once its last byte was sent, and an answer that stays overdue
//! ends the connection.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use placement_api::http::{GRACE, MIN_BYTES_PER_S};

/// Maximum size of a piece of an answer that is passed to hyper. Small, because hyper cannot reset
/// a stream once it has the last piece.
const PIECE_BYTES: usize = 16 * 1024;
/// How often to check whether all remaining answers are overdue.
const EVERY: Duration = Duration::from_secs(1);

/// The answers of a connection.
#[derive(Clone)]
pub(super) struct PendingAnswers(Arc<Mutex<AnswerDeadlines>>);

struct AnswerDeadlines {
    /// Deadlines by number; `None`: no deadline yet.
    due: BTreeMap<u64, Option<Instant>>,
    next: u64,
    /// When the last answer ended.
    idle_since: Instant,
}

/// An answer, until it is dropped.
pub(super) struct PendingAnswer {
    all: PendingAnswers,
    number: u64,
}

impl PendingAnswers {
    pub(super) fn none() -> Self {
        Self(Arc::new(Mutex::new(AnswerDeadlines {
            due: BTreeMap::new(),
            next: 0,
            idle_since: Instant::now(),
        })))
    }

    /// Registers an answer; also returns whether it is the only one.
    pub(super) fn begin(&self) -> (PendingAnswer, bool) {
        let mut answers = self.0.lock();
        let number = answers.next;
        answers.next += 1;
        answers.due.insert(number, None);
        let all = self.clone();
        (PendingAnswer { all, number }, answers.due.len() == 1)
    }

    /// Waits until the connection has been useless for `limit`: for that long, it had no answers or
    /// only overdue ones, or one answer has been overdue.
    pub(super) async fn useless_for(&self, limit: Duration) {
        loop {
            let now = Instant::now();
            let end = self.0.lock().useless_since(now).map(|since| since + limit);
            match end {
                Some(end) if end <= now => return,
                end => sleep_until(end.unwrap_or(now + limit)).await,
            }
        }
    }

    /// Waits until all remaining answers are overdue.
    pub(super) async fn only_overdue(&self) {
        while self.0.lock().any_awaited(Instant::now()) {
            sleep(EVERY).await;
        }
    }
}

impl AnswerDeadlines {
    fn any_awaited(&self, now: Instant) -> bool {
        let is_overdue = |due: &Option<Instant>| due.is_some_and(|due| due <= now);
        !self.due.values().all(is_overdue)
    }

    fn useless_since(&self, now: Instant) -> Option<Instant> {
        let overdue = || self.due.values().flatten().filter(|due| **due <= now);
        if self.any_awaited(now) {
            overdue().min().copied()
        } else {
            overdue().max().copied().max(Some(self.idle_since))
        }
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        let mut answers = self.all.0.lock();
        answers.due.remove(&self.number);
        answers.idle_since = Instant::now();
    }
}

impl PendingAnswer {
    /// Sets the deadline for the client to read the whole answer, and returns it.
    fn end_within(&self, within: Duration) -> Instant {
        let due = Instant::now() + within;
        self.all.0.lock().due.insert(self.number, Some(due));
        due
    }

    fn has_deadline(&self) -> bool {
        let answers = self.all.0.lock();
        answers.due.get(&self.number).is_some_and(Option::is_some)
    }

    /// Returns a body that ends this answer with its last byte, and the deadline of the answer:
    /// `within` or, by default, a time that depends on the length of the body. A stream has no
    /// deadline (`None`).
    pub(super) fn until_sent(
        self,
        body: Body,
        within: Option<Duration>,
    ) -> (Body, Option<Instant>) {
        let of_length = |bytes| GRACE + Duration::from_secs(bytes / MIN_BYTES_PER_S);
        let within = within.or_else(|| body.size_hint().exact().map(of_length));
        let due = within.map(|within| self.end_within(within));
        let sent = TrackedBody {
            body: Some(body),
            rest: Bytes::new(),
            answer: Arc::new(TrackedAnswer {
                answering: self,
                body: Mutex::default(),
            }),
        };
        (Body::new(sent), due)
    }
}

/// A body whose pieces keep a reference to their answer.
struct TrackedBody {
    /// The body, until this is dropped.
    body: Option<Body>,
    /// Received bytes that are not passed on yet.
    rest: Bytes,
    answer: Arc<TrackedAnswer>,
}

struct TrackedAnswer {
    answering: PendingAnswer,
    /// The whole body, once hyper no longer reads it. It is kept until the last piece was sent,
    /// because it counts for its caller until then.
    body: Mutex<Option<Body>>,
}

/// A piece of an answer.
struct TrackedChunk {
    bytes: Bytes,
    _answer: Arc<TrackedAnswer>,
}

impl AsRef<[u8]> for TrackedChunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let Some(body) = &mut self.body else {
                return Poll::Ready(None);
            };
            match ready!(Pin::new(body).poll_frame(cx)).transpose()? {
                Some(frame) => match frame.into_data() {
                    Ok(bytes) => {
                        let _answer = Arc::clone(&self.answer);
                        self.rest = Bytes::from_owner(TrackedChunk { bytes, _answer });
                    }
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        let mut hint = body.map_or_else(SizeHint::default, Body::size_hint);
        let rest = self.rest.len() as u64;
        match hint.upper() {
            Some(upper) => {
                hint.set_upper(upper + rest);
                hint.set_lower(hint.lower() + rest);
            }
            None => hint.set_lower(hint.lower() + rest),
        }
        hint
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        let answering = &self.answer.answering;
        if !answering.has_deadline() {
            answering.end_within(GRACE);
        }
        *self.answer.body.lock() = self.body.take();
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn connection_is_idle_from_the_end_of_its_last_answer() {
        let under_way = PendingAnswers::none();
        let begun = Instant::now();
        under_way.useless_for(LIMIT).await;
        assert_eq!(begun.elapsed(), LIMIT);

        let (one, is_first) = under_way.begin();
        let (other, is_second) = under_way.begin();
        assert!(is_first && !is_second);
        drop(other);
        let begun = Instant::now();
        let answered = async {
            sleep(4 * LIMIT).await;
            drop(one);
        };
        tokio::join!(answered, under_way.useless_for(LIMIT));
        assert_eq!(begun.elapsed(), 5 * LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn answer_and_its_body_end_with_its_last_piece() {
        struct Counted {
            _count: Arc<()>,
        }
        impl AsRef<[u8]> for Counted {
            fn as_ref(&self) -> &[u8] {
                b"answer"
            }
        }
        let under_way = PendingAnswers::none();
        let counted = Arc::new(());
        let bytes = Bytes::from_owner(Counted {
            _count: counted.clone(),
        });
        let (answering, _) = under_way.begin();
        let (mut body, due) = answering.until_sent(Body::from(bytes), None);
        assert_eq!(body.size_hint().exact(), Some(6));
        assert_eq!(due, Some(Instant::now() + GRACE));
        let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(body.is_end_stream());
        drop(body);
        assert!(under_way.0.lock().any_awaited(Instant::now()));
        assert_eq!(Arc::strong_count(&counted), 2);
        let part = piece.slice(5..);
        drop(piece);
        assert_eq!(under_way.0.lock().due.len(), 1, "one byte is left");
        drop(part);
        assert_eq!(under_way.0.lock().due.len(), 0);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn overdue_answer_makes_a_connection_useless_even_while_others_are_read() {
        let under_way = PendingAnswers::none();
        let (overdue, _) = under_way.begin();
        let (_body, due) = overdue.until_sent(Body::from("answer"), None);
        let (awaited, _) = under_way.begin();
        let begun = Instant::now();
        under_way.useless_for(LIMIT).await;
        assert!(begun.elapsed() <= GRACE + 2 * LIMIT);
        assert!(Instant::now() >= due.unwrap() + LIMIT);
        let ends = async {
            sleep(LIMIT).await;
            drop(awaited);
        };
        let begun = Instant::now();
        tokio::join!(ends, under_way.only_overdue());
        assert!(begun.elapsed() >= LIMIT, "the other one is waited for");
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_of_an_answer_follows_its_length_or_is_set() {
        let under_way = PendingAnswers::none();
        let until_sent = |body, within| under_way.begin().0.until_sent(body, within);
        let long = Body::from(vec![b' '; 20 * MIN_BYTES_PER_S as usize]);
        let (_long, due) = until_sent(long, None);
        let begun = Instant::now();
        assert_eq!(due, Some(begun + GRACE + Duration::from_secs(20)));
        let stream = || Body::from_stream(futures::stream::pending::<std::io::Result<Bytes>>());
        let (_, due) = until_sent(stream(), None);
        assert_eq!(due, None);
        let (_stream, due) = until_sent(stream(), Some(LIMIT));
        assert_eq!(due, Some(begun + LIMIT));
    }
}
