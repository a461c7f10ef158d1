//! The answering end: takes connections of other nodes, settles who they are, and hands their
//! calls to a [`Handler`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use placement_model::Level;
use placement_raft_store::wire::{self, RecordVersion};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::denied::Denied;
use super::frame::{Frame, Kind};
use super::message::{self, Failure, Hello, Method, VERSIONS, Welcome};
use super::wire_io::{read_frame, read_some, write_frame, write_frames};
use crate::env::{BoxStream, Listener};
use crate::tasks::Tasks;

/// How long a stranger may take to say hello.
const HELLO: Duration = Duration::from_secs(5);
/// A connection of which nothing is heard for this long is dropped; callers ping more often.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// How often the same refusal is logged.
const REFUSAL_LOG: Duration = Duration::from_secs(30);

/// One append of a stream, and where its answer goes.
pub(crate) struct StreamedAppend {
    pub(crate) request: openraft::raft::AppendEntriesRequest<placement_raft_store::TypeConfig>,
    pub(crate) reply: Reply,
}

/// Where the answer to one call goes. Dropped unanswered, it says so to the caller.
pub(crate) struct Reply {
    /// The version of the records of its connection.
    pub(crate) records: RecordVersion,
    call: u64,
    queue: Option<mpsc::UnboundedSender<Frame>>,
}

impl Reply {
    pub(crate) fn send(mut self, answer: Result<Vec<u8>, Denied>) {
        self.answer(answer);
    }

    fn answer(&mut self, answer: Result<Vec<u8>, Denied>) {
        let Some(queue) = self.queue.take() else {
            return;
        };
        let frame = match answer {
            Ok(body) => Frame::new(Kind::Response, self.call, body),
            Err(denied) => {
                let message = denied.to_string();
                let failure = wire::encode(self.records, &Failure { message });
                Frame::new(Kind::Failure, self.call, failure)
            }
        };
        // A caller that has hung up needs no answer.
        let _ = queue.send(frame);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.answer(Err(Denied::GivenUp));
    }
}

/// Who calls, and how it is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// Its number.
    pub(crate) node: u64,
    /// The version of the records on its connection.
    pub(crate) records: RecordVersion,
}

/// What a node does when it is called.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Whether a caller is welcome; if not, why, in words.
    fn greet(&self, hello: &Hello) -> Result<(), Denied>;

    /// This node's number.
    fn node(&self) -> u64;

    /// The highest feature level to which this node agrees.
    fn level(&self) -> Level;

    /// Answers one call, with a record of the caller's version.
    fn call(
        &self,
        caller: Caller,
        method: Method,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Vec<u8>, Denied>>;

    /// Handles the appends of one stream in order, until the stream ends.
    fn append_stream(&self, appends: mpsc::UnboundedReceiver<StreamedAppend>) -> BoxFuture<'_, ()>;
}

/// Takes connections until the tasks are stopped.
pub(crate) async fn serve(
    mut listener: Box<dyn Listener>,
    handler: Arc<dyn Handler>,
    tasks: Tasks,
) {
    let refusals = Arc::new(Refusals::default());
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let handler = handler.clone();
                let refusals = refusals.clone();
                let connection_tasks = tasks.clone();
                tasks.spawn(async move {
                    let served = connection(stream, address, handler, refusals, connection_tasks);
                    if let Err(error) = served.await {
                        tracing::debug!(%address, %error, "connection of a peer ended");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take a connection of a peer");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(
    mut stream: BoxStream,
    address: SocketAddr,
    handler: Arc<dyn Handler>,
    refusals: Arc<Refusals>,
    tasks: Tasks,
) -> std::io::Result<()> {
    let mut buffer = BytesMut::new();
    let hello = match timeout(HELLO, read_frame(&mut stream, &mut buffer)).await {
        Ok(Ok(Some(frame))) if frame.kind == Kind::Hello => wire::decode::<Hello>(&frame.body)?,
        Ok(Ok(_)) => return Err(std::io::Error::other("no hello came first")),
        Ok(Err(error)) => return Err(error),
        Err(_) => return Err(std::io::ErrorKind::TimedOut.into()),
    };
    let version = (*VERSIONS.end()).min(hello.newest);
    let welcome = if version < *VERSIONS.start() || version < hello.oldest {
        Err(Denied::Stranger(format!(
            "node {} speaks versions {} to {} of the protocol, node {} speaks {} to {}: upgrade one \
             step at a time",
            hello.from,
            hello.oldest,
            hello.newest,
            handler.node(),
            VERSIONS.start(),
            VERSIONS.end()
        )))
    } else {
        handler.greet(&hello)
    };
    if let Err(denied) = welcome {
        let message = denied.to_string();
        refusals.log(hello.from, address, &message);
        let refusal = wire::encode(RecordVersion::NAMED, &Failure { message });
        return write_frame(&mut stream, &Frame::new(Kind::Refusal, 0, refusal)).await;
    }
    let welcome = Welcome {
        version,
        node: handler.node(),
        level: handler.level(),
    };
    let welcome = wire::encode(RecordVersion::NAMED, &welcome);
    write_frame(&mut stream, &Frame::new(Kind::Welcome, 0, welcome)).await?;

    let (mut read, write) = tokio::io::split(stream);
    let (queue, queued) = mpsc::unbounded_channel();
    tasks.spawn(async move {
        // The reading side notices a broken connection, too.
        let _ = write_frames(write, queued).await;
    });
    let mut calls = Calls {
        caller: Caller {
            node: hello.from,
            records: message::records(version),
        },
        introduction: hello.introduction,
        handler,
        queue,
        streams: BTreeMap::new(),
        tasks,
    };
    let mut heard = Instant::now();
    loop {
        while let Some(frame) = Frame::read(&mut buffer)? {
            calls.take(frame)?;
        }
        let patience = IDLE_MAX.saturating_sub(heard.elapsed());
        match timeout(patience, read_some(&mut read, &mut buffer)).await {
            Ok(Ok(true)) => heard = Instant::now(),
            Ok(Ok(false)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(std::io::ErrorKind::TimedOut.into()),
        }
    }
}

/// The calls of one connection.
struct Calls {
    caller: Caller,
    introduction: bool,
    handler: Arc<dyn Handler>,
    queue: mpsc::UnboundedSender<Frame>,
    streams: BTreeMap<u64, mpsc::UnboundedSender<StreamedAppend>>,
    tasks: Tasks,
}

impl Calls {
    fn take(&mut self, frame: Frame) -> std::io::Result<()> {
        match frame.kind {
            Kind::Request => self.request(frame.call, frame.body),
            Kind::Ping => {
                let _ = self.queue.send(Frame::new(Kind::Pong, 0, Bytes::new()));
            }
            Kind::StreamEnd => {
                self.streams.remove(&frame.call);
            }
            Kind::Pong => {}
            kind => return Err(std::io::Error::other(format!("an unexpected {kind:?}"))),
        }
        Ok(())
    }

    fn request(&mut self, call: u64, mut body: Bytes) {
        let reply = Reply {
            records: self.caller.records,
            call,
            queue: Some(self.queue.clone()),
        };
        let number = if body.is_empty() { 0 } else { body.get_u8() };
        let Some(method) = Method::from_number(number) else {
            reply.send(Err(Denied::UnknownMethod(number)));
            return;
        };
        if self.introduction && !method.is_introduction() {
            reply.send(Err(Denied::Misused(
                "this call is for members of one cluster",
            )));
            return;
        }
        if method == Method::Append {
            self.append(body, reply);
            return;
        }
        let handler = self.handler.clone();
        let caller = self.caller;
        self.tasks.spawn(async move {
            let answer = handler.call(caller, method, body).await;
            reply.send(answer);
        });
    }

    /// Appends of one stream go through one task, in order; others are calls like all.
    fn append(&mut self, body: Bytes, reply: Reply) {
        let (request, stream) = match message::decode_append(body) {
            Ok(decoded) => decoded,
            Err(error) => return reply.send(Err(Denied::Malformed(error))),
        };
        let append = StreamedAppend { request, reply };
        match stream {
            Some(number) => {
                let handler = &self.handler;
                let tasks = &self.tasks;
                let queue = self.streams.entry(number).or_insert_with(|| {
                    let (queue, appends) = mpsc::unbounded_channel();
                    let handler = handler.clone();
                    tasks.spawn(async move { handler.append_stream(appends).await });
                    queue
                });
                if let Err(rejected) = queue.send(append) {
                    let denied = Denied::Misused("the stream of appends has ended");
                    rejected.0.reply.send(Err(denied));
                }
            }
            None => {
                let (queue, appends) = mpsc::unbounded_channel();
                // The receiver is still here.
                let _ = queue.send(append);
                let handler = self.handler.clone();
                self.tasks
                    .spawn(async move { handler.append_stream(appends).await });
            }
        }
    }
}

/// Refused callers come again and again: each reason is logged once in a while.
#[derive(Default)]
struct Refusals {
    last: Mutex<BTreeMap<u64, (String, Instant)>>,
}

impl Refusals {
    /// Callers choose their numbers: remember a few.
    const REMEMBERED: usize = 64;

    fn log(&self, from: u64, address: SocketAddr, message: &str) {
        let mut last = self.last.lock();
        let is_old =
            |(logged, at): &(String, Instant)| logged == message && at.elapsed() < REFUSAL_LOG;
        if last.get(&from).is_some_and(is_old) {
            return;
        }
        if last.len() >= Self::REMEMBERED {
            last.clear();
        }
        last.insert(from, (message.to_owned(), Instant::now()));
        tracing::warn!(peer = from, %address, reason = message, "refused a peer's connection");
    }
}
