//! The leader's side of a write. The leader admits writes while its backlog has room, stamps them
//! in log order, and proposes them in batches.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use openraft::ServerState;
use openraft::alias::CommittedLeaderIdOf;
use openraft::errors::ClientWriteError;
use openraft::impls::ProgressResponder;
use openraft::raft::ClientWriteResult;
use placement_base::coverage::RarePath;
use placement_base::runtime;
use placement_model::mutant;
use placement_model::types::Timestamp;
use placement_model::{Command, Stamped};
use placement_raft_store::wire::WireError;
use placement_raft_store::{Applied, LoggedCommand, TypeConfig, wire};
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tracing::{Instrument, Span};

use crate::backlog::Permit;
use crate::running::{Proposal, ProposalOrigin, Running};
use placement_base::backend::uuid_of_request;
use placement_base::tasks::Tasks;
use placement_base::trace;
use placement_peer::raft::messages::{WriteCall, WriteReply};
use placement_peer::transport::reply::Forwarder;

/// Maximum length of a record that is decoded on the calling thread, in bytes.
const INLINE_BYTES: usize = 64 * 1024;
/// Maximum number of writes in one batch.
const BATCH_MAX: usize = 512;
/// How long a new leader waits until it has applied the commands that earlier leaders stamped.
const SETTLE: Duration = Duration::from_secs(1);
/// Why a leader that is stopping rejects writes.
const STOPPING: &str = "the leader is stopping";
/// Why a leader rejects writes before it has applied the commands that earlier leaders stamped.
const UNSETTLED: &str = "the leader has not applied the entries of earlier leaders yet";

impl Running {
    /// Commits a write of this node, unless its deadline passes while it is queued.
    pub(crate) async fn propose(
        &self,
        mut call: WriteCall,
        deadline: Instant,
    ) -> Result<(), WriteReply> {
        call.trace = trace::traceparent();
        let span = span_of(&call);
        let permit = self.permit(&call)?;
        let read = match decode_here(&call) {
            Some(read) => read,
            None => decode_apart(&call).await,
        };
        let command = self.command(read)?;
        let (answer, proposed) = oneshot::channel();
        self.queue(Proposal {
            call,
            command,
            deadline,
            permit,
            asker: ProposalOrigin::Here(answer),
            span,
        });
        proposed
            .await
            .unwrap_or_else(|_| Err(WriteReply::Unknown(STOPPING.to_owned())))
    }

    /// Commits a write that another node forwards. If the record is long, returns a future that
    /// decodes and queues it.
    pub(crate) fn propose_for(
        self: Arc<Self>,
        from: u64,
        call: WriteCall,
        forwarder: Forwarder,
    ) -> Option<BoxFuture<'static, ()>> {
        let deadline = Instant::now() + Duration::from_millis(call.patience_ms.into());
        let span = span_of(&call);
        let taken = self.must_be_forwarded(from, &call);
        let permit = match taken.and_then(|()| self.permit(&call)) {
            Ok(permit) => permit,
            Err(refused) => {
                forwarder.refuse(Ok(&refused));
                return None;
            }
        };
        let queue = move |node: &Self, call: WriteCall, read| match node.command(read) {
            Ok(command) => node.queue(Proposal {
                call,
                command,
                deadline,
                permit,
                asker: ProposalOrigin::There(forwarder),
                span,
            }),
            Err(refused) => forwarder.refuse(Ok(&refused)),
        };
        if let Some(read) = decode_here(&call) {
            queue(&self, call, read);
            return None;
        }
        Some(Box::pin(async move {
            let read = decode_apart(&call).await;
            queue(&self, call, read);
        }))
    }

    /// Rejects a write unless a member forwards it under its own number.
    fn must_be_forwarded(&self, from: u64, call: &WriteCall) -> Result<(), WriteReply> {
        if !self.replica.leads() {
            return Err(WriteReply::NotLeader);
        }
        let origin = call.write_id.origin;
        if !self.replica.is_member(from) {
            let reason = format!("node {from} is not a member of the cluster");
            return Err(WriteReply::Rejected(reason));
        }
        if origin != from {
            let reason = format!("node {from} forwards a write under the number of node {origin}");
            return Err(WriteReply::Rejected(reason));
        }
        Ok(())
    }

    /// Reserves room in the backlog.
    fn permit(&self, call: &WriteCall) -> Result<Permit, WriteReply> {
        let bytes = call.command.0.len();
        let bytes_max = self.replica.config.raft.command_bytes;
        if bytes > bytes_max {
            return Err(WriteReply::TooLarge {
                bytes: bytes as u64,
                bytes_max: bytes_max as u64,
            });
        }
        self.backlog.permit(bytes).map_err(WriteReply::Busy)
    }

    /// Rejects commands that this node cannot decode, that need a higher feature level, or for
    /// which the disks have no space, so that they do not enter the log.
    fn command(&self, read: Result<Command, WireError>) -> Result<Command, WriteReply> {
        let mut command = read.map_err(|error| {
            WriteReply::Rejected(format!(
                "the leader, node {}, cannot read it: {error}",
                self.replica.me
            ))
        })?;
        if mutant!("misread-write")
            && let Command::ReplaceAllocations(of) = &mut command
        {
            of.consumers.truncate(1);
        }
        (self.replica.permits(&command)).map_err(WriteReply::Rejected)?;
        (self.replica.has_room_for(&command)).map_err(WriteReply::NoSpace)?;
        Ok(command)
    }

    fn queue(&self, proposal: Proposal) {
        if let Err(SendError(rejected)) = self.proposals.send(proposal) {
            let stopping = WriteReply::Rejected(STOPPING.to_owned());
            rejected.asker.answer(Err(stopping));
        }
    }
}

/// Span from the arrival of a write at the leader until the leader has applied it. Apply identifies
/// the write by its number in the log; this span contains both that number and the request id.
fn span_of(call: &WriteCall) -> Span {
    trace::span_in(trace::continued(call.trace.as_deref()), || {
        tracing::debug_span!(
            "propose",
            request_id = %call.request_id,
            origin = call.write_id.origin,
            boot = call.write_id.boot,
            sequence = call.write_id.sequence,
        )
    })
}

/// Decodes a record, unless it is long.
fn decode_here(call: &WriteCall) -> Option<Result<Command, WireError>> {
    let record = &call.command.0;
    (record.len() <= INLINE_BYTES).then(|| wire::decode(record))
}

/// Decodes a long record on another thread.
async fn decode_apart(call: &WriteCall) -> Result<Command, WireError> {
    let record = call.command.0.clone();
    runtime::blocking(move || wire::decode(&record)).await
}

/// Stamps commands with times that never decrease, not even if the leader changes.
#[derive(Default)]
struct Stamper {
    last: Timestamp,
}

impl Stamper {
    /// Returns the time for the next command: `now`, but later than all earlier stamps. These are
    /// the stamps of this stamper, and the stamp of the last applied command, from any leader.
    fn stamp(&mut self, now: Timestamp, applied: Option<Timestamp>) -> Timestamp {
        let before = self.last.max(applied.unwrap_or(Timestamp(0)));
        self.last = now.max(Timestamp(before.0.saturating_add(1)));
        self.last
    }
}

/// Identifies one leadership by its term and the leader's number.
type LeaderId = CommittedLeaderIdOf<TypeConfig>;

/// The latest leadership in which this node has applied all entries of earlier leaders.
#[derive(Default)]
struct SettledLeadership(Option<LeaderId>);

impl SettledLeadership {
    /// In a new leadership, waits briefly until all entries of earlier leaders are applied.
    ///
    /// # Errors
    /// They are not applied in time, so no write may be stamped.
    async fn settle(
        &mut self,
        leader: LeaderId,
        all_is_applied: impl Future<Output = bool>,
    ) -> Result<(), WriteReply> {
        if self.0 == Some(leader) {
            return Ok(());
        }
        RarePath::ClockSettled.ran();
        if !timeout(SETTLE, all_is_applied).await.unwrap_or(false) {
            return Err(WriteReply::Rejected(UNSETTLED.to_owned()));
        }
        self.0 = Some(leader);
        Ok(())
    }
}

/// Proposes writes one batch after another.
pub(crate) struct Proposer {
    node: Arc<Running>,
    stamper: Stamper,
    tasks: Tasks,
    settled: SettledLeadership,
}

impl Proposer {
    pub(crate) fn new(node: Arc<Running>, tasks: Tasks) -> Self {
        Self {
            node,
            stamper: Stamper::default(),
            tasks,
            settled: SettledLeadership::default(),
        }
    }

    pub(crate) async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Proposal>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while queue.recv_many(&mut batch, BATCH_MAX).await > 0 {
            // If the client no longer waits, the write is not proposed.
            batch.retain(|proposal| !proposal.asker.has_given_up());
            let now = Instant::now();
            let late = batch.extract_if(.., |proposal| proposal.deadline <= now);
            refuse(late, &rejected("its deadline passed while it was queued"));
            if let Some(failure) = self.node.replica.failure() {
                refuse(batch.drain(..), &rejected(&failure));
                continue;
            }
            match self.settle().await {
                Ok(leader) => self.propose(batch.drain(..), leader).await,
                Err(reply) => refuse(batch.drain(..), &reply),
            }
        }
    }

    /// Stamps and proposes a batch, for this leadership only. Raft rejects the proposal if this
    /// node no longer leads or leads again in a later term, because leaders in between may have
    /// stamped later times.
    async fn propose(&mut self, batch: impl Iterator<Item = Proposal>, leader: LeaderId) {
        let mut applied = self.node.replica.views.current().last_stamp;
        if mutant!("stamp-by-the-clock") {
            applied = None;
        }
        let now = self.node.wall_time();
        let mut waiting = Vec::new();
        for mut proposal in batch {
            proposal.asker.proposed();
            let call = proposal.call;
            let commit = (proposal.span).in_scope(|| tracing::debug_span!("commit"));
            let stamped = Stamped {
                at: self.stamper.stamp(now, applied),
                write_id: Some(call.write_id),
                command: proposal.command,
                partition: call.destination.partition,
                routes: call.destination.routes,
                request_id: uuid_of_request(&call.request_id),
            };
            let (responder, result) = ProgressResponder::complete_only();
            // Raft combines all waiting writes into one append.
            let proposed = (self.node.replica.raft)
                .write(LoggedCommand::new(stamped, call.command))
                .with_leader(leader)
                .responder(responder);
            match proposed.await {
                Ok(()) => {
                    let spans = [commit, proposal.span];
                    waiting.push((proposal.asker, result, spans, proposal.permit));
                }
                Err(fatal) => {
                    let reason = format!("replication has stopped on the leader: {fatal}");
                    proposal.asker.answer(Err(WriteReply::Rejected(reason)));
                }
            }
        }
        self.tasks.spawn(async move {
            for (asker, result, [commit, propose], permit) in waiting {
                let proposed = async {
                    let proposed = match result.await {
                        Ok(result) => committed(result),
                        Err(_) => Err(WriteReply::Unknown("replication has stopped".to_owned())),
                    };
                    proposed.map(|index| {
                        permit.answered();
                        tracing::debug!(index, "applied");
                    })
                }
                .instrument(commit)
                .instrument(propose)
                .await;
                asker.answer(proposed);
            }
        });
    }

    /// Before the first stamp of a leadership, waits until everything that earlier leaders stamped
    /// is applied. So time never decreases in the log, even if a clock is wrong. Nothing is
    /// proposed during the wait. If the leader waits because it has no quorum, it could not commit
    /// a write either.
    async fn settle(&mut self) -> Result<LeaderId, WriteReply> {
        let replica = &self.node.replica;
        let (leader, leads, last) = replica.raft_metrics(|metrics| {
            (
                *metrics.vote.leader_id(),
                metrics.state == ServerState::Leader,
                metrics.last_log_index,
            )
        });
        if !leads {
            return Err(WriteReply::NotLeader);
        }
        let all_is_applied = async {
            match last {
                Some(last) => replica.views.wait_applied(last).await.is_ok(),
                None => true,
            }
        };
        (self.settled.settle(leader, all_is_applied).await).map(|()| leader)
    }
}

fn rejected(reason: &str) -> WriteReply {
    WriteReply::Rejected(reason.to_owned())
}

fn refuse(batch: impl Iterator<Item = Proposal>, reply: &WriteReply) {
    for proposal in batch {
        proposal.asker.answer(Err(reply.clone()));
    }
}

fn committed(result: ClientWriteResult<TypeConfig>) -> Result<u64, WriteReply> {
    Err(match result {
        Ok(written) => match written.data {
            Applied::Outcome(_) => return Ok(written.log_id.index()),
            Applied::NoCommand => WriteReply::Unknown("the log entry holds no command".to_owned()),
        },
        Err(ClientWriteError::ForwardToLeader(_)) => WriteReply::NotLeader,
        Err(error) => WriteReply::Unknown(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use placement_model::command::CreateProvider;
    use placement_model::types::{Destination, ProviderUuid};
    use placement_raft_store::wire::{Blob, RecordVersion};
    use uuid::Uuid;

    use super::*;
    use crate::fixtures::SingleMember;

    /// A write of this node, and its command.
    fn call(alone: &SingleMember) -> (WriteCall, Command) {
        let command = Command::CreateProvider(CreateProvider {
            uuid: ProviderUuid(Uuid::from_u128(1)),
            name: "cn1".to_owned().try_into().unwrap(),
            parent: None,
        });
        let call = WriteCall {
            write_id: alone.running.ids.issue().id,
            request_id: String::new(),
            command: Blob(wire::encode(RecordVersion::NEWEST, &command).into()),
            patience_ms: 0,
            destination: Destination::DEFAULT,
            trace: None,
        };
        (call, command)
    }

    /// Asks `leader` to propose a write, and returns its reply.
    async fn reply(
        alone: &SingleMember,
        proposer: &mut Proposer,
        leader: LeaderId,
    ) -> Result<(), WriteReply> {
        let node = &alone.running;
        let (call, command) = call(alone);
        let (answer, proposed) = oneshot::channel();
        let proposal = Proposal {
            permit: node.permit(&call).unwrap(),
            call,
            command,
            deadline: Instant::now() + Duration::from_secs(60),
            asker: ProposalOrigin::Here(answer),
            span: Span::none(),
        };
        proposer.propose([proposal].into_iter(), leader).await;
        proposed.await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn leader_rejects_a_write_under_the_number_of_another_node() {
        let alone = SingleMember::start().await;
        let node = &alone.running;
        let (mut call, _) = call(&alone);
        node.must_be_forwarded(1, &call).unwrap();
        // Its outcome would be stored as that of a write of node 2, and node 2's own write would be
        // lost.
        call.write_id.origin = 2;
        let refused = node.must_be_forwarded(1, &call).unwrap_err();
        assert!(matches!(refused, WriteReply::Rejected(_)), "{refused:?}");
        call.write_id.origin = 5;
        let refused = node.must_be_forwarded(5, &call).unwrap_err();
        assert!(matches!(refused, WriteReply::Rejected(_)), "{refused:?}");
        alone.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn write_that_was_stamped_in_an_earlier_leadership_is_not_proposed() {
        let alone = SingleMember::start().await;
        let (vote, _) = alone.running.replica.vote();
        let leader = *vote.leader_id();
        let mut proposer = Proposer::new(alone.running.clone(), alone.bootstrap.tasks.clone());
        let earlier = LeaderId {
            term: leader.term - 1,
            ..leader
        };
        let refused = reply(&alone, &mut proposer, earlier).await;
        assert!(matches!(refused, Err(WriteReply::NotLeader)), "{refused:?}");
        let view = alone.running.replica.view();
        assert!(
            view.state
                .place(&ProviderUuid(Uuid::from_u128(1)))
                .is_none()
        );
        reply(&alone, &mut proposer, leader).await.unwrap();
        alone.stop().await;
    }

    /// Its client has given up, and may have sent it to another leader.
    #[tokio::test(flavor = "multi_thread")]
    async fn write_whose_deadline_passes_before_its_turn_is_not_proposed() {
        let alone = SingleMember::start().await;
        let node = &alone.running;
        let (late, _) = call(&alone);
        let refused = node.propose(late, Instant::now()).await;
        assert!(
            matches!(refused, Err(WriteReply::Rejected(_))),
            "{refused:?}"
        );
        let provider = ProviderUuid(Uuid::from_u128(1));
        assert!(node.replica.view().state.place(&provider).is_none());
        let (in_time, _) = call(&alone);
        let deadline = Instant::now() + Duration::from_secs(60);
        node.propose(in_time, deadline).await.unwrap();
        alone.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn no_write_of_a_new_leader_is_stamped_before_earlier_entries_are_applied() {
        let mut settled = SettledLeadership::default();
        let [first, second] = [1, 2].map(|term| LeaderId { term, node_id: 1 });
        for _ in 0..3 {
            let unsettled = settled.settle(first, pending()).await;
            assert!(
                matches!(unsettled, Err(WriteReply::Rejected(_))),
                "{unsettled:?}"
            );
            assert!(settled.settle(first, ready(false)).await.is_err());
        }
        settled.settle(first, ready(true)).await.unwrap();
        // Settled until the node leads in another term.
        settled.settle(first, pending()).await.unwrap();
        assert!(settled.settle(second, pending()).await.is_err());
    }

    #[test]
    fn stamps_increase_although_clocks_go_back_or_differ() {
        let mut stamper = Stamper::default();
        let mut stamp = |now, applied: Option<i64>| {
            let applied = applied.map(Timestamp);
            stamper.stamp(Timestamp(now), applied).0
        };
        assert_eq!(stamp(1_000, None), 1_000);
        assert_eq!(stamp(900, None), 1_001);
        // Applied, loaded or installed: another leader's clock was ahead.
        let ahead = Some(2_000);
        assert_eq!(stamp(900, ahead), 2_001);
        assert_eq!(stamp(900, ahead), 2_002);
        assert_eq!(stamp(3_000, ahead), 3_000);
    }
}
