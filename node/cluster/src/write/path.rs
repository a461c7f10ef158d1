//! Sends a write from the node that received it to the leader, and repeats this until the outcome
//! is known or the deadline passes. The write has a unique id, so it is committed at most once,
//! even if it is sent to several leaders in turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::Either;
use placement_base::coverage::RarePath;
use placement_model::mutant;
use placement_model::types::Destination;
use placement_model::{Command, Outcome};
use placement_raft_store::wire::{self, Blob, RecordVersion};
use placement_raft_store::{Committed, Expected, Stopped};
use tokio::time::Instant;
use tracing::Instrument;

use crate::replica::{Leader, REMOVED};
use crate::running::Running;
use placement_base::backend::{AppliedWrite, Unavailable};
use placement_base::log_messages::log;
use placement_base::trace;
use placement_peer::raft::messages::{WriteCall, WriteReply};
use placement_peer::raft::network::upload;
use placement_peer::transport::channel::{Channel, decode};
use placement_peer::transport::method::{Lane, Method};

/// Pause before the same leader is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// Why the outcome of a write is unknown although the cluster has seen the write before.
const FORGOTTEN: &str = "the cluster has applied or refused this write but no longer remembers its \
    outcome: too many later writes through this node were answered in the meantime";

/// What is known from the attempts so far.
enum AttemptStatus {
    /// No log contains the write.
    Clean,
    /// A log may contain it. Contains the reason for which its outcome is unknown.
    Sent(String),
}

impl AttemptStatus {
    /// The reason to retry after this reply.
    ///
    /// # Errors
    /// The final result, if a retry is pointless.
    fn asks_again(&self, reply: WriteReply) -> Result<String, Unavailable> {
        let is_clean = matches!(self, Self::Clean);
        match reply {
            WriteReply::NoSpace(reason) if is_clean => Err(Unavailable::NoSpace(reason)),
            WriteReply::Busy(reason) if is_clean => Err(Unavailable::Busy(reason)),
            WriteReply::TooLarge { bytes, bytes_max } if is_clean => {
                Err(Unavailable::TooLarge { bytes, bytes_max })
            }
            WriteReply::TooLarge { bytes, bytes_max } => Ok(format!(
                "the leader accepts commands of {bytes_max} bytes, but this one has {bytes}"
            )),
            WriteReply::NotLeader => Ok("no leader is known".to_owned()),
            WriteReply::NoSpace(reason)
            | WriteReply::Busy(reason)
            | WriteReply::Rejected(reason)
            | WriteReply::Unknown(reason) => Ok(reason),
        }
    }

    fn gave_up(self, reason: String) -> Unavailable {
        match self {
            Self::Sent(reason) => {
                RarePath::OutcomeUnknown.ran();
                Unavailable::outcome_unknown(reason)
            }
            Self::Clean => {
                RarePath::NothingCommitted.ran();
                Unavailable::nothing_committed(reason)
            }
        }
    }
}

impl Running {
    /// Commits a command of the whole cluster, and waits until this node has applied it. `what`
    /// names the command in log lines.
    pub(crate) async fn commit(
        &self,
        command: Command,
        what: String,
    ) -> Result<AppliedWrite, Unavailable> {
        let deadline = Instant::now() + self.replica.config.wait();
        self.commit_in(Destination::DEFAULT, command, what, deadline)
            .await
    }

    /// Commits a command once, waits until this node has applied it, and returns a view of its
    /// partition. The deadline of a large command is extended by the time that its transfer takes.
    /// `request_id` is described at [`WriteCall`].
    pub(crate) async fn commit_in(
        &self,
        destination: Destination,
        command: Command,
        request_id: String,
        deadline: Instant,
    ) -> Result<AppliedWrite, Unavailable> {
        let begun = self.replica.freshness.now();
        (self.replica.permits(&command)).map_err(Unavailable::nothing_committed)?;
        self.wait_until_past_known(deadline).await?;
        let record = wire::encode(RecordVersion::for_level(self.replica.level()), &command);
        let bytes_max = self.replica.config.raft.command_bytes;
        if record.len() > bytes_max {
            return Err(Unavailable::TooLarge {
                bytes: record.len() as u64,
                bytes_max: bytes_max as u64,
            });
        }
        // The record is sent twice in a row: to the leader, and from the leader to the other nodes.
        let deadline = deadline + 2 * upload(record.len());
        let open = self.ids.issue();
        let mut write_id = open.id;
        if mutant!("answered-before-it-is") {
            write_id.answered_below = write_id.sequence + 1;
        }
        let call = WriteCall {
            write_id,
            request_id,
            command: Blob(record.into()),
            patience_ms: 0,
            destination,
            trace: None,
        };
        let Committed { at, outcome } = self.send_write(call, deadline).await?;
        if outcome == Outcome::AnsweredBefore {
            let cluster = &self.replica.views.current().cluster;
            let reason = if cluster.is_retired(self.replica.me) {
                "the cluster accepts no more writes under this node's number"
            } else {
                FORGOTTEN
            };
            return Err(AttemptStatus::Sent(reason.to_owned()).gave_up(String::new()));
        }
        // Everything acknowledged before this write began precedes it in the log.
        self.replica.freshness.confirm(begun);
        let view = match self.replica.view().in_partition(destination.partition) {
            Some(view) => view,
            // The partition is deleted. The response to a refused write contains no rows, so any
            // view is suitable.
            None if matches!(outcome, Outcome::Refused(_)) => self.replica.view(),
            None => return Err(Unavailable::outcome_unknown("its partition is deleted")),
        };
        Ok(AppliedWrite {
            outcome,
            index: self.replica.place(at.index()),
            term: at.committed_leader_id().term,
            view,
        })
    }

    async fn send_write(
        &self,
        mut call: WriteCall,
        deadline: Instant,
    ) -> Result<Committed, Unavailable> {
        let mut doubt = AttemptStatus::Clean;
        // Registered before the write is sent, because this node may apply it from then on.
        let mut expected = (self.replica.views.expect(&call.write_id))
            .map_err(|stopped| Unavailable::nothing_committed(stopped.to_string()))?;
        loop {
            if self.replica.is_removed() {
                return Err(doubt.gave_up(REMOVED.to_owned()));
            }
            if let Some(failure) = self.replica.failure() {
                return Err(doubt.gave_up(format!("this node cannot write: {failure}")));
            }
            let leader = self.replica.leader();
            let target = leader.as_ref().map(|leader| leader.id);
            let attempt = match leader {
                Some(leader) => {
                    self.attempt_write(&leader, &call, &mut expected, deadline)
                        .await
                }
                None => Err(WriteReply::NotLeader),
            };
            let reply = match attempt {
                Ok(committed) => return Ok(committed),
                Err(reply) => reply,
            };
            if let WriteReply::Unknown(reason) = &reply {
                log!(
                    WRITE_OUTCOME_UNKNOWN,
                    request_id = %call.request_id,
                    reason,
                    "the outcome of a write is unknown; asking again"
                );
                RarePath::WriteAskedAgain.ran();
                if !mutant!("deny-what-was-sent") {
                    doubt = AttemptStatus::Sent(reason.clone());
                }
                let stopped = |stopped: Stopped| Unavailable::outcome_unknown(stopped.to_string());
                if mutant!("ask-again-as-another") {
                    call.write_id = self.ids.issue().id;
                    expected = (self.replica.views.expect(&call.write_id)).map_err(stopped)?;
                }
                (self.replica.views.renew(&mut expected, &call.write_id)).map_err(stopped)?;
            }
            let why = doubt.asks_again(reply)?;
            if Instant::now() >= deadline {
                return Err(doubt.gave_up(why));
            }
            let until = match target {
                // The leader may be about to step down, or may have to catch up first.
                Some(_) => (Instant::now() + PAUSE).min(deadline),
                None => deadline,
            };
            tokio::select! {
                biased;
                Some(committed) = expected.answer() => return Ok(committed),
                () = self.replica.other_leader(target, until) => {}
            }
        }
    }

    /// Asks one leader until this node has applied the write, another leader takes over, or the
    /// deadline passes.
    async fn attempt_write(
        &self,
        leader: &Leader,
        call: &WriteCall,
        expected: &mut Expected,
        deadline: Instant,
    ) -> Result<Committed, WriteReply> {
        let sent = AtomicBool::new(false);
        tokio::select! {
            biased;
            known = self.attempt_until_known(leader, call, expected, deadline, &sent) => return known,
            () = self.replica.other_leader(Some(leader.id), deadline) => {}
        };
        let reason = if Instant::now() >= deadline {
            format!("the leader, node {}, did not answer in time", leader.id)
        } else {
            format!(
                "node {} no longer leads, after the write was sent to it",
                leader.id
            )
        };
        Err(if sent.into_inner() {
            WriteReply::Unknown(reason)
        } else {
            WriteReply::Rejected(reason)
        })
    }

    /// The leader replies only if it refuses the write. This node learns of a commit when it
    /// applies the entry.
    async fn attempt_until_known(
        &self,
        leader: &Leader,
        call: &WriteCall,
        expected: &mut Expected,
        deadline: Instant,
        sent: &AtomicBool,
    ) -> Result<Committed, WriteReply> {
        if leader.id == self.replica.me {
            sent.store(true, Ordering::Relaxed);
            return tokio::select! {
                biased;
                committed = expected.answer() => applied(committed),
                Err(refused) = self.propose(call.clone(), deadline) => Err(refused),
            };
        }
        let forward = async {
            let channel = self
                .peers
                .channel(leader.id, &leader.address, Lane::Forward)
                .await?;
            if let Some(wait) = self.crowded(&channel) {
                let reason = format!("the send queue to the leader is full ({wait:.1?} of delay)");
                return Ok(Err(WriteReply::Busy(reason)));
            }
            sent.store(true, Ordering::Relaxed);
            let left = deadline.saturating_duration_since(Instant::now());
            let mut call = call.clone();
            call.patience_ms = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
            call.trace = trace::traceparent();
            let body = wire::encode(channel.records(), &call);
            let known = channel.call_unless(Method::Write, &body, left, expected.answer());
            match known.await? {
                Either::Left(committed) => Ok(applied(committed)),
                Either::Right(answer) => decode(&answer).map(Err),
            }
        };
        let span =
            tracing::debug_span!("forward", request_id = %call.request_id, leader = leader.id);
        match forward.instrument(span).await {
            Ok(reply) => reply,
            Err(error) if error.is_without_effect() => Err(WriteReply::Rejected(format!(
                "the leader, node {}, cannot be reached: {error}",
                leader.id
            ))),
            Err(error) => Err(WriteReply::Unknown(format!(
                "the leader, node {}, did not answer: {error}",
                leader.id
            ))),
        }
    }

    /// The delay that a write would have in the send queue to the leader, if it is too long.
    fn crowded(&self, channel: &Channel) -> Option<Duration> {
        let limit = Duration::from_millis(self.replica.config.cluster.backlog_ms / 2);
        let wait = channel.delay();
        (!limit.is_zero() && wait > limit).then_some(wait)
    }
}

/// The result of a write that this node has applied; `None` if a snapshot replaced the log entry.
fn applied(committed: Option<Committed>) -> Result<Committed, WriteReply> {
    committed.ok_or_else(|| {
        let reason = "this node received a snapshot instead of the log; it may contain the write";
        WriteReply::Unknown(reason.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use placement_model::command::{CreateProvider, WriteId};
    use placement_model::types::ProviderUuid;
    use uuid::Uuid;

    use super::*;
    use crate::fixtures::SingleMember;

    fn create(number: u128) -> Command {
        Command::CreateProvider(CreateProvider {
            uuid: ProviderUuid(Uuid::from_u128(number)),
            name: format!("cn{number}").try_into().unwrap(),
            parent: None,
        })
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn write_whose_outcome_was_forgotten_is_reported_as_unknown() {
        let alone = SingleMember::start().await;
        let node = &alone.running;
        // By this write the node announces that all its earlier ones are answered.
        let later = WriteCall {
            write_id: WriteId {
                sequence: 100,
                answered_below: 100,
                ..node.ids.issue().id
            },
            request_id: String::new(),
            command: Blob(wire::encode(RecordVersion::NEWEST, &create(1)).into()),
            patience_ms: 0,
            destination: Destination::DEFAULT,
            trace: None,
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        node.propose(later, deadline).await.unwrap();
        let error = node.commit(create(2), String::new()).await.unwrap_err();
        assert_eq!(error, Unavailable::outcome_unknown(FORGOTTEN));
        alone.stop().await;
    }
}
