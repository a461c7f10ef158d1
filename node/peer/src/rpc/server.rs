//! The answering side: accepts connections of other nodes, authenticates them, and hands their
//! calls to a [`Handler`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::future::BoxFuture;
use openraft::raft::AppendEntriesRequest;
use parking_lot::Mutex;
use placement_base::runtime;
use placement_model::types::Timestamp;
use placement_raft_store::TypeConfig;
use placement_raft_store::wire::{self, RecordVersion, WireError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::damage::Damage;
use super::denied::Denied;
use super::frame::{
    Frame, INTRODUCTION_BYTES_MAX, Kind, UNANSWERED, UNWELCOMED_BYTES_MAX, numbered,
};
use super::joiner::Joiner;
use super::log_throttle::LogThrottle;
use super::message::{self, Append, Hello, Method, VERSIONS, Welcome, WriteReply};
use super::wire_io::{Outbox, outbox, read_frame, read_some, write_frame, write_frames};
use crate::tls::{Admitted, Gate, Refused, Shown};
use placement_base::net::{BoxStream, Listener};
use placement_base::newest::Newest;
use placement_base::tasks::Tasks;

/// Deadline of an unauthenticated peer's hello.
const HELLO: Duration = Duration::from_secs(5);
/// A connection on which nothing arrives for this long is closed; callers ping more often.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Maximum number of open connections whose hello has not been answered.
const UNWELCOMED_MAX: usize = 64;
/// Deadline of an introduction: a joining node waits this long for its answer. The call itself must
/// arrive within [`HELLO`].
const INTRODUCTION: Duration = Duration::from_secs(35);
/// Maximum number of open introductions, and of concurrent calls on all of them.
const INTRODUCTIONS_MAX: usize = 64;
/// Maximum number of open connections of members: each member opens a few.
const MEMBERS_MAX: usize = 512;
/// Maximum number of concurrent calls on one connection, where a write counts until it is proposed;
/// further calls are not read yet.
const CALLS_MAX: usize = 8192;
/// Bytes of answers that may wait for their caller to read them; until then no more of its calls
/// are read.
const ANSWERS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How often to check whether a caller has read its answers.
const ANSWERS_PAUSE: Duration = Duration::from_millis(10);

/// One append of a stream, and where its answer goes.
pub struct StreamedAppend {
    append: Append,
    reply: Reply,
    connection: Arc<Connection>,
}

impl StreamedAppend {
    /// Whether it is not part of a stream. Only heartbeats are sent this way.
    pub fn is_alone(&self) -> bool {
        self.append.stream().is_none()
    }

    /// Decodes it. `None` ends the stream: the undecodable append has been answered.
    pub async fn read(self) -> Option<(AppendEntriesRequest<TypeConfig>, Reply)> {
        let append = self.append;
        let read = match append.entries_bytes() > runtime::limits().read_inline {
            true => runtime::blocking(|| append.into_request()).await,
            false => append.into_request(),
        };
        match read {
            Ok(request) => Some((request, self.reply)),
            Err(error) => {
                self.connection.unreadable(error, self.reply);
                None
            }
        }
    }
}

/// State of one connection, shared by the tasks that serve it.
struct Connection {
    caller: Caller,
    is_introduction: bool,
    handler: Arc<dyn Handler>,
    logged: Arc<LogThrottle>,
    /// Ends the connection when cancelled.
    end: CancellationToken,
}

impl Connection {
    /// Answers log entries that cannot be decoded: they are lost for this node, unless they are
    /// sent again.
    fn unreadable(&self, error: WireError, reply: Reply) {
        let peer = self.caller.node;
        let is_newer = matches!(error, WireError::Newer(_));
        if is_newer {
            self.handler.outgrown(peer, &error);
        } else if self.logged.is_due(peer, "damage") {
            tracing::error!(peer, %error, "log entries arrived damaged; closing the connection, \
                so that they are sent again");
        }
        reply.send(Err(Denied::Malformed(error)));
        if !is_newer {
            self.end.cancel();
        }
    }

    /// Rejects a call. The connection of a removed node ends.
    fn refuse(&self, denied: Denied, reply: Reply) {
        let (peer, reason) = (self.caller.node, denied.to_string());
        if self.logged.is_due(peer, &reason) {
            tracing::warn!(peer, reason, "rejected a peer's call");
        }
        let is_removed = matches!(denied, Denied::Removed { .. });
        reply.send(Err(denied));
        if is_removed {
            self.end.cancel();
        }
    }
}

/// Sends the answer to one call. If dropped unanswered, it tells the caller that the call was given
/// up.
pub struct Reply {
    /// Version of the records on its connection.
    pub records: RecordVersion,
    call: u64,
    outbox: Weak<Outbox>,
    /// Keeps the connection open for the answer.
    open: Option<Arc<Outbox>>,
}

impl Reply {
    pub fn send(mut self, answer: Result<Vec<u8>, Denied>) {
        self.answer(answer);
    }

    /// Leaves the call unanswered.
    fn leave(mut self) {
        self.outbox = Weak::new();
    }

    fn answer(&mut self, answer: Result<Vec<u8>, Denied>) {
        let outbox = std::mem::take(&mut self.outbox).upgrade();
        let Some(outbox) = outbox.filter(|_| self.call != UNANSWERED) else {
            return;
        };
        let frame = match answer {
            Ok(body) => Frame::new(Kind::Response, self.call, body),
            Err(denied) => {
                let failure = wire::encode(self.records, &denied.failure());
                Frame::new(Kind::Failure, self.call, failure)
            }
        };
        // A caller that has hung up needs no answer.
        outbox.send(frame);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.answer(Err(Denied::GivenUp));
    }
}

/// Answers the node that forwarded a write, only if the write is refused. If dropped, it answers
/// like [`Reply`]. It does not keep the connection open: a caller that closed it waits for no
/// answer.
pub struct Forwarder {
    reply: Reply,
    given_up: Arc<GivenUp>,
    /// The permit of its connection for a call, held until the write is proposed.
    permit: Option<OwnedSemaphorePermit>,
}

impl Forwarder {
    /// Whether the caller has stopped waiting.
    pub fn has_given_up(&self) -> bool {
        self.given_up.has(self.reply.call)
    }

    /// Notes that the write is proposed: further calls of the connection need not wait until it is
    /// committed.
    pub fn proposed(&mut self) {
        self.permit = None;
    }

    pub fn refuse(self, refused: Result<&WriteReply, Denied>) {
        let records = self.reply.records;
        let refused = refused.map(|refused| wire::encode(records, refused));
        self.reply.send(refused);
    }

    /// Notes that the write is committed, without an answer: the node sees it in the log.
    pub fn committed(self) {
        self.reply.leave();
    }
}

/// The writes of one connection that their caller has given up.
#[derive(Default)]
struct GivenUp {
    /// Whether the connection has ended.
    all: AtomicBool,
    /// The latest given-up calls, at most [`CALLS_MAX`]: some were proposed before, some never
    /// arrived.
    calls: Mutex<BTreeSet<u64>>,
}

impl GivenUp {
    fn note(&self, call: u64) {
        let mut calls = self.calls.lock();
        calls.insert(call);
        if calls.len() > CALLS_MAX {
            calls.pop_first();
        }
    }

    fn has(&self, call: u64) -> bool {
        self.all.load(Ordering::Relaxed) || self.calls.lock().contains(&call)
    }
}

/// The calling node and the encoding of its answers.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The caller's node number.
    pub node: u64,
    /// Version of the records on its connection.
    pub records: RecordVersion,
}

/// Handles the calls of other nodes.
pub trait Handler: Send + Sync + 'static {
    /// Welcomes a caller with this version of the protocol.
    fn greet(&self, hello: &Hello, version: u16) -> Result<Welcome, Denied>;

    /// Checks that a welcomed node may make this call now. A connection may outlive its node's
    /// membership.
    fn admits(&self, from: u64, method: Method) -> Result<(), Denied>;

    /// The wall clock of this node.
    fn clock(&self) -> Timestamp;

    /// Answers one call, with a record of the caller's version.
    fn call(
        &self,
        caller: Caller,
        method: Method,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Vec<u8>, Denied>>;

    /// Queues a write that another node forwards, or refuses it. Returns the remaining work if it
    /// takes longer than the reader of the connection may take.
    fn write(
        self: Arc<Self>,
        from: u64,
        body: &[u8],
        forwarder: Forwarder,
    ) -> Option<BoxFuture<'static, ()>>;

    /// Notes that a node sends log entries of a newer binary: this node must not continue without
    /// them.
    fn outgrown(&self, by: u64, error: &WireError);

    /// Handles the appends of one stream in order, until the stream ends.
    fn append_stream(
        &self,
        from: u64,
        appends: mpsc::UnboundedReceiver<StreamedAppend>,
    ) -> BoxFuture<'_, ()>;
}

/// A connection whose hello was answered.
struct Met {
    stream: BoxStream,
    /// Bytes that followed the hello.
    buffer: BytesMut,
    hello: Hello,
    version: u16,
}

/// State shared by all connections of one listener.
#[derive(Clone)]
struct Reception {
    gate: Gate,
    handler: Arc<dyn Handler>,
    /// The open connections, by authentication.
    unwelcomed: Arc<Newest>,
    introductions: Arc<Newest>,
    members: Arc<Newest>,
    /// Remaining concurrent calls on introductions.
    introduction_calls: Arc<Semaphore>,
    logged: Arc<LogThrottle>,
    damage: Arc<Damage>,
    tasks: Tasks,
}

/// Accepts connections until the tasks are stopped.
pub async fn serve(
    mut listener: Box<dyn Listener>,
    gate: Gate,
    handler: Arc<dyn Handler>,
    damage: Arc<Damage>,
    tasks: Tasks,
) {
    let reception = Reception::new(gate, handler, damage, tasks.clone());
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let reception = reception.clone();
                let permit = reception.unwelcomed.permit();
                tasks.spawn(async move {
                    let served = reception.connection(stream, address, permit);
                    if let Err(error) = served.await {
                        tracing::debug!(%address, %error, "connection of a peer ended");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of a peer");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

impl Reception {
    fn new(gate: Gate, handler: Arc<dyn Handler>, damage: Arc<Damage>, tasks: Tasks) -> Self {
        Self {
            gate,
            handler,
            unwelcomed: Arc::new(Newest::new(UNWELCOMED_MAX)),
            introductions: Arc::new(Newest::new(INTRODUCTIONS_MAX)),
            members: Arc::new(Newest::new(MEMBERS_MAX)),
            introduction_calls: Arc::new(Semaphore::new(INTRODUCTIONS_MAX)),
            logged: Arc::default(),
            damage,
            tasks,
        }
    }

    async fn connection(
        &self,
        stream: BoxStream,
        address: SocketAddr,
        permit: Arc<CancellationToken>,
    ) -> io::Result<()> {
        let met = permit.run_until_cancelled(self.meet(stream, address));
        let met = timeout(HELLO, met).await?.ok_or_else(crowded)??;
        let Some(met) = met else {
            return Ok(());
        };
        drop(permit);
        let from = met.hello.from;
        let served = if met.hello.introduction {
            let permit = self.introductions.permit();
            let served = permit.run_until_cancelled(self.serve(met));
            timeout(INTRODUCTION, served).await?
        } else {
            let permit = self.members.permit();
            permit.run_until_cancelled(self.serve(met)).await
        };
        served
            .ok_or_else(crowded)?
            .inspect_err(|error| self.damage.note(from, error))
    }

    /// Secures a connection and answers its hello; `None` if it is rejected.
    async fn meet(&self, stream: BoxStream, address: SocketAddr) -> io::Result<Option<Met>> {
        let (mut stream, shown) = match self.gate.admit(stream).await {
            Ok(Admitted { stream, shown, .. }) => (stream, shown),
            Err(Refused { reason, plain }) => {
                // A peer rejected here is unauthenticated, whatever its number.
                if self.logged.is_due(0, &reason) {
                    tracing::warn!(%address, reason, "rejected a connection to the port for \
                        other nodes");
                }
                if let Some(plain) = plain {
                    answer_plain(plain).await?;
                }
                return Ok(None);
            }
        };
        let mut buffer = BytesMut::new();
        let first = read_frame(&mut stream, &mut buffer, UNWELCOMED_BYTES_MAX).await;
        let hello = match first.inspect_err(|error| self.damage.note(0, error))? {
            Some(frame) if frame.kind == Kind::Hello => wire::decode::<Hello>(&frame.body)?,
            _ => return Err(io::Error::other("the first message is not a hello")),
        };
        let welcome = match self.greet(&hello, shown) {
            Ok(welcome) => welcome,
            Err(denied) => {
                let (peer, reason) = (hello.from, denied.to_string());
                if self.logged.is_due(peer, &reason) {
                    tracing::warn!(peer, %address, reason, "rejected a peer's connection");
                }
                let refusal = wire::encode_named(&denied.failure());
                write_frame(&mut stream, &Frame::new(Kind::Refusal, 0, refusal)).await?;
                return Ok(None);
            }
        };
        let body = wire::encode_named(&welcome);
        write_frame(&mut stream, &Frame::new(Kind::Welcome, 0, body)).await?;
        Ok(Some(Met {
            stream,
            buffer,
            hello,
            version: welcome.version,
        }))
    }

    /// Welcomes a node with the negotiated version.
    fn greet(&self, hello: &Hello, shown: Option<Shown>) -> Result<Welcome, Denied> {
        if shown.is_some_and(|shown| !shown.is_of_node(hello.from)) {
            let reason = format!("the certificate does not belong to node {}", hello.from);
            return Err(Denied::Refused(reason));
        }
        let version = hello.newest.min(*VERSIONS.end());
        if version < *VERSIONS.start() || version < hello.oldest {
            return Err(Denied::Refused(format!(
                "node {} supports versions {} to {} of the protocol, this node {} to {}: upgrade \
                one step at a time",
                hello.from,
                hello.oldest,
                hello.newest,
                VERSIONS.start(),
                VERSIONS.end()
            )));
        }
        self.handler.greet(hello, version)
    }

    /// Answers the calls of one connection until it ends.
    async fn serve(&self, mut met: Met) -> io::Result<()> {
        let is_introduction = met.hello.introduction;
        let (mut read, write) = tokio::io::split(met.stream);
        let (outbox, queued) = outbox();
        let piece_bytes = message::piece_bytes(is_introduction);
        let (stopped, written) = (CancellationToken::new(), CancellationToken::new());
        let (stop, all_written) = (stopped.clone().drop_guard(), written.clone());
        self.tasks.spawn(async move {
            let writing = write_frames(write, queued, piece_bytes, Some, || ());
            // The reading side notices a broken connection, too.
            let _ = stopped.run_until_cancelled(writing).await;
            written.cancel();
        });
        let end = CancellationToken::new();
        let mut calls = Calls {
            connection: Arc::new(Connection {
                caller: Caller {
                    node: met.hello.from,
                    records: message::records(met.version),
                },
                is_introduction,
                handler: self.handler.clone(),
                logged: self.logged.clone(),
                end: end.clone(),
            }),
            outbox,
            streams: BTreeMap::new(),
            permits: match is_introduction {
                true => self.introduction_calls.clone(),
                false => Arc::new(Semaphore::new(CALLS_MAX)),
            },
            given_up: Arc::default(),
            tasks: self.tasks.clone(),
        };
        let mut joiner = Joiner::new(is_introduction);
        let begun = Instant::now();
        let (mut alive, mut has_called) = (begun, false);
        loop {
            while let Some(message) = joiner.next(&mut met.buffer)? {
                has_called |= message.kind == Kind::Request;
                calls.take(message).await?;
            }
            let patience = match is_introduction && !has_called {
                true => HELLO.saturating_sub(begun.elapsed()),
                false => IDLE_MAX.saturating_sub(alive.elapsed()),
            };
            let more = end.run_until_cancelled(read_some(&mut read, &mut met.buffer));
            let Some(true) = timeout(patience, more).await?.transpose()? else {
                break;
            };
            alive = Instant::now();
        }
        drop(calls);
        // Queued answers are still sent, if the caller reads them.
        let _ = timeout(HELLO, all_written.cancelled()).await;
        drop(stop);
        Ok(())
    }
}

/// Answers the hello of a node that does not use TLS, and nothing else.
async fn answer_plain(mut stream: BoxStream) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    let first = read_frame(&mut stream, &mut buffer, UNWELCOMED_BYTES_MAX).await?;
    if first.is_some_and(|frame| frame.kind == Kind::Hello) {
        let denied = Denied::Refused(TLS_ONLY.to_owned());
        let refusal = wire::encode_named(&denied.failure());
        write_frame(&mut stream, &Frame::new(Kind::Refusal, 0, refusal)).await?;
    }
    Ok(())
}

const TLS_ONLY: &str = "this cluster accepts TLS only: set [peer] tls = \"require\" and [tls], \
    with a certificate for this node";

fn crowded() -> io::Error {
    io::Error::other("closed to make room for newer connections")
}

/// The calls of one connection.
struct Calls {
    connection: Arc<Connection>,
    outbox: Arc<Outbox>,
    streams: BTreeMap<u64, mpsc::UnboundedSender<StreamedAppend>>,
    /// Limits the calls that are carried out concurrently.
    permits: Arc<Semaphore>,
    /// A write that is given up before its proposal is never proposed.
    given_up: Arc<GivenUp>,
    tasks: Tasks,
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.given_up.all.store(true, Ordering::Relaxed);
    }
}

impl Calls {
    /// Handles one frame. An error ends the connection.
    async fn take(&mut self, frame: Frame) -> io::Result<()> {
        match frame.kind {
            Kind::Request => {
                self.answers_read().await?;
                self.request(frame.call, frame.body).await?;
            }
            Kind::Ping => {
                self.answers_read().await?;
                let shown = self.connection.handler.clock().0.to_be_bytes().to_vec();
                self.outbox.send(Frame::new(Kind::Pong, 0, shown));
            }
            Kind::GivenUp => self.given_up.note(frame.call),
            Kind::StreamEnd => {
                self.streams.remove(&frame.call);
            }
            Kind::Pong => {}
            kind => return Err(io::Error::other(format!("unexpected frame {kind:?}"))),
        }
        Ok(())
    }

    /// Waits until the caller has read enough of its answers to make room for more.
    async fn answers_read(&self) -> io::Result<()> {
        let begun = Instant::now();
        let bytes_max = match self.connection.is_introduction {
            true => INTRODUCTION_BYTES_MAX,
            false => ANSWERS_BYTES_MAX,
        };
        while self.outbox.waiting_bytes() > bytes_max {
            if begun.elapsed() > IDLE_MAX {
                let reason = "the caller does not read its answers";
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            sleep(ANSWERS_PAUSE).await;
        }
        Ok(())
    }

    async fn request(&mut self, call: u64, mut body: Bytes) -> io::Result<()> {
        let (caller, handler) = (self.connection.caller, &self.connection.handler);
        let mut reply = Reply {
            records: caller.records,
            call,
            outbox: Arc::downgrade(&self.outbox),
            open: Some(self.outbox.clone()),
        };
        let number = if body.is_empty() { 0 } else { body.get_u8() };
        let Some(method) = numbered::<Method>(number) else {
            reply.send(Err(Denied::UnknownMethod(number)));
            return Ok(());
        };
        if self.connection.is_introduction {
            if !method.is_introduction() {
                let denied = Denied::Misused("this call is for members of one cluster");
                reply.send(Err(denied));
                return Ok(());
            }
        } else if let Err(denied) = handler.admits(caller.node, method) {
            self.connection.refuse(denied, reply);
            return Ok(());
        }
        if method == Method::Append {
            match Append::read(body) {
                Ok(append) => self.append(append, reply),
                Err(error) => self.connection.unreadable(error, reply),
            }
            return Ok(());
        }
        let permit = (self.permits.clone().acquire_owned().await)
            .expect("the permits of a connection are never closed");
        let handler = handler.clone();
        if method == Method::Write {
            reply.open = None;
            let forwarder = Forwarder {
                reply,
                given_up: self.given_up.clone(),
                permit: Some(permit),
            };
            // In order, without a task for each.
            if let Some(rest) = handler.write(caller.node, &body, forwarder) {
                self.tasks.spawn(rest);
            }
            return Ok(());
        }
        self.tasks.spawn(async move {
            reply.send(handler.call(caller, method, body).await);
            drop(permit);
        });
        Ok(())
    }

    /// Appends of one stream go through one task, in order; others are handled like any call.
    fn append(&mut self, append: Append, reply: Reply) {
        let open = || {
            let (queue, appends) = mpsc::unbounded_channel();
            let handler = self.connection.handler.clone();
            let from = self.connection.caller.node;
            self.tasks
                .spawn(async move { handler.append_stream(from, appends).await });
            queue
        };
        let queue = match append.stream() {
            Some(number) => self.streams.entry(number).or_insert_with(open),
            None => &mut open(),
        };
        let sent = queue.send(StreamedAppend {
            append,
            reply,
            connection: self.connection.clone(),
        });
        if let Err(rejected) = sent {
            let denied = Denied::Misused("the stream of appends has ended");
            rejected.0.reply.send(Err(denied));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use futures::FutureExt;
    use futures::future::Either;
    use openraft::entry::RaftEntry;
    use placement_raft_store::wire::{WireEntry, WireLogId};
    use placement_raft_store::{Entry, Payload, Vote};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

    use super::*;
    use crate::rpc::channel::{CallError, Channel, Extras};
    use crate::rpc::message::AppendReply;
    use crate::rpc::message::samples::{hello, welcome};
    use crate::tls::Link;
    use crate::tls::fixtures::Authority;
    use placement_base::net::{Net, TokioNet};

    const PATIENCE: Duration = Duration::from_secs(10);
    /// A write whose outcome the caller sees by itself.
    const SEEN: &[u8] = b"seen";

    /// A node that accepts all entries that it can decode, and keeps all writes that are not
    /// committed.
    #[derive(Default)]
    struct Follower {
        outgrown: Mutex<Vec<(u64, WireError)>>,
        writes: Mutex<Vec<Forwarder>>,
        /// Whether callers were removed.
        removed: AtomicBool,
        damage: Arc<Damage>,
        appends: AtomicU64,
    }

    impl Follower {
        /// The kept writes whose callers wait.
        fn writes_under_way(&self) -> usize {
            let mut writes = self.writes.lock();
            writes.retain(|forwarder| !forwarder.has_given_up());
            writes.len()
        }
    }

    impl Handler for Follower {
        fn greet(&self, _: &Hello, _: u16) -> Result<Welcome, Denied> {
            Ok(welcome())
        }

        fn admits(&self, from: u64, method: Method) -> Result<(), Denied> {
            match self.removed.load(Ordering::Relaxed) {
                true => Err(Denied::Removed {
                    node: from,
                    index: 7,
                }),
                false if method == Method::Admin => Err(Denied::NotAMember {
                    node: from,
                    index: 7,
                }),
                false => Ok(()),
            }
        }

        fn clock(&self) -> Timestamp {
            Timestamp(7)
        }

        fn call(
            &self,
            _: Caller,
            method: Method,
            body: Bytes,
        ) -> BoxFuture<'_, Result<Vec<u8>, Denied>> {
            assert_ne!(method, Method::Write, "writes are queued");
            Box::pin(async move { Ok(body.len().to_string().into_bytes()) })
        }

        fn write(
            self: Arc<Self>,
            _: u64,
            body: &[u8],
            forwarder: Forwarder,
        ) -> Option<BoxFuture<'static, ()>> {
            match body == SEEN {
                true => forwarder.committed(),
                false => self.writes.lock().push(forwarder),
            }
            None
        }

        fn outgrown(&self, by: u64, error: &WireError) {
            self.outgrown.lock().push((by, error.clone()));
        }

        fn append_stream(
            &self,
            _: u64,
            mut appends: mpsc::UnboundedReceiver<StreamedAppend>,
        ) -> BoxFuture<'_, ()> {
            Box::pin(async move {
                while let Some(append) = appends.recv().await {
                    self.appends.fetch_add(1, Ordering::Relaxed);
                    let Some((request, reply)) = append.read().await else {
                        return;
                    };
                    let last = request.entries.last().map(|entry| (&entry.log_id).into());
                    let answer = wire::encode(reply.records, &AppendReply::Flushed(last));
                    reply.send(Ok(answer));
                }
            })
        }
    }

    async fn connect(follower: &Arc<Follower>, tasks: &Tasks) -> Channel {
        let (near, far) = tokio::io::duplex(1 << 20);
        receive(follower, far, tasks);
        welcomed(near, PATIENCE, tasks).await
    }

    fn receive(follower: &Arc<Follower>, stream: DuplexStream, tasks: &Tasks) {
        tasks.spawn(served(Gate::Plain, follower, stream, tasks));
    }

    /// Serves one connection to its end.
    fn served(
        gate: Gate,
        follower: &Arc<Follower>,
        stream: DuplexStream,
        tasks: &Tasks,
    ) -> impl Future<Output = ()> + use<> {
        let address = SocketAddr::from(([192, 0, 2, 1], 8779));
        let damage = follower.damage.clone();
        let reception = Reception::new(gate, follower.clone(), damage, tasks.clone());
        async move {
            let permit = reception.unwelcomed.permit();
            let _ = reception
                .connection(Box::new(stream), address, permit)
                .await;
        }
    }

    async fn welcomed(stream: DuplexStream, silence: Duration, tasks: &Tasks) -> Channel {
        let hello = hello();
        let opened =
            Channel::open(Box::new(stream), &hello, silence, Extras::default(), tasks).await;
        opened.unwrap().0
    }

    /// Sends these bytes: the connection ends, or they are answered. A panic would fail the test.
    async fn sent(bytes: &[u8], welcomed_first: bool) {
        let tasks = Tasks::here();
        let follower: Arc<Follower> = Arc::default();
        let (mut near, far) = tokio::io::duplex(1 << 20);
        let served = served(Gate::Plain, &follower, far, &tasks);
        let peer = async {
            if welcomed_first {
                let hello = wire::encode_named(&hello());
                let frame = Frame::new(Kind::Hello, 0, hello);
                near.write_all(&encoded(&frame)).await.unwrap();
            }
            // The connection may be closed by then.
            let _ = near.write_all(bytes).await;
            let _ = near.shutdown().await;
            let _ = near.read_to_end(&mut Vec::new()).await;
        };
        let _ = tokio::join!(served, peer);
        tasks.stop().await;
    }

    fn encoded(frame: &Frame) -> Vec<u8> {
        let mut bytes = BytesMut::new();
        frame.write(&mut bytes);
        bytes.to_vec()
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(work)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn any_bytes_of_an_unauthenticated_peer_are_survived(bytes in vec(any::<u8>(), 0..600)) {
            run(sent(&bytes, false));
        }

        #[test]
        fn any_frames_after_a_hello_are_survived(
            frames in vec((1..13_u8, 0..4_u64, 0..16_u8, vec(any::<u8>(), 0..200)), 0..12),
            noise in vec(any::<u8>(), 0..40),
        ) {
            let mut bytes = Vec::new();
            for (kind, call, method, body) in frames {
                let kind = numbered(kind).expect("these kinds exist");
                let body = [&[method], &body[..]].concat();
                bytes.extend(encoded(&Frame::new(kind, call, body)));
            }
            bytes.extend(noise);
            run(sent(&bytes, true));
        }
    }

    /// A network on which the follower is reached by TLS.
    struct Secured {
        follower: Arc<Follower>,
        gate: Gate,
        tasks: Tasks,
    }

    impl Net for Secured {
        fn bind<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
            unreachable!("this test does not listen")
        }

        fn connect<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
            let (near, far) = tokio::io::duplex(1 << 16);
            let served = served(self.gate.clone(), &self.follower, far, &self.tasks);
            self.tasks.spawn(served);
            Box::pin(async move { Ok(Box::new(near) as BoxStream) })
        }
    }

    #[tokio::test]
    async fn certificate_is_valid_for_its_own_node_only() {
        let tasks = Tasks::here();
        let authority = Authority::new();
        let net = Arc::new(Secured {
            follower: Arc::default(),
            gate: Gate::Tls {
                certificates: authority.node(2),
                plain_too: false,
            },
            tasks: tasks.clone(),
        });
        // All of them claim to be node 1.
        let others = Authority::new();
        for (certificates, to, welcome) in [
            (authority.node(1), Some(2), true),
            (authority.node(1), None, true),
            (authority.node(1), Some(3), false),
            (authority.node(3), Some(2), false),
            (others.node(1), Some(2), false),
        ] {
            let link = Link::new(net.clone(), Some(certificates));
            let connected = link.connect("node 2", to).await;
            let opened = match connected {
                Ok((stream, _)) => {
                    Channel::open(stream, &hello(), PATIENCE, Extras::default(), &tasks)
                        .await
                        .ok()
                }
                Err(_) => None,
            };
            assert_eq!(opened.is_some(), welcome, "to {to:?}");
        }
        let plain = Link::new(net, None).connect("node 2", Some(2)).await;
        let (stream, _) = plain.unwrap();
        assert!(
            Channel::open(stream, &hello(), PATIENCE, Extras::default(), &tasks)
                .await
                .is_err()
        );
        tasks.stop().await;
    }

    /// Transfers this many bytes per second, and buffers few.
    async fn thin_path(
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        bytes_per_s: usize,
    ) {
        const EVERY: Duration = Duration::from_millis(5);
        let mut bytes = vec![0; bytes_per_s / 200];
        loop {
            let Ok(length @ 1..) = from.read(&mut bytes).await else {
                return;
            };
            sleep(EVERY).await;
            if to.write_all(&bytes[..length]).await.is_err() {
                return;
            }
        }
    }

    #[tokio::test]
    async fn slow_upload_keeps_its_connection() {
        const SILENCE: Duration = Duration::from_millis(300);
        let (follower, tasks) = (Arc::default(), Tasks::default());
        let (near, near_end) = tokio::io::duplex(64 * 1024);
        let (far_end, far) = tokio::io::duplex(64 * 1024);
        let (near_read, near_write) = tokio::io::split(near_end);
        let (far_read, far_write) = tokio::io::split(far_end);
        tasks.spawn(thin_path(near_read, far_write, 2 << 20));
        tasks.spawn(thin_path(far_read, near_write, 2 << 20));
        receive(&follower, far, &tasks);
        let channel = welcomed(near, SILENCE, &tasks).await;
        let begun = Instant::now();
        let body = vec![7; 3 << 20];
        let answer = channel.call(Method::Probe, &body, PATIENCE).await.unwrap();
        assert_eq!(answer, body.len().to_string().as_bytes());
        assert!(begun.elapsed() > 3 * SILENCE, "the path is not thin");
    }

    #[tokio::test]
    async fn write_ends_when_it_is_given_up_or_its_connection_is_closed() {
        let (follower, tasks) = (Arc::default(), Tasks::default());
        let under_way = async |count| {
            let begun = Instant::now();
            while Follower::writes_under_way(&follower) != count {
                assert!(begun.elapsed() < PATIENCE, "not {count} writes under way");
                sleep(Duration::from_millis(2)).await;
            }
        };
        let (near, far) = tokio::io::duplex(1 << 20);
        receive(&follower, far, &tasks);
        let connection = Tasks::default();
        let channel = welcomed(near, PATIENCE, &connection).await;
        let kept = channel.begin(Method::Write, &[]).unwrap();
        let given_up = channel.begin(Method::Write, &[]).unwrap();
        under_way(2).await;
        drop(given_up);
        under_way(1).await;
        connection.stop().await;
        under_way(0).await;
        drop(kept);
    }

    #[tokio::test]
    async fn write_that_is_refused_or_dropped_is_answered() {
        let (follower, tasks) = (Arc::<Follower>::default(), Tasks::default());
        let channel = connect(&follower, &tasks).await;
        let mut refused = channel.begin(Method::Write, &[]).unwrap();
        let mut dropped = channel.begin(Method::Write, &[]).unwrap();
        // Everything sent before this answer has been queued.
        channel.call(Method::Probe, &[], PATIENCE).await.unwrap();
        let mut writes = std::mem::take(&mut *follower.writes.lock()).into_iter();
        let first = writes.next().unwrap();
        first.refuse(Ok(&WriteReply::NotLeader));
        let refused: WriteReply = wire::decode(&refused.wait().await.unwrap()).unwrap();
        assert!(matches!(refused, WriteReply::NotLeader), "{refused:?}");
        drop(writes);
        assert!(matches!(dropped.wait().await, Err(CallError::Failed(_))));
    }

    #[test]
    fn number_of_remembered_given_up_calls_is_bounded() {
        let given_up = GivenUp::default();
        let last = 3 * CALLS_MAX as u64;
        (1..=last).for_each(|call| given_up.note(call));
        assert_eq!(given_up.calls.lock().len(), CALLS_MAX);
        assert!(given_up.has(last) && !given_up.has(1) && !given_up.has(last + 1));
    }

    #[tokio::test]
    async fn write_with_a_known_outcome_is_neither_answered_nor_given_up() {
        let (follower, tasks) = (Arc::default(), Tasks::default());
        let channel = connect(&follower, &tasks).await;
        let mut committed = channel.begin(Method::Write, SEEN).unwrap();
        let known = async {
            while Follower::writes_under_way(&follower) != 1 {
                sleep(Duration::from_millis(2)).await;
            }
        };
        let seen = channel.call_unless(Method::Write, &[], PATIENCE, known);
        assert!(matches!(seen.await, Ok(Either::Left(()))));
        // Everything sent before this answer has arrived.
        channel.call(Method::Probe, &[], PATIENCE).await.unwrap();
        assert!(committed.wait().now_or_never().is_none());
        assert_eq!(follower.writes_under_way(), 1);
        assert!(!channel.is_closed());
    }

    #[tokio::test]
    async fn silent_unauthenticated_connections_do_not_block_members() {
        let (follower, tasks) = (Arc::<Follower>::default(), Tasks::default());
        let listener = TokioNet.bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let damage = Arc::default();
        tasks.spawn(serve(
            listener,
            Gate::Plain,
            follower,
            damage,
            tasks.clone(),
        ));
        let mut silent = Vec::new();
        for _ in 0..3 * UNWELCOMED_MAX {
            silent.push(TokioNet.connect(&address).await.unwrap());
        }
        // The oldest connections had to be closed, long before the deadline of their hello.
        let begun = Instant::now();
        let mut byte = [0];
        for gone in silent.iter_mut().take(UNWELCOMED_MAX) {
            assert!(!matches!(gone.read(&mut byte).await, Ok(1..)));
        }
        assert!(begun.elapsed() < HELLO / 2, "they kept their places");

        let stream = TokioNet.connect(&address).await.unwrap();
        let hello = hello();
        Channel::open(stream, &hello, PATIENCE, Extras::default(), &tasks)
            .await
            .unwrap();
        // An unauthenticated peer may only send short frames.
        let mut peer = TokioNet.connect(&address).await.unwrap();
        let length = (UNWELCOMED_BYTES_MAX as u32 + 1).to_be_bytes();
        peer.write_all(&length).await.unwrap();
        assert!(!matches!(peer.read(&mut byte).await, Ok(1..)));
    }

    #[tokio::test]
    async fn connection_of_a_removed_node_is_refused_and_closed() {
        let (follower, tasks) = (Arc::<Follower>::default(), Tasks::default());
        let channel = connect(&follower, &tasks).await;
        let order = channel.call(Method::Admin, &[], PATIENCE).await;
        assert!(
            matches!(order, Err(CallError::Failed(_))),
            "not known as a member: {order:?}"
        );
        channel.call(Method::Probe, &[], PATIENCE).await.unwrap();
        follower.removed.store(true, Ordering::Relaxed);
        for method in [Method::Append, Method::Vote, Method::Operate, Method::Write] {
            let channel = match channel.is_closed() {
                true => connect(&follower, &tasks).await,
                false => channel.clone(),
            };
            let refused = channel.call(method, &[], PATIENCE).await.unwrap_err();
            let CallError::Removed(words) = refused else {
                panic!("{method:?}: {refused:?}")
            };
            assert!(words.starts_with("node 1 was removed"), "{words}");
            let begun = Instant::now();
            while !channel.is_closed() {
                assert!(begun.elapsed() < PATIENCE, "the connection is kept");
                sleep(Duration::from_millis(5)).await;
            }
        }
    }

    #[tokio::test]
    async fn damaged_frame_closes_the_connection_unread() {
        let (follower, tasks) = (Arc::<Follower>::default(), Tasks::here());
        let (body, _) = append(RecordVersion::NEWEST);
        let call = [&[Method::Append as u8], &body[..]].concat();
        let call = encoded(&Frame::new(Kind::Request, 1, call));
        let mut hello_frame = encoded(&Frame::new(Kind::Hello, 0, wire::encode_named(&hello())));
        for bit in (0..8 * call.len()).step_by(5) {
            let (mut near, far) = tokio::io::duplex(1 << 16);
            receive(&follower, far, &tasks);
            near.write_all(&hello_frame).await.unwrap();
            let mut damaged = call.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            near.write_all(&damaged).await.unwrap();
            // The other side closes the connection after nothing but the welcome.
            let mut answers = Vec::new();
            let ended = timeout(PATIENCE, near.read_to_end(&mut answers)).await;
            ended.expect("the connection is kept").unwrap();
            let mut answers = BytesMut::from(&answers[..]);
            let welcome = Frame::read(&mut answers, UNWELCOMED_BYTES_MAX).unwrap();
            assert_eq!(welcome.unwrap().kind, Kind::Welcome);
            assert!(answers.is_empty(), "bit {bit}");
        }
        assert_eq!(follower.appends.load(Ordering::Relaxed), 0);
        let damaged = follower.damage.frames();
        assert!(damaged > call.len() as u64, "{damaged}");

        // A damaged hello, and a damaged answer.
        *hello_frame.last_mut().unwrap() ^= 1;
        let (mut near, far) = tokio::io::duplex(1 << 16);
        receive(&follower, far, &tasks);
        near.write_all(&hello_frame).await.unwrap();
        assert_eq!(near.read_to_end(&mut Vec::new()).await.unwrap(), 0);
        assert_eq!(follower.damage.frames(), damaged + 1);

        let (near, mut far) = tokio::io::duplex(1 << 16);
        let welcome = wire::encode_named(&welcome());
        write_frame(&mut far, &Frame::new(Kind::Welcome, 0, welcome))
            .await
            .unwrap();
        let extras = Extras::default();
        let damage = extras.damage.clone();
        let opened = Channel::open(Box::new(near), &hello(), PATIENCE, extras, &tasks).await;
        let (channel, _) = opened.unwrap();
        let mut answer = encoded(&Frame::new(Kind::Response, 1, vec![1, 2, 3]));
        *answer.last_mut().unwrap() ^= 1;
        let mut call = channel.begin(Method::Probe, &[]).unwrap();
        far.write_all(&answer).await.unwrap();
        let lost = call.wait().await.unwrap_err();
        assert!(lost.to_string().contains("arrived damaged"), "{lost}");
        assert_eq!(damage.frames(), 1);
        tasks.stop().await;
    }

    /// A welcomed connection for an introduction.
    async fn introduced(follower: &Arc<Follower>, tasks: &Tasks) -> DuplexStream {
        let hello = Hello {
            introduction: true,
            ..hello()
        };
        greeted(follower, hello, tasks).await
    }

    async fn greeted(follower: &Arc<Follower>, hello: Hello, tasks: &Tasks) -> DuplexStream {
        let (mut near, far) = tokio::io::duplex(16 * 1024);
        receive(follower, far, tasks);
        let hello = wire::encode_named(&hello);
        write_frame(&mut near, &Frame::new(Kind::Hello, 0, hello))
            .await
            .unwrap();
        let mut buffer = BytesMut::new();
        let welcome = read_frame(&mut near, &mut buffer, UNWELCOMED_BYTES_MAX).await;
        assert_eq!(welcome.unwrap().unwrap().kind, Kind::Welcome);
        near
    }

    #[tokio::test]
    async fn introduction_takes_little_memory_whatever_it_announces() {
        const ANNOUNCED: usize = 90 << 20;
        let (follower, tasks) = (Arc::<Follower>::default(), Tasks::here());
        let begun = |kind: Kind| {
            let frame = encoded(&Frame::new(kind, 1, vec![0; ANNOUNCED]));
            frame[..1 << 20].to_vec()
        };
        let piece = encoded(&Frame::new(Kind::Piece, 1, vec![0; 1024]));
        for (what, bytes) in [
            ("a long call", begun(Kind::Request)),
            ("a long piece", begun(Kind::Piece)),
            ("short pieces without end", piece.repeat(1024)),
        ] {
            let mut near = introduced(&follower, &tasks).await;
            let mut taken = 0;
            while let Ok(more @ 1..) = near.write(&bytes[taken..]).await {
                taken += more;
            }
            assert!(taken <= 2 * INTRODUCTION_BYTES_MAX, "{what}: {taken} bytes");
        }
        // A short call is answered.
        let mut near = introduced(&follower, &tasks).await;
        let call = Frame::new(Kind::Request, 1, vec![Method::Probe as u8, 7, 7]);
        write_frame(&mut near, &call).await.unwrap();
        let answer = read_frame(&mut near, &mut BytesMut::new(), UNWELCOMED_BYTES_MAX).await;
        assert_eq!(&answer.unwrap().unwrap().body[..], b"2");
        tasks.stop().await;
    }

    #[tokio::test]
    async fn caller_that_reads_no_answers_is_not_read_further() {
        let (follower, tasks) = (Arc::<Follower>::default(), Tasks::here());
        let mut near = introduced(&follower, &tasks).await;
        let pings = encoded(&Frame::new(Kind::Ping, 0, Bytes::new())).repeat(1 << 20);
        let mut taken = 0;
        let patience = Duration::from_millis(300);
        while let Ok(Ok(more @ 1..)) = timeout(patience, near.write(&pings[taken..])).await {
            taken += more;
        }
        assert!(taken <= 4 * INTRODUCTION_BYTES_MAX, "{taken} bytes");
        tasks.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn slow_introduction_ends_at_its_deadline() {
        let (follower, tasks) = (Arc::<Follower>::default(), Tasks::here());
        for (calls_first, ends_after) in [(false, HELLO), (true, INTRODUCTION)] {
            let mut near = introduced(&follower, &tasks).await;
            let begun = Instant::now();
            if calls_first {
                let call = Frame::new(Kind::Request, 1, vec![Method::Probe as u8]);
                write_frame(&mut near, &call).await.unwrap();
            }
            // The head of a call that never ends, one byte per second.
            let mut bytes = encoded(&Frame::new(Kind::Request, 2, vec![0; 60_000])).into_iter();
            while near.write_u8(bytes.next().unwrap()).await.is_ok() {
                sleep(Duration::from_secs(1)).await;
            }
            let took = begun.elapsed();
            assert!(took >= ends_after && took < ends_after + HELLO, "{took:?}");
        }
        tasks.stop().await;
    }

    /// A call with one log entry, and the offset of the entry's record.
    fn append(version: RecordVersion) -> (Vec<u8>, usize) {
        append_of(version, None)
    }

    fn append_of(version: RecordVersion, stream: Option<u64>) -> (Vec<u8>, usize) {
        let id = WireLogId {
            term: 1,
            node: 1,
            index: 7,
        };
        let request = AppendEntriesRequest {
            vote: Vote::new_committed(1, 1),
            prev_log_id: None,
            entries: vec![Entry::new(id.into(), Payload::Blank)],
            leader_commit: None,
        };
        let record = wire::encode(version, &WireEntry::from(&request.entries[0]));
        let (body, taken) =
            message::encode_append(version, &request, &request.entries, None, stream, 1 << 20);
        assert_eq!(taken, 1);
        let at = body.len() - record.len();
        (body, at)
    }

    #[tokio::test]
    async fn call_that_needs_no_answer_gets_none() {
        let (follower, tasks) = (Arc::<Follower>::default(), Tasks::here());
        let mut near = greeted(&follower, hello(), &tasks).await;
        let (body, _) = append_of(RecordVersion::FIRST, Some(7));
        let body = [&[Method::Append as u8], &body[..]].concat();
        for call in [UNANSWERED, UNANSWERED, 1] {
            let frame = Frame::new(Kind::Request, call, body.clone());
            write_frame(&mut near, &frame).await.unwrap();
        }
        // The calls are handled in order.
        let answer = read_frame(&mut near, &mut BytesMut::new(), UNWELCOMED_BYTES_MAX).await;
        assert_eq!(answer.unwrap().unwrap().call, 1);
        assert_eq!(follower.appends.load(Ordering::Relaxed), 3);
        tasks.stop().await;
    }

    async fn send(channel: &Channel, body: &[u8]) -> Result<AppendReply, CallError> {
        let answer = channel.call(Method::Append, body, PATIENCE).await?;
        Ok(wire::decode(&answer).unwrap())
    }

    #[tokio::test]
    async fn entry_of_a_newer_binary_is_reported_to_both_sides() {
        let (follower, tasks) = (Arc::default(), Tasks::default());
        let channel = connect(&follower, &tasks).await;
        let (good, at) = append(channel.records());
        let mut newer = good.clone();
        newer[at] = 99;
        let refused = send(&channel, &newer).await.unwrap_err();
        assert!(matches!(refused, CallError::Unreadable(_)), "{refused:?}");
        assert!(refused.to_string().contains("version 99"), "{refused}");
        assert_eq!(*follower.outgrown.lock(), [(1, WireError::Newer(99))]);
    }

    #[tokio::test]
    async fn damaged_entry_closes_the_connection_and_is_sent_again() {
        let (follower, tasks) = (Arc::default(), Tasks::default());
        let channel = connect(&follower, &tasks).await;
        let (good, at) = append(channel.records());
        assert!(send(&channel, &good).await.is_ok());
        let mut damaged = good.clone();
        // No record begins with this byte.
        damaged[at + 1] = 0xc1;
        let refused = send(&channel, &damaged).await.unwrap_err();
        assert!(matches!(refused, CallError::Unreadable(_)), "{refused:?}");
        let begun = Instant::now();
        while !channel.is_closed() {
            assert!(begun.elapsed() < PATIENCE, "the connection is kept");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let channel = connect(&follower, &tasks).await;
        let reply = send(&channel, &good).await.unwrap();
        assert!(matches!(reply, AppendReply::Flushed(Some(id)) if id.index == 7));
        assert!(follower.outgrown.lock().is_empty(), "it can read the rest");
    }
}
