//! The way of a write: it goes to whoever leads, under a number by which it is recognised, until its
//! outcome is known or the time is up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::Either;
use placement_model::mutant;
use placement_model::types::Destination;
use placement_model::{Command, Outcome};
use placement_raft_store::coverage::RarePath;
use placement_raft_store::runtime;
use placement_raft_store::wire::{self, Blob, RecordVersion};
use placement_raft_store::{Expected, Told};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::Instrument;

use super::backlog::Backlog;
use super::own_past::OwnPast;
use super::propose::Proposal;
use super::replica::{Leader, REMOVED, Replica};
use super::write_ids::WriteIds;
use crate::doors::Unavailable;
use crate::rpc::channel::{Channel, Lane};
use crate::rpc::message::{Method, WriteCall, WriteReply};
use crate::rpc::peers::{Peers, decode};
use crate::rpc::raft::upload;

/// Records of more bytes are read where they hold up nobody.
const INLINE_BYTES: usize = 64 * 1024;
/// How long to wait before the same leader is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// Has writes committed, each once, whoever leads.
pub(crate) struct WritePath {
    replica: Arc<Replica>,
    peers: Arc<Peers>,
    ids: Arc<WriteIds>,
    past: Arc<OwnPast>,
    proposals: mpsc::UnboundedSender<Proposal>,
    backlog: Backlog,
}

/// A write that is committed, and applied by this node or by the leader.
pub(super) struct Committed {
    /// Where.
    pub(super) index: u64,
    /// The term of its entry.
    pub(super) term: u64,
    /// What the model answered.
    pub(super) outcome: Outcome,
    /// Until when its client waits.
    pub(super) deadline: Instant,
}

impl WritePath {
    /// `proposals` leads to the proposer.
    pub(super) fn new(
        replica: Arc<Replica>,
        peers: Arc<Peers>,
        ids: WriteIds,
        past: Arc<OwnPast>,
        proposals: mpsc::UnboundedSender<Proposal>,
    ) -> Self {
        Self {
            backlog: Backlog::new("the leader", &replica.config),
            replica,
            peers,
            ids: Arc::new(ids),
            past,
            proposals,
        }
    }

    /// Has a command for the whole cluster committed.
    pub(super) async fn commit(
        &self,
        command: Command,
        request_id: String,
        deadline: Instant,
    ) -> Result<Committed, Unavailable> {
        self.commit_in(Destination::DEFAULT, command, request_id, deadline)
            .await
    }

    /// Has a command committed, once, by whoever leads. It is given time beyond the deadline to get to
    /// the others if it is large. `request_id` is the id of the HTTP request, for the logs.
    pub(super) async fn commit_in(
        &self,
        destination: Destination,
        command: Command,
        request_id: String,
        deadline: Instant,
    ) -> Result<Committed, Unavailable> {
        (self.replica.permits(&command)).map_err(Unavailable::nothing_committed)?;
        self.past.is_known(deadline).await?;
        let record = wire::encode(RecordVersion::of(self.replica.level()), &command);
        let bytes_max = self.replica.config.limits.command_bytes;
        if record.len() > bytes_max {
            return Err(Unavailable::TooLarge {
                bytes: record.len() as u64,
                bytes_max: bytes_max as u64,
            });
        }
        // To the leader, and from there to the others.
        let deadline = deadline + 2 * upload(record.len());
        let id = self.ids.issue();
        let mut request = id.request();
        if mutant!("answered-before-it-is") {
            request.answered_below = request.sequence + 1;
        }
        let call = WriteCall {
            request,
            request_id,
            command: Blob(record.into()),
            patience_ms: 0,
            destination,
        };
        self.send(call, deadline).await
    }

    async fn send(&self, mut call: WriteCall, deadline: Instant) -> Result<Committed, Unavailable> {
        let applied = |(entry, outcome): Told| {
            if outcome == Outcome::AnsweredBefore {
                let reason = "the cluster takes no more writes under this node's number";
                return Err(gave_up(Some(reason.to_owned()), String::new()));
            }
            Ok(Committed {
                index: entry.index(),
                term: entry.committed_leader_id().term,
                outcome,
                deadline,
            })
        };
        // Why the write may be in a log already, if it may.
        let mut unsure: Option<String> = None;
        // Before it is sent: from then on this node may apply it.
        let mut expected = (self.replica.views.expect(&call.request))
            .map_err(|stopped| Unavailable::nothing_committed(stopped.to_string()))?;
        loop {
            if self.replica.is_removed() {
                return Err(gave_up(unsure, REMOVED.to_owned()));
            }
            if let Some(failure) = self.replica.failure() {
                return Err(gave_up(
                    unsure,
                    format!("this node cannot write: {failure}"),
                ));
            }
            let leader = self.replica.leader();
            let target = leader.as_ref().map(|leader| leader.id);
            let answer = match leader {
                Some(leader) => self.ask(&leader, &call, &mut expected, deadline).await,
                None => Err(WriteReply::NotLeader { leader: None }),
            };
            let answer = match answer {
                Ok(told) => return applied(told),
                Err(answer) => answer,
            };
            let why = match answer {
                WriteReply::NoSpace { reason } if unsure.is_none() => {
                    return Err(Unavailable::NoSpace { reason });
                }
                WriteReply::Busy { reason } if unsure.is_none() => {
                    return Err(Unavailable::Busy { reason });
                }
                WriteReply::TooLarge { bytes, bytes_max } if unsure.is_none() => {
                    return Err(Unavailable::TooLarge { bytes, bytes_max });
                }
                // An attempt before may have been committed.
                WriteReply::TooLarge { bytes, bytes_max } => {
                    format!(
                        "the leader takes commands of {bytes_max} bytes, and this one has {bytes}"
                    )
                }
                WriteReply::NoSpace { reason } | WriteReply::Busy { reason } => reason,
                WriteReply::NotLeader { .. } => "no leader is known".to_owned(),
                WriteReply::Rejected { reason } => reason,
                WriteReply::Unknown { reason } => {
                    tracing::info!(
                        request_id = %call.request_id,
                        reason,
                        "the write's outcome is not known, asking again"
                    );
                    RarePath::WriteAskedAgain.ran();
                    if !mutant!("deny-what-was-sent") {
                        unsure = Some(reason.clone());
                    }
                    if mutant!("ask-again-as-another") {
                        call.request = self.ids.issue().request();
                    }
                    if expected.is_over() || mutant!("ask-again-as-another") {
                        expected = (self.replica.views.expect(&call.request))
                            .map_err(|stopped| Unavailable::outcome_unknown(stopped.to_string()))?;
                    }
                    reason
                }
            };
            if Instant::now() >= deadline {
                return Err(gave_up(unsure, why));
            }
            let until = match target {
                // Who was just asked may be about to step down, or to catch up.
                Some(_) => (Instant::now() + PAUSE).min(deadline),
                None => deadline,
            };
            tokio::select! {
                biased;
                Some(told) = expected.told() => return applied(told),
                () = self.replica.other_leader(target, until) => {}
            }
        }
    }

    /// Asks one leader, until this node has seen what became of the write, another one takes over, or the
    /// time is up.
    async fn ask(
        &self,
        leader: &Leader,
        call: &WriteCall,
        expected: &mut Expected,
        deadline: Instant,
    ) -> Result<Told, WriteReply> {
        let sent = AtomicBool::new(false);
        tokio::select! {
            biased;
            known = self.ask_until_known(leader, call, expected, deadline, &sent) => return known,
            () = self.replica.other_leader(Some(leader.id), deadline) => {}
        };
        let reason = if Instant::now() >= deadline {
            format!("the leader, node {}, did not answer in time", leader.id)
        } else {
            format!("node {} was asked, but leads no more", leader.id)
        };
        Err(if sent.into_inner() {
            WriteReply::Unknown { reason }
        } else {
            WriteReply::Rejected { reason }
        })
    }

    /// The leader answers what it refuses. What is committed this node learns when it applies it.
    async fn ask_until_known(
        &self,
        leader: &Leader,
        call: &WriteCall,
        expected: &mut Expected,
        deadline: Instant,
        sent: &AtomicBool,
    ) -> Result<Told, WriteReply> {
        if leader.id == self.replica.me {
            sent.store(true, Ordering::Relaxed);
            return tokio::select! {
                biased;
                told = expected.told() => seen(told),
                Err(refused) = self.propose(call.clone(), deadline) => Err(refused),
            };
        }
        let forward = async {
            let channel = self
                .peers
                .channel(leader.id, &leader.address, Lane::Forward)
                .await?;
            if let Some(wait) = self.crowded(&channel) {
                return Ok(Err(WriteReply::Busy {
                    reason: format!(
                        "the way to the leader is full: a write waits {wait:.1?} on it"
                    ),
                }));
            }
            sent.store(true, Ordering::Relaxed);
            let left = deadline.saturating_duration_since(Instant::now());
            let mut call = call.clone();
            call.patience_ms = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
            let body = wire::encode(channel.records(), &call);
            let known = channel.call_unless(Method::Write, &body, left, expected.told());
            match known.await? {
                Either::Left(told) => Ok(seen(told)),
                Either::Right(answer) => decode(&answer).map(Err),
            }
        };
        let span =
            tracing::debug_span!("forward", request_id = %call.request_id, leader = leader.id);
        match forward.instrument(span).await {
            Ok(reply) => reply,
            Err(error) if error.is_without_effect() => Err(WriteReply::Rejected {
                reason: format!("the leader, node {}, cannot be reached: {error}", leader.id),
            }),
            Err(error) => Err(WriteReply::Unknown {
                reason: format!("the leader, node {}, gave no answer: {error}", leader.id),
            }),
        }
    }

    /// How long a write would wait before it leaves this node, if that is too long.
    fn crowded(&self, channel: &Channel) -> Option<Duration> {
        let limit = Duration::from_millis(self.replica.config.cluster.backlog_ms / 2);
        let wait = channel.delay();
        (!limit.is_zero() && wait > limit).then_some(wait)
    }

    /// Proposes a write here, as the leader, unless its time is over before. Gives where it is committed.
    pub(crate) async fn propose(
        &self,
        call: WriteCall,
        deadline: Instant,
    ) -> Result<u64, WriteReply> {
        let bytes = call.command.0.len();
        let bytes_max = self.replica.config.limits.command_bytes;
        if bytes > bytes_max {
            return Err(WriteReply::TooLarge {
                bytes: bytes as u64,
                bytes_max: bytes_max as u64,
            });
        }
        let place = (self.backlog.place(bytes)).map_err(|reason| WriteReply::Busy { reason })?;
        let command = self.read(&call).await;
        let command = command.map_err(|reason| WriteReply::Rejected { reason })?;
        (self.replica.has_room_for(&command)).map_err(|reason| WriteReply::NoSpace { reason })?;
        let (answer, proposed) = oneshot::channel();
        let proposal = Proposal {
            call,
            command,
            deadline,
            place,
            answer,
        };
        if self.proposals.send(proposal).is_err() {
            return Err(WriteReply::Rejected {
                reason: "this node is stopping".to_owned(),
            });
        }
        proposed.await.unwrap_or_else(|_| {
            Err(WriteReply::Unknown {
                reason: "this node is stopping".to_owned(),
            })
        })
    }

    /// Nothing goes into the log that this node could not read there, or may not decide yet.
    async fn read(&self, call: &WriteCall) -> Result<Command, String> {
        let record = call.command.0.clone();
        let read = match record.len() > INLINE_BYTES {
            true => runtime::blocking(move || wire::decode(&record)).await,
            false => wire::decode(&record),
        };
        let mut command = read.map_err(|error| {
            format!(
                "the leader, node {}, cannot read it: {error}",
                self.replica.me
            )
        })?;
        if mutant!("read-amiss")
            && let Command::ReplaceAllocations(of) = &mut command
        {
            of.consumers.truncate(1);
        }
        self.replica.permits(&command)?;
        Ok(command)
    }
}

/// What this node has seen of a write when it applied it.
fn seen(told: Option<Told>) -> Result<Told, WriteReply> {
    told.ok_or_else(|| WriteReply::Unknown {
        reason: "this node was sent a snapshot in place of the log, which may hold the write"
            .to_owned(),
    })
}

fn gave_up(unsure: Option<String>, reason: String) -> Unavailable {
    match unsure {
        Some(reason) => {
            RarePath::OutcomeUnknown.ran();
            Unavailable::outcome_unknown(reason)
        }
        None => {
            RarePath::NothingCommitted.ran();
            Unavailable::nothing_committed(reason)
        }
    }
}
