//! What this node does when another node calls.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use openraft::raft::{StreamAppendError, TransferLeaderError, TransferLeaderRequest, VoteRequest};
use placement_raft_store::wire::{self, WireLogId, WireSnapshotMeta, WireVote};
use placement_raft_store::{
    LogId, Snapshot, SnapshotError, SnapshotMeta, SnapshotReceiver, Vote, runtime,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::formation::Formation;
use super::group::Group;
use super::membership::Demand;
use super::propose::Proposed;
use crate::rpc::message::{
    AppendReply, Hello, Invitation, Method, ReadIndexReply, SnapshotCall, SnapshotReply,
    TransferCall, TransferReply, VoteCall, VoteReply, WriteCall, WriteReply,
};
use crate::rpc::server::{Handler, StreamedAppend};

/// Answers other nodes.
pub(crate) struct PeerCalls {
    formation: Arc<Formation>,
    incoming: tokio::sync::Mutex<Option<Incoming>>,
}

/// A snapshot that is coming in. A newer transfer replaces an older one.
struct Incoming {
    transfer: u64,
    vote: WireVote,
    meta: WireSnapshotMeta,
    bytes: u64,
    receiver: SnapshotReceiver,
}

impl PeerCalls {
    pub(crate) fn new(formation: Arc<Formation>) -> Self {
        Self {
            formation,
            incoming: tokio::sync::Mutex::new(None),
        }
    }

    fn group(&self) -> Result<Arc<Group>, String> {
        self.formation
            .seat
            .now()
            .ok_or_else(|| "this node does not belong to a cluster".to_owned())
    }

    async fn answer(&self, from: u64, method: Method, body: &[u8]) -> Result<Vec<u8>, String> {
        match method {
            Method::Append => Err("appends come as a stream".to_owned()),
            Method::Vote | Method::PreVote => reply(self.vote(method, read(body)?).await?),
            Method::TransferLeader => reply(self.transfer(read(body)?).await?),
            Method::Snapshot => reply(self.snapshot(read(body)?).await?),
            Method::Write => reply(self.write(from, read(body)?).await?),
            Method::ReadIndex => reply(self.read_index(from).await?),
            Method::Admin => {
                let demand: Demand = read(body)?;
                reply(self.group()?.change(demand).await)
            }
            Method::Probe => reply(self.formation.introduction()),
            Method::Invite => {
                let invitation: Invitation = read(body)?;
                self.formation.accept(invitation).await?;
                reply(())
            }
        }
    }

    async fn vote(&self, method: Method, call: VoteCall) -> Result<VoteReply, String> {
        let group = self.group()?;
        let mut request = VoteRequest::new(Vote::from(call.vote), call.last.map(LogId::from));
        request.leadership_transfer = call.transfer;
        let answer = match method {
            Method::PreVote => group.raft.pre_vote(request).await,
            _ => group.raft.vote(request).await,
        }
        .map_err(|error| error.to_string())?;
        Ok(VoteReply {
            vote: (&answer.vote).into(),
            granted: answer.vote_granted,
            last: answer.last_log_id.as_ref().map(WireLogId::from),
        })
    }

    async fn transfer(&self, call: TransferCall) -> Result<TransferReply, String> {
        let request =
            TransferLeaderRequest::new(Vote::from(call.from), call.to, call.last.map(LogId::from));
        let answer = self
            .group()?
            .raft
            .handle_transfer_leader(request)
            .await
            .map_err(|error| error.to_string())?;
        Ok(match answer {
            Ok(()) => TransferReply::Accepted,
            Err(TransferLeaderError::VoteChanged { expected, actual }) => {
                TransferReply::VoteChanged {
                    expected: (&expected).into(),
                    actual: (&actual).into(),
                }
            }
            Err(TransferLeaderError::LogNotFlushed { expected, actual }) => {
                TransferReply::LogNotFlushed {
                    expected: expected.as_ref().map(WireLogId::from),
                    actual: actual.as_ref().map(WireLogId::from),
                }
            }
        })
    }

    async fn snapshot(&self, call: SnapshotCall) -> Result<SnapshotReply, String> {
        let group = self.group()?;
        let mut incoming = self.incoming.lock().await;
        match call {
            SnapshotCall::Begin {
                transfer,
                vote,
                meta,
                bytes,
            } => {
                // The one before is given up first: the disk may not hold both.
                *incoming = None;
                let receiver = group
                    .snapshots
                    .receive()
                    .map_err(|error| error.to_string())?;
                tracing::info!(bytes, "a snapshot comes in");
                *incoming = Some(Incoming {
                    transfer,
                    vote,
                    meta,
                    bytes,
                    receiver,
                });
                Ok(SnapshotReply::Continue)
            }
            SnapshotCall::Chunk {
                transfer,
                offset,
                data,
            } => {
                let mut taken = take_if(&mut incoming, transfer)?;
                if taken.receiver.length() != offset {
                    return Err(format!(
                        "the snapshot's bytes from {} on are due, not those from {offset}",
                        taken.receiver.length()
                    ));
                }
                let (taken, written) = runtime::blocking(move || {
                    let written = taken.receiver.write(&data.0);
                    (taken, written)
                })
                .await;
                written.map_err(|error| format!("cannot write the snapshot: {error}"))?;
                *incoming = Some(taken);
                Ok(SnapshotReply::Continue)
            }
            SnapshotCall::Finish { transfer } => {
                let taken = take_if(&mut incoming, transfer)?;
                drop(incoming);
                install(&group, taken).await
            }
        }
    }

    async fn write(&self, from: u64, call: WriteCall) -> Result<WriteReply, String> {
        let group = self.group()?;
        if !group.leads() {
            return Ok(WriteReply::NotLeader {
                leader: group.leader().map(|leader| leader.id),
            });
        }
        if !group.is_member(from) || call.request.origin != from {
            return Ok(WriteReply::Rejected {
                reason: format!("node {from} is no member of the cluster"),
            });
        }
        Ok(match group.propose(call).await {
            Proposed::Written { index, outcome } => WriteReply::Written { index, outcome },
            Proposed::NotLeader { leader } => WriteReply::NotLeader { leader },
            Proposed::Rejected { reason } => WriteReply::Rejected { reason },
            Proposed::Unknown { reason } => WriteReply::Unknown { reason },
        })
    }

    async fn read_index(&self, from: u64) -> Result<ReadIndexReply, String> {
        let group = self.group()?;
        if group.has_removed(from) {
            return Ok(ReadIndexReply::Removed);
        }
        Ok(group.read_index().await)
    }
}

fn take_if(incoming: &mut Option<Incoming>, transfer: u64) -> Result<Incoming, String> {
    match incoming.take() {
        Some(taken) if taken.transfer == transfer => Ok(taken),
        other => {
            *incoming = other;
            Err("another snapshot comes in, or none".to_owned())
        }
    }
}

async fn install(group: &Group, incoming: Incoming) -> Result<SnapshotReply, String> {
    if incoming.receiver.length() != incoming.bytes {
        return Err(format!(
            "the snapshot has {} bytes, but {} came in",
            incoming.bytes,
            incoming.receiver.length()
        ));
    }
    let meta: SnapshotMeta = incoming
        .meta
        .try_into()
        .map_err(|error: wire::WireError| error.to_string())?;
    let (snapshots, receiver) = (group.snapshots.clone(), incoming.receiver);
    let verified = runtime::blocking({
        let meta = meta.clone();
        move || snapshots.verify(&meta, receiver.finish()?)
    });
    let snapshot = match verified.await {
        Ok(snapshot) => Snapshot { meta, snapshot },
        Err(SnapshotError::Io(error)) => return Err(format!("cannot keep the snapshot: {error}")),
        Err(refused) => {
            let reason = refused.to_string();
            tracing::warn!(reason, "refused a snapshot that came in");
            return Ok(SnapshotReply::Refused { reason });
        }
    };
    let answer = group
        .raft
        .install_full_snapshot(Vote::from(incoming.vote), snapshot)
        .await
        .map_err(|error| error.to_string())?;
    Ok(SnapshotReply::Done((&answer.vote).into()))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    wire::decode(body).map_err(|error| error.to_string())
}

fn reply<T: Serialize>(answer: T) -> Result<Vec<u8>, String> {
    Ok(wire::encode(&answer))
}

impl Handler for PeerCalls {
    fn greet(&self, hello: &Hello) -> Result<(), String> {
        let me = self.node();
        if let Some(to) = hello.to.filter(|to| *to != me) {
            return Err(format!(
                "this is node {me}, not node {to}: check the addresses of both"
            ));
        }
        if hello.introduction {
            return Ok(());
        }
        match (self.formation.peers.cluster(), hello.cluster) {
            (Some(mine), Some(theirs)) if mine == theirs => Ok(()),
            (Some(mine), Some(theirs)) => Err(format!(
                "node {me} belongs to cluster {mine}, node {} to cluster {theirs}",
                hello.from
            )),
            (None, _) => Err(format!("node {me} does not belong to a cluster yet")),
            (_, None) => Err(format!(
                "node {} does not belong to a cluster yet",
                hello.from
            )),
        }
    }

    fn node(&self) -> u64 {
        self.formation.config.node_id
    }

    fn call(
        &self,
        from: u64,
        method: Method,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        Box::pin(async move { self.answer(from, method, &body).await })
    }

    fn append_stream(&self, appends: mpsc::UnboundedReceiver<StreamedAppend>) -> BoxFuture<'_, ()> {
        let Ok(group) = self.group() else {
            // Unanswered appends answer themselves when they are dropped.
            return Box::pin(std::future::ready(()));
        };
        Box::pin(async move {
            let replies = Arc::new(Mutex::new(VecDeque::new()));
            let due = replies.clone();
            let requests = futures::stream::unfold(appends, move |mut appends| {
                let due = due.clone();
                async move {
                    let append: StreamedAppend = appends.recv().await?;
                    let mut due = due.lock().unwrap_or_else(PoisonError::into_inner);
                    due.push_back(append.reply);
                    Some((append.request, appends))
                }
            });
            let mut results = std::pin::pin!(group.raft.stream_append(requests));
            while let Some(result) = results.next().await {
                let answer = match result {
                    Ok(Ok(flushed)) => {
                        Ok(AppendReply::Flushed(flushed.as_ref().map(WireLogId::from)))
                    }
                    Ok(Err(StreamAppendError::Conflict(id))) => {
                        Ok(AppendReply::Conflict((&id).into()))
                    }
                    Ok(Err(StreamAppendError::HigherVote(vote))) => {
                        Ok(AppendReply::HigherVote((&vote).into()))
                    }
                    Err(fatal) => Err(fatal.to_string()),
                };
                let reply = replies
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .pop_front();
                if let Some(reply) = reply {
                    reply.send(answer.map(|answer| wire::encode(&answer)));
                }
            }
        })
    }
}
