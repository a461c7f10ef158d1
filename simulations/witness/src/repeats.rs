//! Writes of allocations that are sent again with the same request id.
//!
//! If the first attempt is in the log, the model refuses the second one for the consumer's
//! generation. It is nevertheless answered 204 if the first attempt made the last change to each of
//! its consumers, and the node's change log contains that change. The write counts once, at the log
//! entry of the first attempt.

use std::collections::BTreeMap;

use placement_model::command::Command;
use placement_model::types::ConsumerUuid;
use placement_model::{Outcome, Refusal, Stamped};

use crate::history::{Answer, History};
use crate::operation::{Operation, Write, consumers};
use crate::oracle::Oracle;
use crate::promise;

/// The log entries that changed each consumer, and the conflicts that may have to be 204.
#[derive(Default)]
pub(crate) struct ConsumerChanges {
    by_consumer: BTreeMap<ConsumerUuid, Vec<u64>>,
    /// Renames of resource classes. A claim that names the old one no longer equals the state.
    renames: Vec<u64>,
    conflicts: Vec<Conflict>,
}

/// A repeated write that was answered with a conflict.
struct Conflict {
    event: usize,
    index: u64,
    /// The log entry of the earlier attempt.
    earlier: u64,
}

impl ConsumerChanges {
    /// Executes a log entry and records the consumers that it changes.
    pub(crate) fn entry(&mut self, index: u64, stamped: &Stamped, oracle: &mut Oracle) -> Outcome {
        let consumers = consumers(&stamped.command);
        let before: Vec<_> = consumers.iter().map(|one| oracle.consumer(one)).collect();
        let outcome = oracle.entry(stamped);
        for (consumer, before) in consumers.into_iter().zip(before) {
            if oracle.consumer(consumer) != before {
                let changes = self.by_consumer.entry(consumer.clone()).or_default();
                changes.push(index);
            }
        }
        if let Command::RenameResourceClass(_) = stamped.command {
            self.renames.push(index);
        }
        outcome
    }

    /// The log entry of an earlier attempt of the write at `index`, if it made the last change to
    /// each consumer before that entry.
    fn earlier_attempt(&self, index: u64, log: &BTreeMap<u64, Stamped>) -> Option<u64> {
        let here = log.get(&index)?;
        let mut last = consumers(&here.command).into_iter().map(|consumer| {
            let changes = self.by_consumer.get(consumer)?;
            let before = changes.partition_point(|change| *change < index);
            changes[..before].last().copied()
        });
        let earlier = last.next()??;
        let (there, is_alone) = (log.get(&earlier)?, last.all(|other| other == Some(earlier)));
        let is_attempt = there.command == here.command
            && there.request_id == here.request_id
            && there.partition == here.partition;
        (is_alone && is_attempt).then_some(earlier)
    }

    /// Judges the answer to a write whose log entry was refused for a consumer's generation.
    pub(crate) fn judge(
        &mut self,
        event: usize,
        (index, log): (u64, &BTreeMap<u64, Stamped>),
        (write, answer): (&Write, &Answer),
        oracle: &Oracle,
    ) -> Judged {
        let earlier = self.earlier_attempt(index, log);
        match (earlier, answer.status) {
            (Some(earlier), 204) => Judged::Repeats(earlier),
            (None, 204) => Judged::Wrong(format!(
                "{}: log entry {index} was refused, but its request got 204, and no earlier \
                 attempt of it made the last change to its consumers",
                promise::REPEATED_ONCE
            )),
            (Some(earlier), _) if oracle.is_as_requested(&write.command) => {
                self.conflicts.push(Conflict {
                    event,
                    index,
                    earlier,
                });
                Judged::Refused
            }
            _ => Judged::Refused,
        }
    }

    /// The conflicts that must have been 204: while the node decided, its change log contained the
    /// change of the earlier attempt, and nothing had changed the consumers since.
    pub(crate) fn wrong_conflicts(&self, history: &History) -> Vec<String> {
        let is_wrong = |conflict: &&Conflict| {
            let event = &history.events[conflict.event];
            let (Some(kept), Operation::Write(write)) = (event.change_log, &event.operation) else {
                return false;
            };
            let since = |changes: &[u64]| {
                let later = |index: &u64| (conflict.index + 1..=kept.last).contains(index);
                changes.iter().any(later)
            };
            let changed = |consumer: &ConsumerUuid| {
                (self.by_consumer.get(consumer)).is_some_and(|changes| since(changes))
            };
            kept.after < conflict.earlier
                && !since(&self.renames)
                && !consumers(&write.command).into_iter().any(changed)
        };
        let wrong = self.conflicts.iter().filter(is_wrong);
        wrong
            .map(|conflict| {
                format!(
                    "{}: a write got a conflict, but log entry {} of its earlier attempt made the \
                     last change to its consumers\n    {}",
                    promise::REPEATED_ONCE,
                    conflict.earlier,
                    history.events[conflict.event].line()
                )
            })
            .collect()
    }
}

/// The verdict on the answer to a refused write.
pub(crate) enum Judged {
    /// The answer repeats the success of an earlier attempt, with this log entry.
    Repeats(u64),
    /// The answer must repeat the refusal.
    Refused,
    /// The answer is wrong.
    Wrong(String),
}

/// Whether this is a refusal for the generation of a consumer.
pub(crate) fn is_conflict(command: &Command, outcome: &Outcome) -> bool {
    let conflicts = matches!(
        outcome,
        Outcome::Refused(Refusal::ConsumerGenerationConflict { .. })
    );
    conflicts && matches!(command, Command::ReplaceAllocations(_))
}
