//! Handles the calls of other nodes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use openraft::errors::Fatal;
use openraft::raft::{
    AppendEntriesRequest, StreamAppendError, StreamAppendResult, TransferLeaderRequest, VoteRequest,
};
use parking_lot::Mutex;
use placement_model::{Level, mutant};
use placement_raft_store::wire::{self, RecordVersion, WireError, WireLogId};
use placement_raft_store::{LogId, Raft, TypeConfig, Vote};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::error::Refused;
use super::internal_actions::InternalAction;
use super::leadership::preference;
use super::members::membership::{DEADLINE, Membership, MembershipChange};
use super::read::index;
use super::running::Running;
use super::start::Bootstrap;
use super::upkeep::snapshot_intake::SnapshotIntake;
use placement_base::log_messages::log;
use placement_base::world::micros;
use placement_peer::raft::append;
use placement_peer::raft::messages::{
    AppendReply, JoinCall, Order, OrderReply, SnapshotCall, TransferCall, VoteCall, VoteReply,
    WriteReply,
};
use placement_peer::transport::denied::Denied;
use placement_peer::transport::greeting::{Hello, Welcome};
use placement_peer::transport::handler::{Caller, Handler, StreamedAppend};
use placement_peer::transport::method::Method;
use placement_peer::transport::reply::{Forwarder, Reply};

/// Delay after an unknown token, during which no other unknown token is checked.
const GUESS: Duration = Duration::from_secs(1);

/// The admin API of this node, for requests that another node forwards.
pub trait AdminApi: Send + Sync {
    /// Carries out an order that node `from` has forwarded.
    fn carry_out(&self, from: u64, order: Order) -> BoxFuture<'_, OrderReply>;
}

/// Handles the calls of all other nodes.
pub struct PeerService {
    bootstrap: Arc<Bootstrap>,
    operated: Arc<dyn AdminApi>,
    intake: SnapshotIntake,
    /// Held while a node with a known token is admitted: one at a time.
    joining: tokio::sync::Mutex<()>,
    /// Held while an unknown token is checked: this makes guessing slow without delaying known
    /// tokens.
    guessing: tokio::sync::Mutex<()>,
}

impl PeerService {
    pub fn new(bootstrap: Arc<Bootstrap>, operated: Arc<dyn AdminApi>) -> Self {
        Self {
            bootstrap,
            operated,
            intake: SnapshotIntake::default(),
            joining: tokio::sync::Mutex::default(),
            guessing: tokio::sync::Mutex::default(),
        }
    }

    /// A task that drops snapshots which other nodes have sent only in part.
    pub fn clean(&self) -> impl Future<Output = ()> + use<> {
        self.intake.clone().clean()
    }

    fn running(&self) -> Result<Arc<Running>, Denied> {
        self.bootstrap.slot.get().ok_or(Denied::NoCluster)
    }

    /// Admits a node with a token, or forwards its call to the leader.
    async fn join(&self, from: u64, call: JoinCall) -> Result<Result<(), Refused>, Denied> {
        let running = self.running()?;
        let replica = &running.replica;
        let is_direct = from == call.node;
        if !is_direct && !replica.is_member(from) {
            return Err(Denied::Misused("a node requests only its own admission"));
        }
        if let Err(refused) = Membership::must_be_well_formed(&call) {
            return Ok(Err(refused));
        }
        let turns = if Membership(&running).knows_token(&call) {
            &self.joining
        } else {
            &self.guessing
        };
        let Ok(_turn) = turns.try_lock() else {
            let reason = "another node is being admitted: retry";
            return Ok(Err(Refused::Unavailable(reason.to_owned())));
        };
        if !replica.leads() {
            let Some(leader) = replica.leader().filter(|_| is_direct) else {
                return Ok(Err(Refused::NotLeader));
            };
            let peers = &self.bootstrap.peers;
            let passed_on = peers.call(leader.id, &leader.address, Method::Join, &call, DEADLINE);
            return Ok(passed_on.await.unwrap_or_else(|error| {
                Err(Refused::Unavailable(format!("the leader: {error}")))
            }));
        }
        let (id, member) = (call.node, call.member.clone());
        let done = Membership(&running).admit_joiner(call).await;
        running.actions.record(InternalAction {
            actor: format!("node {id}"),
            path: format!("/v1/join-tokens/{id}/redeem"),
            detail: match &done {
                Ok(()) => format!("admitted as learner, {member}"),
                Err(refused) => format!("not admitted, {member}: {refused}"),
            },
            done: done.is_ok(),
        });
        if let Err(refused) = &done {
            log!(JOIN_REFUSED, node = id, %refused, "a node was not admitted");
            if matches!(refused, Refused::NotFound(_)) {
                sleep(GUESS).await;
            }
        }
        Ok(done)
    }

    async fn vote(&self, from: u64, method: Method, call: VoteCall) -> Result<VoteReply, Denied> {
        must_be_own(from, call.vote.node)?;
        let running = self.running()?;
        let mut request = VoteRequest::new(Vote::from(call.vote), call.last.map(LogId::from));
        request.leadership_transfer = call.transfer;
        if mutant!("vote-for-any-log") {
            let furthest = WireLogId {
                term: u64::MAX,
                node: u64::MAX,
                index: u64::MAX,
            };
            request.last_log_id = Some(furthest.into());
        }
        let answer = match method {
            Method::PreVote => running.replica.raft.pre_vote(request).await,
            _ => running.replica.raft.vote(request).await,
        }
        .map_err(Denied::stopped)?;
        Ok(VoteReply {
            vote: (&answer.vote).into(),
            granted: answer.vote_granted,
            last: answer.last_log_id.as_ref().map(WireLogId::from),
        })
    }

    async fn transfer(&self, from: u64, call: TransferCall) -> Result<(), Denied> {
        must_be_own(from, call.from.node)?;
        let request =
            TransferLeaderRequest::new(Vote::from(call.from), call.to, call.last.map(LogId::from));
        let running = self.running()?;
        let answer = running
            .replica
            .raft
            .handle_transfer_leader(request)
            .await
            .map_err(Denied::stopped)?;
        answer.map_err(|error| Denied::Refused(error.to_string()))
    }
}

/// Checks that a candidate asks for votes for itself, and that a leader sends its own entries and
/// snapshots. So a member cannot make others vote for or follow a third node.
fn must_be_own(from: u64, voted_for: u64) -> Result<(), Denied> {
    if from == voted_for {
        Ok(())
    } else {
        Err(Denied::Misused(
            "a node may ask for votes and send entries only for itself",
        ))
    }
}

/// Reads an append. Returns `None` if the append cannot be read or was sent in another node's name.
/// The append has then been answered, and its stream must end.
async fn read_append(
    from: u64,
    streamed: StreamedAppend,
) -> Option<(AppendEntriesRequest<TypeConfig>, Reply)> {
    let (request, reply) = append::read(streamed).await?;
    match must_be_own(from, request.vote.leader_id().node_id) {
        Ok(()) => Some((request, reply)),
        Err(denied) => {
            reply.send(Err(denied));
            None
        }
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Denied> {
    Ok(wire::decode(body)?)
}

fn reply<T: Serialize>(records: RecordVersion, answer: T) -> Result<Vec<u8>, Denied> {
    Ok(wire::encode(records, &answer))
}

impl PeerService {
    /// Rejects a removed node, whose number is never reused.
    fn must_not_be_removed(&self, node: u64) -> Result<(), Denied> {
        let removal = (self.bootstrap.slot.get()).and_then(|here| here.replica.removal_of(node));
        removal.map_or(Ok(()), |index| Err(Denied::Removed { node, index }))
    }

    /// Rejects a caller that belongs to another cluster or to none, that was removed, or whose
    /// version is older than the cluster's feature level.
    fn greet_member(&self, hello: &Hello) -> Result<(), Denied> {
        let (slot, peers) = (&self.bootstrap.slot, &self.bootstrap.peers);
        let (me, from) = (self.bootstrap.config.node_id, hello.from);
        let level = Level(hello.level);
        let reason = match (peers.cluster(), hello.cluster) {
            (Some(mine), Some(theirs)) if mine == theirs => {
                self.must_not_be_removed(from)?;
                if let Some(here) = slot.get() {
                    (here.replica.must_agree(from, level)).map_err(Denied::Refused)?;
                }
                peers.note_level(from, level);
                return Ok(());
            }
            // This cluster's id is not disclosed.
            (Some(_), Some(theirs)) => {
                format!("node {me} belongs to another cluster than node {from}, whose is {theirs}")
            }
            (None, Some(_)) => {
                self.bootstrap.note_lost_data();
                format!("node {me} has no data of a cluster")
            }
            (None, None) => format!("node {me} does not belong to a cluster yet"),
            (_, None) => format!("node {from} does not belong to a cluster yet"),
        };
        Err(Denied::Refused(reason))
    }
}

impl Handler for PeerService {
    fn greet(&self, hello: &Hello, version: u16) -> Result<Welcome, Denied> {
        let (me, peers) = (self.bootstrap.config.node_id, &self.bootstrap.peers);
        if let Some(to) = hello.to.filter(|to| *to != me) {
            return Err(Denied::Refused(format!(
                "this is node {me}, not node {to}: check the addresses of both"
            )));
        }
        if !hello.introduction {
            self.greet_member(hello)?;
        }
        Ok(Welcome {
            version,
            node: me,
            level: peers.level().0,
            region: peers.region.clone(),
        })
    }

    fn admits(&self, from: u64, method: Method) -> Result<(), Denied> {
        self.must_not_be_removed(from)?;
        let is_raft = matches!(
            method,
            Method::Append
                | Method::Vote
                | Method::PreVote
                | Method::TransferLeader
                | Method::Snapshot
        );
        let here = self.bootstrap.slot.get();
        let failure = here.as_ref().and_then(|here| here.replica.failure());
        if let Some(failure) = failure.filter(|_| is_raft) {
            // Rejected here, because openraft would log an error for each call.
            return Err(Denied::Stopped(failure.to_string().into()));
        }
        match here {
            Some(here) if method.is_order() => match here.replica.membership_without(from) {
                Some(index) => Err(Denied::NotAMember { node: from, index }),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn clock(&self) -> i64 {
        micros(self.bootstrap.env.clock.now()).0
    }

    fn call(
        &self,
        caller: Caller,
        method: Method,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Vec<u8>, Denied>> {
        Box::pin(async move {
            let body: &[u8] = &body;
            let records = caller.records;
            match method {
                Method::Append => Err(Denied::Misused("appends arrive as a stream")),
                Method::Vote | Method::PreVote => {
                    reply(records, self.vote(caller.node, method, read(body)?).await?)
                }
                Method::TransferLeader => {
                    reply(records, self.transfer(caller.node, read(body)?).await?)
                }
                Method::Snapshot => {
                    let running = self.running()?;
                    let call: SnapshotCall = read(body)?;
                    must_be_own(caller.node, call.vote.node)?;
                    let taken = self.intake.take(&running, caller.node, call);
                    reply(records, taken.await?)
                }
                Method::Write => Err(Denied::Misused("writes are queued")),
                Method::ReadIndex => reply(records, self.running()?.confirm().await),
                Method::Admin => {
                    let change: MembershipChange = read(body)?;
                    if matches!(&change, MembershipChange::Describe { id, .. } if *id != caller.node)
                    {
                        return Err(Denied::Misused("a node may describe only itself"));
                    }
                    reply(records, Membership(&*self.running()?).change(change).await)
                }
                Method::Checkpoint => {
                    let digest =
                        (self.running()?.replica.views.checkpoints()).digest_after(read(body)?);
                    reply(records, digest.map(|digest| digest.to_string()))
                }
                Method::IsShort => reply(records, self.running()?.is_disk_nearly_full().await),
                Method::MayLead => {
                    let running = self.running()?;
                    let reason = preference::why_not(&self.bootstrap.slot, &running);
                    reply(records, reason.await)
                }
                Method::HeldVote => {
                    let held = index::held_vote(&self.running()?.replica).await;
                    reply(records, held.ok_or(Denied::GivenUp)?)
                }
                Method::ReadPoint => reply(records, index::point(&self.running()?.replica).await),
                Method::LastStart => {
                    reply(records, self.running()?.replica.last_start(read(body)?))
                }
                Method::Operate => {
                    let order: Order = read(body)?;
                    reply(records, self.operated.carry_out(caller.node, order).await)
                }
                Method::Join => reply(records, self.join(caller.node, read(body)?).await?),
                Method::Probe => reply(records, self.bootstrap.introduction()),
                Method::Invite => reply(records, self.bootstrap.accept(read(body)?).await?),
            }
        })
    }

    fn write(
        self: Arc<Self>,
        from: u64,
        body: &[u8],
        forwarder: Forwarder,
    ) -> Option<BoxFuture<'static, ()>> {
        let taken = (self.running()).and_then(|running| Ok((running, read(body)?)));
        match taken {
            Ok((running, call)) => running.propose_for(from, call, forwarder),
            Err(denied) => {
                forwarder.refuse::<WriteReply>(Err(denied));
                None
            }
        }
    }

    fn stream_of(&self, body: &Bytes) -> Result<Option<u64>, WireError> {
        append::stream_of(body.clone())
    }

    fn report_unreadable_call(&self, by: u64, error: &WireError) {
        if let Ok(running) = self.running() {
            running.report_unreadable_call(by, error);
        }
    }

    fn append_stream(
        &self,
        from: u64,
        mut appends: mpsc::UnboundedReceiver<StreamedAppend>,
    ) -> BoxFuture<'_, ()> {
        let Ok(running) = self.running() else {
            // Dropping an append sends its answer.
            return Box::pin(std::future::ready(()));
        };
        Box::pin(async move {
            let raft = &running.replica.raft;
            let Some(first) = appends.recv().await else {
                return;
            };
            let is_alone = first.is_alone();
            let Some((mut request, reply)) = read_append(from, first).await else {
                return;
            };
            if mutant!("heartbeat-agrees")
                && request.entries.is_empty()
                && let Ok(last) = raft
                    .with_raft_state(|state| state.log_ids.last().copied())
                    .await
            {
                request.prev_log_id = last;
            }
            if is_alone && request.entries.is_empty() {
                return heartbeat(raft, request, reply).await;
            }
            let replies = Arc::new(Mutex::new(VecDeque::new()));
            let due = replies.clone();
            let first = Some((request, reply));
            let requests = stream::unfold((first, appends), move |(first, mut appends)| {
                let due = due.clone();
                async move {
                    let (request, reply) = match first {
                        Some(first) => first,
                        None => read_append(from, appends.recv().await?).await?,
                    };
                    due.lock().push_back(reply);
                    Some((request, (None, appends)))
                }
            });
            let mut results = std::pin::pin!(raft.stream_append(requests));
            while let Some(result) = results.next().await {
                let reply = replies.lock().pop_front();
                if let Some(reply) = reply {
                    answer_append(reply, result);
                }
            }
        })
    }
}

/// Answers a heartbeat without waiting for the disk.
///
/// openraft answers a heartbeat only when the newest log write that it has accepted is on disk. So
/// during a slow sync this node would seem unreachable to the leader. The answer tells the leader
/// only that this node still followed it after the heartbeat was sent; the leader learns the
/// durable log position through the stream of appends. So it is enough if openraft's task reports,
/// after the heartbeat has arrived, that this node's vote is still for this leader: a later leader
/// needs a vote that this node has not given yet. That vote need not be durable yet: only the
/// answer to a vote request waits for the disk.
async fn heartbeat(raft: &Raft, request: AppendEntriesRequest<TypeConfig>, reply: Reply) {
    let (vote, matching) = (request.vote, request.prev_log_id);
    let requests = stream::once(std::future::ready(request));
    let mut results = std::pin::pin!(raft.stream_append(requests));
    let mut result = results.next();
    let follows = raft.with_raft_state(move |state| *state.vote_ref() == vote);
    let early = tokio::select! {
        biased;
        // A refusal does not wait for the disk.
        result = &mut result => Err(result),
        follows = follows => Ok(matches!(follows, Ok(true))),
    };
    let result = match early {
        Ok(true) => {
            answer_append(reply, Ok(Ok(matching)));
            // openraft still has to process the heartbeat; its answer is discarded.
            let _ = result.await;
            return;
        }
        Ok(false) => result.await,
        Err(result) => result,
    };
    if let Some(result) = result {
        answer_append(reply, result);
    }
}

fn answer_append(reply: Reply, result: Result<StreamAppendResult<TypeConfig>, Fatal<TypeConfig>>) {
    let answer = match result {
        Ok(Ok(flushed)) => Ok(AppendReply::Flushed(flushed.as_ref().map(WireLogId::from))),
        Ok(Err(StreamAppendError::Conflict(id))) => Ok(AppendReply::Conflict((&id).into())),
        Ok(Err(StreamAppendError::HigherVote(vote))) => Ok(AppendReply::HigherVote((&vote).into())),
        Err(fatal) => Err(Denied::stopped(fatal)),
    };
    let records = reply.records;
    reply.send(answer.map(|answer| wire::encode(records, &answer)));
}

#[cfg(test)]
mod tests;
