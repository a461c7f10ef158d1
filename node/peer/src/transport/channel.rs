//! The calling side of one connection to another node: many concurrent calls, each with a deadline.
//!
//! TCP may take minutes to report a broken connection. So if nothing arrives while an answer is
//! due, the connection is closed and all its calls fail; the next call opens a new connection.
//! While a long message is still being sent in pieces, the connection does not count as silent.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::future::Either;
use parking_lot::Mutex;
use placement_base::coverage::RarePath;
use placement_base::net::BoxStream;
use placement_base::record::{self, RecordVersion};
use placement_base::tasks::Tasks;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::damage::Damage;
use super::denied::Failure;
use super::frame::{Frame, Kind, UNANSWERED, UNWELCOMED_BYTES_MAX, piece_bytes};
use super::greeting::{Hello, VERSIONS, Welcome, records};
use super::joiner::Joiner;
use super::method::Method;
use super::packing::{Sent, pack};
use super::round_trips::RoundTrips;
use super::wire_io::{Outbox, outbox, read_frame, read_some, write_frame, write_frames};
use crate::tls::tls_reason;

/// How often an idle connection is pinged.
const IDLE_PING: Duration = Duration::from_secs(10);
/// First byte of the body of a request for a write.
const WRITE: u8 = Method::Write as u8;
/// A timeout shorter than this does not close the connection.
const PATIENCE_MIN: Duration = Duration::from_millis(100);

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The call was not sent.
    #[error("{0}")]
    NotSent(String),
    /// The other node rejects this node.
    #[error("refused: {0}")]
    Refused(String),
    /// The other node rejects this node because it was removed from the cluster.
    #[error("refused: {0}")]
    Removed(String),
    /// The call was sent, and its answer will not arrive.
    #[error("{0}")]
    Lost(String),
    /// No answer arrived within the call's deadline.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The other node answered that it cannot carry out the call.
    #[error("{0}")]
    Failed(String),
    /// The other node answered that it cannot decode the call.
    #[error("{0}")]
    Unreadable(String),
}

impl CallError {
    /// Whether the other node cannot have acted on the call.
    pub fn is_without_effect(&self) -> bool {
        matches!(
            self,
            Self::NotSent(_) | Self::Refused(_) | Self::Removed(_) | Self::Unreadable(_)
        )
    }
}

/// Measurements of a connection.
#[derive(Default)]
pub(crate) struct Extras {
    /// Receives the round trips of pings, if they are measured.
    pub(crate) round_trips: Option<Arc<RoundTrips>>,
    /// Counts bytes sent on the connection.
    pub(crate) sent: Arc<Sent>,
    /// Counts damaged frames that arrive on the connection.
    pub(crate) damage: Arc<Damage>,
}

/// An open connection. Clones share it.
#[derive(Clone)]
pub struct Channel {
    /// Version of the records that are sent.
    records: RecordVersion,
    outbox: Arc<Outbox>,
    calls: Arc<Mutex<Calls>>,
}

struct Calls {
    next: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Result<Bytes, CallError>>>,
    /// When something last arrived, or when the stream accepted bytes again after it had been full.
    alive: Instant,
    /// Since when an answer or a pong is due and nothing has arrived; `None` if nothing is due. The
    /// time continues even if no caller waits any more. Otherwise a sequence of calls with short
    /// deadlines would hide a dead connection.
    quiet_since: Option<Instant>,
    /// Whether a message without an answer was sent after the last ping.
    unanswered: bool,
    pings: Pings,
    closed: Option<String>,
}

/// The pings of one connection, which are answered in order.
#[derive(Default)]
struct Pings {
    sent: u64,
    answered: u64,
    /// The number of the ping whose round trip is being measured, and when it was sent. Only one at
    /// a time is measured.
    measured: Option<(u64, Instant)>,
}

impl Pings {
    fn sent(&mut self) {
        self.sent += 1;
        self.measured.get_or_insert((self.sent, Instant::now()));
    }

    /// Whether a ping is not answered yet.
    fn is_due(&self) -> bool {
        self.answered < self.sent
    }

    /// The round trip of the measured ping, if this is its answer.
    fn answered(&mut self) -> Option<Duration> {
        self.answered += 1;
        let (number, at) = self.measured?;
        (number == self.answered).then(|| {
            self.measured = None;
            at.elapsed()
        })
    }
}

impl Calls {
    /// Records that the other side is alive.
    fn note_life(&mut self) {
        let now = Instant::now();
        self.alive = now;
        let is_due = !self.waiting.is_empty() || self.pings.is_due();
        self.quiet_since = is_due.then_some(now);
    }

    /// Whether a queued frame must still be sent. A write whose caller no longer waits is dropped,
    /// to save the capacity of an overloaded path for other calls.
    fn is_needed(&self, frame: &Frame) -> bool {
        let is_write = frame.kind == Kind::Request && frame.body.first() == Some(&WRITE);
        !is_write || self.waiting.contains_key(&frame.call)
    }

    fn close(&mut self, reason: &str) {
        self.closed.get_or_insert_with(|| reason.to_owned());
        for (_, waiter) in std::mem::take(&mut self.waiting) {
            // This fails if the caller no longer waits.
            let _ = waiter.send(Err(CallError::Lost(format!("connection lost: {reason}"))));
        }
    }
}

/// A call that waits for its answer. Dropping this cancels the call.
pub(crate) struct PendingCall {
    id: u64,
    answer: oneshot::Receiver<Result<Bytes, CallError>>,
    calls: Arc<Mutex<Calls>>,
    /// Sends the cancellation to the other side when this is dropped. Set only for writes.
    gives_up: Option<Arc<Outbox>>,
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        let waited = self.calls.lock().waiting.remove(&self.id).is_some();
        if let Some(outbox) = self.gives_up.take().filter(|_| waited) {
            outbox.send(Frame::new(Kind::GivenUp, self.id, Bytes::new()));
        }
    }
}

impl PendingCall {
    /// Waits for the answer, at most until the connection is closed.
    pub(crate) async fn wait(&mut self) -> Result<Bytes, CallError> {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Lost("connection closed".to_owned())),
        }
    }
}

impl Channel {
    /// Sends the hello on a new stream. If the other node accepts it, serves the connection with
    /// tasks of `tasks`.
    pub(crate) async fn open(
        mut stream: BoxStream,
        hello: &Hello,
        silence: Duration,
        extras: Extras,
        tasks: &Tasks,
    ) -> Result<(Self, Welcome), CallError> {
        let welcome = timeout(silence, introduce(&mut stream, hello))
            .await
            .map_err(|_| {
                CallError::NotSent(format!("no answer to the hello within {silence:?}"))
            })??;
        let (outbox, queued) = outbox();
        let calls = Arc::new(Mutex::new(Calls {
            next: 1,
            waiting: BTreeMap::new(),
            alive: Instant::now(),
            quiet_since: None,
            unanswered: false,
            pings: Pings::default(),
            closed: None,
        }));
        let (read, write) = tokio::io::split(stream);
        let is_introduction = hello.introduction;
        let packs = !is_introduction && hello.region != welcome.region;
        let (writing, sent) = (calls.clone(), extras.sent.clone());
        tasks.spawn(async move {
            let prepare = |frame: Frame| {
                if !writing.lock().is_needed(&frame) {
                    return None;
                }
                let plain = frame.body.len();
                let frame = if packs { pack(frame) } else { frame };
                sent.note(plain, frame.body.len());
                Some(frame)
            };
            let progress = || writing.lock().note_life();
            let piece_bytes = piece_bytes(is_introduction);
            let written = write_frames(write, queued, piece_bytes, prepare, progress);
            if let Err(error) = written.await {
                writing.lock().close(&error.to_string());
            }
        });
        let reader = Reader {
            stream: read,
            calls: calls.clone(),
            outbox: Arc::downgrade(&outbox),
            joiner: Joiner::new(is_introduction),
            silence,
            node: welcome.node,
            extras,
        };
        tasks.spawn(reader.run());
        let channel = Self {
            records: records(welcome.version),
            outbox,
            calls,
        };
        Ok((channel, welcome))
    }

    /// Version of the records that are sent on this connection.
    pub fn records(&self) -> RecordVersion {
        self.records
    }

    /// Whether the connection is closed, so that new calls fail.
    pub(crate) fn is_closed(&self) -> bool {
        self.calls.lock().closed.is_some()
    }

    /// How long ago the frame that is now being written was queued.
    pub fn delay(&self) -> Duration {
        self.outbox.delay()
    }

    /// Sends a ping, which also measures the round trip.
    pub fn ping(&self) {
        ping(&self.calls, &self.outbox);
    }

    /// Closes the connection. All waiting calls fail with the reason.
    pub(crate) fn close(&self, reason: &str) {
        self.calls.lock().close(reason);
    }

    /// Queues a call for sending and returns immediately. Calls are sent in the order in which they
    /// are queued.
    pub(crate) fn begin(&self, method: Method, body: &[u8]) -> Result<PendingCall, CallError> {
        let bytes = [&[method as u8], body].concat();
        let (sender, answer) = oneshot::channel();
        let id = {
            // The lock is held until the waiter is registered, so that calls are numbered in the
            // order in which they are sent.
            let mut calls = self.calls.lock();
            let id = calls.next;
            self.queue(&calls, id, bytes)?;
            calls.next += 1;
            calls.waiting.insert(id, sender);
            calls.quiet_since.get_or_insert_with(Instant::now);
            id
        };
        Ok(PendingCall {
            id,
            answer,
            calls: self.calls.clone(),
            gives_up: (method == Method::Write).then(|| self.outbox.clone()),
        })
    }

    /// Sends a call that needs no answer and may be lost. If nothing arrives afterwards, a ping is
    /// sent, so that a dead connection is detected.
    pub(crate) fn tell(&self, method: Method, body: &[u8]) -> Result<(), CallError> {
        let bytes = [&[method as u8], body].concat();
        let mut calls = self.calls.lock();
        self.queue(&calls, UNANSWERED, bytes)?;
        calls.unanswered = true;
        Ok(())
    }

    /// Queues a call, unless the connection is closed.
    fn queue(&self, calls: &Calls, id: u64, bytes: Vec<u8>) -> Result<(), CallError> {
        if let Some(reason) = &calls.closed {
            return Err(CallError::NotSent(format!("connection closed: {reason}")));
        }
        if self.outbox.send(Frame::new(Kind::Request, id, bytes)) {
            Ok(())
        } else {
            Err(CallError::NotSent("connection closed".to_owned()))
        }
    }

    /// Makes a call and waits for its answer. If it times out and nothing else arrived in the
    /// meantime, the connection is closed.
    pub(crate) async fn call(
        &self,
        method: Method,
        body: &[u8],
        deadline: Duration,
    ) -> Result<Bytes, CallError> {
        let never = pending::<Infallible>();
        let Either::Right(answer) = self.call_unless(method, body, deadline, never).await?;
        Ok(answer)
    }

    /// Makes a call whose question and answer are records.
    pub(crate) async fn ask<Q: Serialize + Sync, A: DeserializeOwned>(
        &self,
        method: Method,
        question: &Q,
        deadline: Duration,
    ) -> Result<A, CallError> {
        let question = record::encode(self.records(), question);
        decode(&self.call(method, &question, deadline).await?)
    }

    /// Makes a call whose answer is no longer needed once `known` completes.
    pub async fn call_unless<T>(
        &self,
        method: Method,
        body: &[u8],
        deadline: Duration,
        known: impl Future<Output = T>,
    ) -> Result<Either<T, Bytes>, CallError> {
        let begun = Instant::now();
        let mut answer = self.begin(method, body)?;
        let waited = tokio::select! {
            biased;
            known = known => {
                answer.gives_up = None;
                return Ok(Either::Left(known));
            }
            waited = timeout(deadline, answer.wait()) => waited,
        };
        match waited {
            Ok(answer) => answer.map(Either::Right),
            Err(_) => {
                self.suspect(begun, deadline, &format!("{method:?} was not answered"));
                Err(CallError::Timeout(deadline))
            }
        }
    }

    /// Closes the connection if nothing has arrived since `begun`, unless the wait was shorter than
    /// [`PATIENCE_MIN`].
    pub(crate) fn suspect(&self, begun: Instant, waited: Duration, reason: &str) {
        let mut calls = self.calls.lock();
        if calls.alive <= begun && waited >= PATIENCE_MIN {
            calls.close(&format!(
                "{reason} within {waited:?}, and nothing else arrived"
            ));
        }
    }

    /// Reports to the other side that a stream of appends has ended.
    pub(crate) fn end_stream(&self, stream: u64) {
        // If the connection is closed, the stream has ended, too.
        self.outbox
            .send(Frame::new(Kind::StreamEnd, stream, Bytes::new()));
        // The message has no answer, so a ping checks that the connection is not dead.
        self.ping();
    }
}

fn ping(calls: &Mutex<Calls>, outbox: &Outbox) {
    // Queued under the lock, so that pings are counted in the order in which they are sent.
    let mut calls = calls.lock();
    if outbox.send(Frame::new(Kind::Ping, 0, Bytes::new())) {
        calls.pings.sent();
        calls.unanswered = false;
        calls.quiet_since.get_or_insert_with(Instant::now);
    }
}

async fn introduce(stream: &mut BoxStream, hello: &Hello) -> Result<Welcome, CallError> {
    // A node rejects the certificate of the caller after the caller has finished the handshake.
    let broken = |error: std::io::Error| {
        let reason = tls_reason(&error).unwrap_or_else(|| format!("hello failed: {error}"));
        CallError::NotSent(reason)
    };
    let frame = Frame::new(Kind::Hello, 0, record::encode_named(hello));
    write_frame(stream, &frame).await.map_err(broken)?;
    let mut buffer = BytesMut::new();
    let answer = read_frame(stream, &mut buffer, UNWELCOMED_BYTES_MAX)
        .await
        .map_err(broken)?
        .ok_or_else(|| CallError::NotSent("hello failed: connection closed".to_owned()))?;
    match answer.kind {
        Kind::Welcome => {
            let welcome: Welcome = record::decode(&answer.body)
                .map_err(|error| CallError::NotSent(format!("invalid welcome: {error}")))?;
            if !VERSIONS.contains(&welcome.version) {
                return Err(CallError::Refused(format!(
                    "it chose version {} of the protocol, which this node does not support",
                    welcome.version
                )));
            }
            Ok(welcome)
        }
        Kind::Refusal => Err(failure(&answer.body, CallError::Refused)),
        kind => Err(CallError::NotSent(format!(
            "the answer to the hello is a {kind:?} instead of a welcome"
        ))),
    }
}

/// Converts a [`Failure`] to an error of the kind `kind`, unless its flags select another kind.
fn failure(body: &[u8], kind: fn(String) -> CallError) -> CallError {
    match record::decode::<Failure>(body) {
        Ok(failure) if failure.removed => CallError::Removed(failure.message),
        Ok(failure) if failure.unreadable => CallError::Unreadable(failure.message),
        Ok(failure) => kind(failure.message),
        Err(error) => kind(error.to_string()),
    }
}

struct Reader {
    stream: tokio::io::ReadHalf<BoxStream>,
    calls: Arc<Mutex<Calls>>,
    /// Weak, so that the writing task ends when all other handles are dropped.
    outbox: Weak<Outbox>,
    joiner: Joiner,
    silence: Duration,
    /// The node on the other side.
    node: u64,
    extras: Extras,
}

impl Reader {
    async fn run(mut self) {
        let reason = match self.serve().await {
            Ok(reason) => reason,
            Err(error) => {
                self.extras.damage.note(self.node, &error);
                error.to_string()
            }
        };
        self.calls.lock().close(&reason);
    }

    /// Receives answers until the connection must be closed; returns the reason.
    async fn serve(&mut self) -> std::io::Result<String> {
        let mut buffer = BytesMut::new();
        let mut last_ping = Instant::now();
        loop {
            while let Some(message) = self.joiner.next(&mut buffer)? {
                self.take(message);
            }
            if let Some(reason) = self.calls.lock().closed.clone() {
                return Ok(reason);
            }
            let patience = self.silence / 4;
            match timeout(patience, read_some(&mut self.stream, &mut buffer)).await {
                Ok(Ok(true)) => self.calls.lock().note_life(),
                Ok(Ok(false)) => return Ok("closed by the other side".to_owned()),
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    let (quiet_since, unanswered) = {
                        let calls = self.calls.lock();
                        (calls.quiet_since, calls.unanswered)
                    };
                    let quiet = quiet_since.map(|since| since.elapsed());
                    if let Some(quiet) = quiet.filter(|quiet| *quiet > self.silence) {
                        RarePath::ConnectionSilent.ran();
                        return Ok(format!("silent for {quiet:?}"));
                    }
                    if quiet.is_some() || unanswered || last_ping.elapsed() > IDLE_PING {
                        last_ping = Instant::now();
                        match self.outbox.upgrade() {
                            Some(outbox) => ping(&self.calls, &outbox),
                            None => return Ok("no longer needed".to_owned()),
                        }
                    }
                }
            }
        }
    }

    fn take(&self, frame: Frame) {
        let answer = match frame.kind {
            Kind::Response => Ok(frame.body),
            Kind::Failure => Err(failure(&frame.body, CallError::Failed)),
            Kind::Pong => {
                let mut calls = self.calls.lock();
                let took = calls.pings.answered();
                if calls.waiting.is_empty() && !calls.pings.is_due() {
                    calls.quiet_since = None;
                }
                drop(calls);
                if let (Some(took), Some(round_trips)) = (took, &self.extras.round_trips) {
                    let shown = frame.body.first_chunk();
                    let shown = shown.map(|shown| i64::from_be_bytes(*shown));
                    round_trips.note(self.node, took, shown);
                }
                return;
            }
            _ => return,
        };
        if let Some(waiter) = self.calls.lock().waiting.remove(&frame.call) {
            let _ = waiter.send(answer);
        }
    }
}

/// Decodes the answer to a call.
pub fn decode<A: DeserializeOwned>(answer: &[u8]) -> Result<A, CallError> {
    record::decode(answer).map_err(|error| CallError::Failed(format!("the answer is {error}")))
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::super::greeting::samples;
    use super::*;

    /// Longer than a call's deadline, so that only one of the two can expire first.
    const SILENCE: Duration = Duration::from_millis(400);
    const DEADLINE: Duration = Duration::from_millis(200);

    /// A node that answers the hello and nothing else, like a node behind a dead path.
    async fn silent(extras: Extras) -> (Channel, DuplexStream, Tasks) {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let welcome = record::encode_named(&samples::welcome());
        let welcome = Frame::new(Kind::Welcome, 0, welcome);
        let tasks = Tasks::default();
        write_frame(&mut far, &welcome).await.unwrap();
        let hello = samples::hello();
        let opened = Channel::open(Box::new(near), &hello, SILENCE, extras, &tasks);
        let (channel, _) = opened.await.unwrap();
        (channel, far, tasks)
    }

    #[tokio::test]
    async fn silent_connection_is_closed_though_callers_give_up_early() {
        let (channel, _far, _tasks) = silent(Extras::default()).await;
        // Heartbeats with deadlines that are too short to close the connection, with pauses in
        // between.
        let begun = Instant::now();
        while begun.elapsed() < SILENCE * 3 {
            let deadline = Duration::from_millis(20);
            let _ = channel.call(Method::Append, &[], deadline).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(channel.is_closed());
    }

    #[tokio::test]
    async fn call_on_a_silent_connection_closes_it() {
        let (channel, _far, _tasks) = silent(Extras::default()).await;
        assert_eq!(
            channel.call(Method::Append, &[], DEADLINE).await,
            Err(CallError::Timeout(DEADLINE))
        );
        assert!(channel.is_closed());
    }

    #[tokio::test(start_paused = true)]
    async fn ping_measures_the_round_trip_by_its_own_answer() {
        let ways = Arc::<RoundTrips>::default();
        let extras = Extras {
            round_trips: Some(ways.clone()),
            ..Extras::default()
        };
        let (channel, mut far, _tasks) = silent(extras).await;
        // Two pings are under way: the first is measured, and its answer arrives first.
        channel.ping();
        tokio::time::sleep(Duration::from_millis(20)).await;
        channel.ping();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(ways.all().is_empty());
        let pong = Frame::new(Kind::Pong, 0, 7_000_000_i64.to_be_bytes().to_vec());
        for _ in 0..2 {
            write_frame(&mut far, &pong).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        let took = ways.all()[&2].least;
        assert!((30..32).contains(&took.as_millis()), "{took:?}");
        // The clock was read half a round trip (15 ms) before the pong, and the sleep took 1 ms.
        let shown = ways.clock_of(2).unwrap();
        assert!((7_015_000..7_018_000).contains(&shown), "{shown}");
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connection_is_kept_while_its_pings_are_answered() {
        let (channel, mut far, _tasks) = silent(Extras::default()).await;
        let mut buffer = BytesMut::new();
        let hello = read_frame(&mut far, &mut buffer, UNWELCOMED_BYTES_MAX).await;
        assert_eq!(hello.unwrap().unwrap().kind, Kind::Hello);
        for _ in 0..3 {
            let ping = read_frame(&mut far, &mut buffer, UNWELCOMED_BYTES_MAX).await;
            assert_eq!(ping.unwrap().unwrap().kind, Kind::Ping);
            let pong = Frame::new(Kind::Pong, 0, Bytes::new());
            write_frame(&mut far, &pong).await.unwrap();
            tokio::time::sleep(SILENCE * 3).await;
            assert!(!channel.is_closed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silent_connection_is_closed_although_no_call_expects_an_answer() {
        let (channel, _far, _tasks) = silent(Extras::default()).await;
        channel.tell(Method::Append, &[]).unwrap();
        tokio::time::sleep(SILENCE * 2).await;
        assert!(channel.is_closed());
    }

    /// If the connection stayed open, a leader that begins to use it would first wait for
    /// `silence_ms`.
    #[tokio::test(start_paused = true)]
    async fn idle_connection_with_an_unanswered_ping_is_closed() {
        let (channel, _far, _tasks) = silent(Extras::default()).await;
        tokio::time::sleep(IDLE_PING + SILENCE * 2).await;
        assert!(channel.is_closed());
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_loses_the_end_of_a_stream_is_closed() {
        let (channel, _far, _tasks) = silent(Extras::default()).await;
        channel.end_stream(1);
        tokio::time::sleep(SILENCE * 2).await;
        assert!(channel.is_closed());
    }
}
