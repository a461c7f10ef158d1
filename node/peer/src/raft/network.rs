//! openraft's network: its calls to other nodes, over [`super::peers`].

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use openraft::errors::{
    NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable,
};
use openraft::network::{RPCOption, RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendError,
    StreamAppendResult, TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use placement_base::log_messages::log;
use placement_base::runtime;
use placement_raft_store::wire::{self, WireLogId};
use placement_raft_store::{Entry, LogId, Member, Snapshot, SnapshotData, TypeConfig, Vote};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until, timeout};

use super::append::encode_append;
use super::messages::{
    AppendReply, SnapshotCall, SnapshotReply, TransferCall, VoteCall, VoteReply,
};
use super::peers::Peers;
use super::snapshots::{Sending, Unsent};
use crate::transport::channel::{CallError, Channel, PendingCall};
use crate::transport::log_throttle::LogThrottle;
use crate::transport::method::{Lane, Method};

/// Maximum number of unanswered appends to one node that are sent without a pause.
const APPENDS_MAX: usize = 32;
/// Maximum number of unanswered appends to one node. A node with a long round trip needs so many:
/// new entries are sent to it before its answers to earlier entries arrive.
const APPENDS_FAR_MAX: usize = 512;
/// Pause before each append beyond [`APPENDS_MAX`]. The append then includes all entries that were
/// proposed during the pause.
const APPENDS_PAUSE: Duration = Duration::from_millis(2);
/// While unanswered appends to one node have this many bytes, no further append is sent to it.
const APPENDS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The rate of the slowest supported link: 4 Mibit/s.
const SLOWEST_BYTES_PER_S: f64 = 512.0 * 1024.0;

/// How long a message of this length may take on the slowest supported link.
pub fn upload(bytes: usize) -> Duration {
    Duration::from_secs_f64(bytes as f64 / SLOWEST_BYTES_PER_S)
}

/// Limits of the messages to other nodes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of log entries in one message.
    pub append_bytes_max: usize,
    /// How long an append may stay unanswered, not counting its transmission. A dead connection is
    /// closed earlier, and a process whose disk hangs for so long exits.
    pub append_deadline: Duration,
    /// Bytes of a snapshot in one message.
    pub snapshot_chunk_bytes: usize,
    /// Deadline of one message of a snapshot.
    pub snapshot_chunk_deadline: Duration,
}

/// Creates a [`Network`] for each other node and lane.
#[derive(Clone)]
pub struct Networks {
    peers: Arc<Peers>,
    limits: Limits,
    sending: Arc<Sending>,
    logged: Arc<LogThrottle>,
}

impl RaftNetworkFactory<TypeConfig> for Networks {
    type Network = Network;

    async fn new_client(&mut self, target: u64, node: &Member) -> Network {
        self.network(target, node, Lane::Log)
    }

    async fn new_heartbeat_client(&mut self, target: u64, node: &Member) -> Network {
        self.network(target, node, Lane::Control)
    }

    async fn new_snapshot_client(&mut self, target: u64, node: &Member) -> Network {
        self.network(target, node, Lane::Snapshot)
    }
}

impl Networks {
    pub fn new(peers: Arc<Peers>, limits: Limits, sending: Arc<Sending>) -> Self {
        Self {
            peers,
            limits,
            sending,
            logged: Arc::default(),
        }
    }

    fn network(&self, target: u64, node: &Member, lane: Lane) -> Network {
        Network {
            shared: self.clone(),
            target,
            first_address: node.peer.clone(),
            lane,
        }
    }
}

/// openraft's client of one other node.
pub struct Network {
    shared: Networks,
    target: u64,
    /// The address of the node at the time when openraft requested this client.
    first_address: String,
    lane: Lane,
}

type RpcResult<T> = Result<T, RPCError<TypeConfig>>;

impl Network {
    /// The current address of the node. openraft keeps this client when the address of the node
    /// changes.
    fn address(&self) -> String {
        let known = self.shared.peers.address_of(self.target);
        known.unwrap_or_else(|| self.first_address.clone())
    }

    fn error(&self, action: RPCTypes, error: CallError) -> RPCError<TypeConfig> {
        match error {
            CallError::NotSent(_) | CallError::Refused(_) | CallError::Removed(_) => {
                RPCError::Unreachable(Unreachable::from_string(error))
            }
            CallError::Unreadable(reason) => {
                if self.shared.logged.is_due(self.target, "unreadable") {
                    log!(
                        PEER_CANNOT_READ,
                        target_node = self.target,
                        reason,
                        "a node cannot read the messages of this node"
                    );
                }
                RPCError::Unreachable(Unreachable::from_string(reason))
            }
            CallError::Timeout(timeout) => RPCError::Timeout(Timeout {
                action,
                id: self.shared.peers.me,
                target: self.target,
                timeout,
            }),
            CallError::Lost(_) | CallError::Failed(_) => {
                RPCError::Network(NetworkError::from_string(error))
            }
        }
    }

    async fn call<Q: Serialize + Sync, A: DeserializeOwned>(
        &self,
        (method, action): (Method, RPCTypes),
        question: &Q,
        deadline: Duration,
    ) -> RpcResult<A> {
        let address = self.address();
        let answer = (self.shared.peers).call(self.target, &address, method, question, deadline);
        answer.await.map_err(|error| self.error(action, error))
    }

    /// The connection of one lane.
    async fn channel(&self, lane: Lane) -> Result<Channel, CallError> {
        let address = self.address();
        (self.shared.peers)
            .channel(self.target, &address, lane)
            .await
    }

    /// One append that is not part of a stream.
    async fn append_once(
        &self,
        request: &AppendEntriesRequest<TypeConfig>,
        deadline: Duration,
    ) -> RpcResult<StreamAppendResult<TypeConfig>> {
        let call = async {
            let channel = self.channel(self.lane).await?;
            let (body, _) = encode_append(
                channel.records(),
                request,
                &request.entries,
                request.prev_log_id.as_ref().map(WireLogId::from),
                None,
                self.shared.limits.append_bytes_max,
            );
            channel.call(Method::Append, &body, deadline).await
        };
        let answer = call
            .await
            .map_err(|error| self.error(RPCTypes::AppendEntries, error))?;
        self.append_reply(&answer)
    }

    fn append_reply(&self, answer: &Bytes) -> RpcResult<StreamAppendResult<TypeConfig>> {
        let reply: AppendReply = wire::decode(answer)
            .map_err(|error| RPCError::Network(NetworkError::from_string(error)))?;
        Ok(match reply {
            AppendReply::Flushed(id) => Ok(id.map(LogId::from)),
            AppendReply::Conflict(id) => Err(StreamAppendError::Conflict(id.into())),
            AppendReply::HigherVote(vote) => Err(StreamAppendError::HigherVote(vote.into())),
        })
    }

    async fn vote_call(
        &self,
        method: Method,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<VoteResponse<TypeConfig>> {
        let call = VoteCall {
            vote: (&rpc.vote).into(),
            last: rpc.last_log_id.as_ref().map(WireLogId::from),
            transfer: rpc.leadership_transfer,
        };
        let what = (method, RPCTypes::Vote);
        let reply: VoteReply = self.call(what, &call, option.soft_ttl()).await?;
        Ok(VoteResponse {
            vote: reply.vote.into(),
            vote_granted: reply.granted,
            last_log_id: reply.last.map(LogId::from),
        })
    }

    async fn send_snapshot(
        &self,
        vote: Vote,
        snapshot: Snapshot,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        // Connects first, so that no snapshot is written for an unreachable node.
        let reached = self.channel(Lane::Snapshot).await;
        reached.map_err(|error| self.error(RPCTypes::InstallSnapshot, error))?;
        let limits = self.shared.limits;
        let what = (Method::Snapshot, RPCTypes::InstallSnapshot);
        let call = |call: SnapshotCall| -> BoxFuture<'_, RpcResult<SnapshotReply>> {
            Box::pin(async move { self.call(what, &call, limits.snapshot_chunk_deadline).await })
        };
        let (sending, bytes) = (&self.shared.sending, limits.snapshot_chunk_bytes);
        let sent = sending.send(self.target, vote, &snapshot, bytes, call);
        match sent.await {
            Ok(vote) => Ok(SnapshotResponse::new(vote)),
            Err(Unsent::Call(error)) => Err(error.into()),
            Err(Unsent::Again(reason)) => Err(StreamingError::Unreachable(
                Unreachable::from_string(reason),
            )),
        }
    }
}

impl RaftNetworkV2<TypeConfig> for Network {
    type SnapshotData = SnapshotData;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<AppendEntriesResponse<TypeConfig>> {
        let last = rpc
            .entries
            .last()
            .map(|entry| entry.log_id)
            .or(rpc.prev_log_id);
        Ok(match self.append_once(&rpc, option.soft_ttl()).await? {
            Ok(flushed) if flushed == last => AppendEntriesResponse::Success,
            Ok(flushed) => AppendEntriesResponse::PartialSuccess(flushed),
            Err(StreamAppendError::Conflict(_)) => AppendEntriesResponse::Conflict,
            Err(StreamAppendError::HigherVote(vote)) => AppendEntriesResponse::HigherVote(vote),
        })
    }

    fn stream_append<'s, S>(
        &'s mut self,
        mut input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, RpcResult<BoxStream<'s, RpcResult<StreamAppendResult<TypeConfig>>>>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Send + Unpin + 'static,
    {
        Box::pin(async move {
            if self.lane == Lane::Control {
                return openraft::network::stream_append_sequential(self, input, option).await;
            }
            // Wait for a request before connecting: openraft delays the first request by its
            // backoff. Connecting first would retry a node that is down without any delay.
            let Some(first) = input.next().await else {
                return Ok(futures::stream::empty().boxed());
            };
            // One round trip for TCP, two for TLS, and one for the hello.
            let way = self.shared.peers.round_trips.to(self.target);
            let greetings = way.map_or(Duration::ZERO, |way| way.mean * 4);
            let connected = timeout(option.soft_ttl() + greetings, self.channel(self.lane))
                .await
                .unwrap_or_else(|_| Err(CallError::NotSent("cannot connect in time".to_owned())));
            let channel = connected.map_err(|error| self.error(RPCTypes::AppendEntries, error))?;
            let appends = Appends {
                network: self,
                stream: StreamNumber {
                    number: runtime::random_u64(),
                    channel,
                },
                input,
                input_ended: false,
                split: Some((first, 0)),
                has_begun: false,
                under_way: VecDeque::new(),
                under_way_bytes: 0,
                moved: Instant::now(),
                sent: Instant::now(),
            };
            let answers = futures::stream::unfold(Some(appends), |appends| async move {
                let mut appends = appends?;
                let answer = appends.next().await.transpose()?;
                let goes_on = matches!(answer, Ok(Ok(_)));
                Some((answer, goes_on.then_some(appends)))
            });
            Ok(answers.boxed())
        })
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<VoteResponse<TypeConfig>> {
        self.vote_call(Method::Vote, rpc, option).await
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<VoteResponse<TypeConfig>> {
        self.vote_call(Method::PreVote, rpc, option).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        tokio::select! {
            biased;
            closed = cancel => Err(closed.into()),
            sent = timeout(option.hard_ttl(), self.send_snapshot(vote, snapshot)) => {
                sent.unwrap_or_else(|_| {
                    let error = CallError::Timeout(option.hard_ttl());
                    Err(self.error(RPCTypes::InstallSnapshot, error).into())
                })
            }
        }
    }

    async fn transfer_leader(
        &mut self,
        req: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<TransferLeaderResponse<TypeConfig>> {
        let call = TransferCall {
            from: req.from_leader().into(),
            to: *req.to_node_id(),
            last: req.last_log_id().map(WireLogId::from),
        };
        let what = (Method::TransferLeader, RPCTypes::TransferLeader);
        // openraft only logs a refusal, so it is reported as an error of the call.
        let accepted: () = self.call(what, &call, option.soft_ttl()).await?;
        Ok(Ok(accepted))
    }
}

/// A stream's number on its connection; ends the stream when dropped.
struct StreamNumber {
    number: u64,
    channel: Channel,
}

impl Drop for StreamNumber {
    fn drop(&mut self) {
        self.channel.end_stream(self.number);
    }
}

/// Appends that are sent without waiting for the answers to earlier ones, and answered in order.
///
/// This has no background task, so dropping it drops the input: openraft starts the next stream
/// only after the input of this one is dropped.
struct Appends<'s, S> {
    network: &'s Network,
    stream: StreamNumber,
    input: S,
    input_ended: bool,
    /// A request of which only a part was sent, because it was too long for one message, and the
    /// position of its next entry.
    split: Option<(AppendEntriesRequest<TypeConfig>, usize)>,
    /// Whether the first append of the stream has been sent.
    has_begun: bool,
    under_way: VecDeque<UnderWay>,
    /// Bytes of the appends in `under_way`.
    under_way_bytes: usize,
    /// When an append was last sent or answered.
    moved: Instant,
    /// When an append was last sent.
    sent: Instant,
}

/// An append that was sent and is not answered yet.
struct UnderWay {
    answer: PendingCall,
    bytes: usize,
    /// When it was sent, and how long the slowest supported link takes for it and for the appends
    /// before it; `None` for an append without entries.
    measured: Option<(Instant, Duration)>,
}

async fn first_answer(under_way: &mut VecDeque<UnderWay>) -> Result<Bytes, CallError> {
    match under_way.front_mut() {
        Some(first) => first.answer.wait().await,
        None => pending().await,
    }
}

impl<S> Appends<'_, S>
where
    S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Send + Unpin,
{
    /// The next answer; `None` when all requests are answered and the input has ended.
    async fn next(&mut self) -> RpcResult<Option<StreamAppendResult<TypeConfig>>> {
        loop {
            let count = self.under_way.len();
            let is_small = self.under_way_bytes < APPENDS_BYTES_MAX;
            let has_room = is_small
                && match count {
                    0..APPENDS_MAX => true,
                    APPENDS_MAX..APPENDS_FAR_MAX => self.sent.elapsed() >= APPENDS_PAUSE,
                    _ => false,
                };
            if has_room && let Some((request, from)) = self.split.take() {
                self.send(request, from)?;
                continue;
            }
            let may_send = !self.input_ended && has_room;
            let may_send_soon =
                !self.input_ended && is_small && !has_room && count < APPENDS_FAR_MAX;
            let deadline =
                self.network.shared.limits.append_deadline + upload(self.under_way_bytes);
            tokio::select! {
                biased;
                answer = first_answer(&mut self.under_way), if count > 0 => {
                    let answered = self.under_way.pop_front();
                    self.under_way_bytes -= answered.as_ref().map_or(0, |answered| answered.bytes);
                    self.moved = Instant::now();
                    let answer =
                        answer.map_err(|error| self.network.error(RPCTypes::AppendEntries, error))?;
                    if let Some((sent, upload)) = answered.and_then(|answered| answered.measured) {
                        let took = self.moved.duration_since(sent).saturating_sub(upload);
                        let peers = &self.network.shared.peers;
                        peers.acknowledgements.note(self.network.target, took);
                    }
                    return self.network.append_reply(&answer).map(Some);
                }
                request = self.input.next(), if may_send => match request {
                    Some(request) => self.send(request, 0)?,
                    None => self.input_ended = true,
                },
                () = sleep_until(self.sent + APPENDS_PAUSE), if may_send_soon => {}
                () = sleep_until(self.moved + deadline), if count > 0 => {
                    let error = CallError::Timeout(deadline);
                    return Err(self.network.error(RPCTypes::AppendEntries, error));
                }
                else => return Ok(None),
            }
        }
    }

    /// Sends as many entries of a request as fit into one message, and keeps the rest in `split`.
    fn send(&mut self, request: AppendEntriesRequest<TypeConfig>, from: usize) -> RpcResult<()> {
        let entries: &[Entry] = &request.entries[from..];
        let previous = match from {
            0 => request.prev_log_id,
            _ => Some(request.entries[from - 1].log_id),
        };
        let (body, taken) = encode_append(
            self.stream.channel.records(),
            &request,
            entries,
            previous.as_ref().map(WireLogId::from),
            Some(self.stream.number),
            self.network.shared.limits.append_bytes_max,
        );
        let channel = &self.stream.channel;
        let error = |error| self.network.error(RPCTypes::AppendEntries, error);
        // An append without entries only reports the commit index. It needs no answer: the next
        // append and the next heartbeat also contain the commit index, and would be refused for the
        // same reason. But openraft waits for the answer to the first append of a stream, which may
        // be the only one.
        if entries.is_empty() && self.has_begun {
            return channel.tell(Method::Append, &body).map_err(error);
        }
        self.has_begun = true;
        let answer = channel.begin(Method::Append, &body).map_err(error)?;
        self.moved = Instant::now();
        self.sent = self.moved;
        self.under_way_bytes += body.len();
        self.under_way.push_back(UnderWay {
            answer,
            bytes: body.len(),
            measured: (taken > 0).then(|| (self.sent, upload(self.under_way_bytes))),
        });
        if from + taken < request.entries.len() {
            self.split = Some((request, from + taken));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::{Buf, BytesMut};
    use openraft::entry::RaftEntry;
    use parking_lot::Mutex;
    use placement_raft_store::Payload;
    use tokio::io::DuplexStream;

    use super::super::append::Append;
    use super::*;
    use crate::tls::Link;
    use crate::transport::frame::{Frame, Kind, UNANSWERED, UNWELCOMED_BYTES_MAX};
    use crate::transport::greeting::{records, samples};
    use crate::transport::wire_io::{read_frame, write_frame};
    use placement_base::net::{BoxStream as Stream, Listener, Net};
    use placement_base::tasks::Tasks;
    use placement_machine::new_store;
    use placement_raft_store::disk_space::SpaceCheck;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A network with one connection.
    struct Wire(Mutex<Option<DuplexStream>>);

    impl Net for Wire {
        fn bind<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
            unreachable!("these tests do not listen")
        }

        fn connect<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Stream>> {
            let near = self.0.lock().take().expect("it connects once");
            Box::pin(async { Ok(Box::new(near) as Stream) })
        }
    }

    fn log_id(index: u64) -> LogId {
        let (term, node) = (1, 1);
        WireLogId { term, node, index }.into()
    }

    fn request(from: u64, to: u64, committed: u64) -> AppendEntriesRequest<TypeConfig> {
        AppendEntriesRequest {
            vote: Vote::new_committed(1, 1),
            prev_log_id: Some(log_id(from)),
            entries: (from + 1..=to)
                .map(|index| Entry::new(log_id(index), Payload::Blank))
                .collect(),
            leader_commit: Some(log_id(committed)),
        }
    }

    /// Accepts appends; returns the numbers of the calls that it received.
    async fn follow(mut far: DuplexStream, seen: Arc<AtomicUsize>) -> Vec<u64> {
        let mut buffer = BytesMut::new();
        let mut calls = Vec::new();
        while let Ok(Some(mut frame)) =
            read_frame(&mut far, &mut buffer, UNWELCOMED_BYTES_MAX).await
        {
            let answer = match frame.kind {
                Kind::Hello => {
                    Frame::new(Kind::Welcome, 0, wire::encode_named(&samples::welcome()))
                }
                Kind::Request => {
                    frame.body.advance(1);
                    let request = Append::read(frame.body).unwrap().into_request().unwrap();
                    let last = request.entries.last().map(|entry| entry.log_id);
                    let flushed = last.or(request.prev_log_id);
                    let flushed = AppendReply::Flushed(flushed.as_ref().map(WireLogId::from));
                    calls.push(frame.call);
                    seen.fetch_add(1, Ordering::Relaxed);
                    if frame.call == UNANSWERED {
                        continue;
                    }
                    let flushed = wire::encode(records(1), &flushed);
                    Frame::new(Kind::Response, frame.call, flushed)
                }
                _ => continue,
            };
            write_frame(&mut far, &answer).await.unwrap();
        }
        calls
    }

    #[tokio::test]
    async fn append_without_entries_waits_for_no_answer() {
        let dir = tempfile::tempdir().unwrap();
        let store = new_store(dir.path());
        let room = SpaceCheck::new(dir.path().to_owned(), &store);
        let (near, far) = tokio::io::duplex(1 << 16);
        let tasks = Tasks::on_current_runtime();
        let link = Link::new(Arc::new(Wire(Mutex::new(Some(near)))), None);
        let peers = Peers::new(link, 1, String::new(), PATIENCE, PATIENCE, tasks.clone());
        let limits = Limits {
            append_bytes_max: 1 << 10,
            append_deadline: PATIENCE,
            snapshot_chunk_bytes: 1 << 10,
            snapshot_chunk_deadline: PATIENCE,
        };
        let sending = Sending::new(store.drafts.clone(), room, 0);
        let networks = Networks::new(Arc::new(peers), limits, Arc::new(sending));
        let mut network = networks.network(2, &Member::default(), Lane::Log);
        let seen = Arc::<AtomicUsize>::default();
        let following = runtime::spawn(follow(far, seen.clone()));

        // openraft waits for the answer to the first append, which may be the only one of a
        // stream.
        let requests = [
            request(7, 7, 7),
            request(7, 8, 7),
            request(8, 8, 8),
            request(8, 9, 8),
            request(9, 9, 9),
        ];
        let requests = futures::stream::iter(requests);
        let answers: Vec<_> = network
            .stream_append(requests, RPCOption::new(PATIENCE))
            .await
            .unwrap()
            .collect()
            .await;
        let flushed: Vec<_> = (answers.into_iter())
            .map(|answer| answer.unwrap().unwrap())
            .collect();
        assert_eq!(flushed, [7, 8, 9].map(|index| Some(log_id(index))));
        let all = async {
            while seen.load(Ordering::Relaxed) < 5 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, all).await.unwrap();
        tasks.stop().await;
        drop((network, networks));
        let calls = following.await.unwrap();
        assert_eq!(calls, [1, 2, UNANSWERED, 3, UNANSWERED]);
    }
}
