//! The answering end: takes connections of other nodes, settles who they are, and hands their
//! calls to a [`Handler`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::future::BoxFuture;
use placement_model::Level;
use placement_raft_store::wire::{self, RecordVersion, WireError};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::denied::Denied;
use super::frame::{Frame, Kind};
use super::message::{self, Failure, Hello, Method, VERSIONS, Welcome};
use super::seldom::Seldom;
use super::wire_io::{read_frame, read_some, write_frame, write_frames};
use crate::env::{BoxStream, Listener};
use crate::tasks::Tasks;

/// How long a stranger may take to say hello.
const HELLO: Duration = Duration::from_secs(5);
/// A connection of which nothing is heard for this long is dropped; callers ping more often.
const IDLE_MAX: Duration = Duration::from_secs(60);

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
                let failure = Failure {
                    message: denied.to_string(),
                    unreadable: matches!(denied, Denied::Malformed(_)),
                };
                let failure = wire::encode(self.records, &failure);
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

    /// Takes note that a node sends log entries which a newer binary has written: this one must not
    /// go on without them.
    fn outgrown(&self, by: u64, error: &WireError);

    /// Handles the appends of one stream in order, until the stream ends.
    fn append_stream(&self, appends: mpsc::UnboundedReceiver<StreamedAppend>) -> BoxFuture<'_, ()>;
}

/// Takes connections until the tasks are stopped.
pub(crate) async fn serve(
    mut listener: Box<dyn Listener>,
    handler: Arc<dyn Handler>,
    tasks: Tasks,
) {
    let said = Arc::new(Seldom::default());
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let handler = handler.clone();
                let said = said.clone();
                let connection_tasks = tasks.clone();
                tasks.spawn(async move {
                    let served = connection(stream, address, handler, said, connection_tasks);
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
    said: Arc<Seldom>,
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
        if said.is_due(hello.from, &message) {
            let (peer, reason) = (hello.from, &message);
            tracing::warn!(peer, %address, reason, "refused a peer's connection");
        }
        let failure = Failure {
            message,
            unreadable: false,
        };
        let refusal = wire::encode(RecordVersion::NAMED, &failure);
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
        said,
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
    said: Arc<Seldom>,
    queue: mpsc::UnboundedSender<Frame>,
    streams: BTreeMap<u64, mpsc::UnboundedSender<StreamedAppend>>,
    tasks: Tasks,
}

impl Calls {
    /// An error ends the connection.
    fn take(&mut self, frame: Frame) -> std::io::Result<()> {
        match frame.kind {
            Kind::Request => self.request(frame.call, frame.body)?,
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

    fn request(&mut self, call: u64, mut body: Bytes) -> std::io::Result<()> {
        let reply = Reply {
            records: self.caller.records,
            call,
            queue: Some(self.queue.clone()),
        };
        let number = if body.is_empty() { 0 } else { body.get_u8() };
        let Some(method) = Method::from_number(number) else {
            reply.send(Err(Denied::UnknownMethod(number)));
            return Ok(());
        };
        if self.introduction && !method.is_introduction() {
            reply.send(Err(Denied::Misused(
                "this call is for members of one cluster",
            )));
            return Ok(());
        }
        if method == Method::Append {
            return match message::decode_append(body) {
                Ok((request, stream)) => {
                    self.append(StreamedAppend { request, reply }, stream);
                    Ok(())
                }
                Err(error) => self.unreadable(error, reply),
            };
        }
        let handler = self.handler.clone();
        let caller = self.caller;
        self.tasks.spawn(async move {
            let answer = handler.call(caller, method, body).await;
            reply.send(answer);
        });
        Ok(())
    }

    /// Log entries that cannot be read are lost for this node, unless they are sent again.
    fn unreadable(&self, error: WireError, reply: Reply) -> std::io::Result<()> {
        let peer = self.caller.node;
        let end = match &error {
            WireError::Newer(_) => {
                self.handler.outgrown(peer, &error);
                Ok(())
            }
            WireError::Empty | WireError::Damaged(_) => {
                if self.said.is_due(peer, "damage") {
                    tracing::error!(peer, %error, "log entries came in damaged; the connection is dropped, so that they are sent again");
                }
                Err(error.clone().into())
            }
        };
        reply.send(Err(Denied::Malformed(error)));
        end
    }

    /// Appends of one stream go through one task, in order; others are calls like all.
    fn append(&mut self, append: StreamedAppend, stream: Option<u64>) {
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

#[cfg(test)]
mod tests {
    use openraft::entry::RaftEntry;
    use openraft::raft::AppendEntriesRequest;
    use parking_lot::Mutex;
    use placement_raft_store::wire::{WireEntry, WireLogId};
    use placement_raft_store::{Entry, Payload, Vote};

    use super::*;
    use crate::rpc::channel::{CallError, Channel};
    use crate::rpc::message::AppendReply;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A node that takes all entries that it can read.
    #[derive(Default)]
    struct Follower {
        outgrown: Mutex<Vec<(u64, WireError)>>,
    }

    impl Handler for Follower {
        fn greet(&self, _: &Hello) -> Result<(), Denied> {
            Ok(())
        }

        fn node(&self) -> u64 {
            2
        }

        fn level(&self) -> Level {
            Level::FIRST
        }

        fn call(&self, _: Caller, _: Method, _: Bytes) -> BoxFuture<'_, Result<Vec<u8>, Denied>> {
            Box::pin(std::future::ready(Err(Denied::NoCluster)))
        }

        fn outgrown(&self, by: u64, error: &WireError) {
            self.outgrown.lock().push((by, error.clone()));
        }

        fn append_stream(
            &self,
            mut appends: mpsc::UnboundedReceiver<StreamedAppend>,
        ) -> BoxFuture<'_, ()> {
            Box::pin(async move {
                while let Some(StreamedAppend { request, reply }) = appends.recv().await {
                    let last = request.entries.last().map(|entry| (&entry.log_id).into());
                    let answer = wire::encode(reply.records, &AppendReply::Flushed(last));
                    reply.send(Ok(answer));
                }
            })
        }
    }

    async fn connect(follower: &Arc<Follower>, tasks: &Tasks) -> Channel {
        let (near, far) = tokio::io::duplex(1 << 20);
        let address = SocketAddr::from(([192, 0, 2, 1], 8779));
        let served = connection(
            Box::new(far),
            address,
            follower.clone(),
            Arc::default(),
            tasks.clone(),
        );
        tasks.spawn(async move {
            let _ = served.await;
        });
        let hello = Hello {
            oldest: *VERSIONS.start(),
            newest: *VERSIONS.end(),
            cluster: None,
            from: 1,
            to: Some(2),
            introduction: false,
            level: Level::FIRST,
        };
        let opened = Channel::open(Box::new(near), &hello, PATIENCE, tasks).await;
        opened.unwrap().0
    }

    /// A call with one log entry, and where the record of that begins.
    fn append(version: RecordVersion) -> (Vec<u8>, usize) {
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
            message::encode_append(version, &request, &request.entries, None, None, 1 << 20);
        assert_eq!(taken, 1);
        let at = body.len() - record.len();
        (body, at)
    }

    async fn send(channel: &Channel, body: &[u8]) -> Result<AppendReply, CallError> {
        let answer = channel.call(Method::Append, body, PATIENCE).await?;
        Ok(wire::decode(&answer).unwrap())
    }

    #[tokio::test]
    async fn an_entry_that_only_a_newer_binary_reads_is_told_to_both_sides() {
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
    async fn a_damaged_entry_ends_the_connection_and_comes_again_on_another_one() {
        let (follower, tasks) = (Arc::default(), Tasks::default());
        let channel = connect(&follower, &tasks).await;
        let (good, at) = append(channel.records());
        assert!(send(&channel, &good).await.is_ok());
        let mut damaged = good.clone();
        // A byte with which nothing begins.
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
