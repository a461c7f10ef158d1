//! A second check of linearizability that does not use the log: the algorithm of Wing, Gong and
//! Lowe, applied to the history of one consumer at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use placement_model::command::{Command, ConsumerGeneration, DeleteAllocations};
use placement_model::{Outcome, Refusal, Reply};
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History as WglHistory};
use todc_utils::specifications::Specification;
use uuid::Uuid;

use crate::history::{Answer, Event, History};
use crate::operation::{Level, Operation, QuestionKind, claims, consumers};
use crate::oracle::expected;
use crate::witness::Finding;

/// Longest history to search, since the search is exponential in the worst case. The witness checks
/// longer ones.
const EVENTS_MAX: usize = 400;

/// An observed operation on one consumer.
#[derive(Debug, Clone)]
enum ConsumerOperation {
    /// A claim that succeeded.
    Claimed(ConsumerGeneration, Held),
    /// An empty claim that released all allocations.
    Emptied(ConsumerGeneration),
    /// A claim that is answered as done, since an earlier attempt has succeeded.
    Repeated(ConsumerGeneration, Held),
    /// A claim with choices whose consumers already hold one of them.
    Held(Held),
    /// A claim with a wrong expected generation.
    Conflict(ConsumerGeneration),
    /// A claim that exceeded the capacity; it reveals only the generation of the consumer.
    NoRoom(ConsumerGeneration),
    /// A claim for an unknown provider, which creates a missing consumer without allocations.
    LeftBehind(ConsumerGeneration),
    /// A release; false if there was nothing to release.
    Released(bool),
    /// The result of a linearizable read.
    Read(Option<(i64, Held)>),
}

/// The user that marks the claim; `None` for a consumer without allocations.
type Held = Option<String>;

struct ConsumerRegister;

impl Specification for ConsumerRegister {
    type State = Option<(i64, Held)>;
    type Operation = ConsumerOperation;

    fn init() -> Self::State {
        None
    }

    fn apply(operation: &ConsumerOperation, state: &Self::State) -> (bool, Self::State) {
        let agrees = |belief: &ConsumerGeneration| match belief {
            ConsumerGeneration::Unchecked => true,
            ConsumerGeneration::New => state.is_none(),
            ConsumerGeneration::Expect(at) => state.as_ref().is_some_and(|one| one.0 == at.0),
        };
        let held = state.clone().filter(|one| one.1.is_some());
        match operation {
            ConsumerOperation::Claimed(belief, held) => {
                let generation = state.as_ref().map_or(0, |one| one.0) + 1;
                (agrees(belief), Some((generation, held.clone())))
            }
            // A consumer without allocations stays, or is created without any.
            ConsumerOperation::Emptied(belief) if held.is_none() => {
                (agrees(belief), state.clone().or(Some((0, None))))
            }
            ConsumerOperation::Emptied(belief) => (agrees(belief), None),
            ConsumerOperation::Repeated(belief, claimed) => {
                let expected = match belief {
                    ConsumerGeneration::Expect(at) => at.0,
                    ConsumerGeneration::New | ConsumerGeneration::Unchecked => 0,
                };
                let is_done = match claimed {
                    Some(_) => *state == Some((expected + 1, claimed.clone())),
                    None => state.is_none(),
                };
                (is_done, state.clone())
            }
            ConsumerOperation::Held(claimed) => {
                let holds = state.as_ref().is_some_and(|one| one.1 == *claimed);
                (holds, state.clone())
            }
            ConsumerOperation::Conflict(belief) => (!agrees(belief), state.clone()),
            ConsumerOperation::NoRoom(belief) => (agrees(belief), state.clone()),
            ConsumerOperation::LeftBehind(belief) => {
                (agrees(belief), state.clone().or(Some((0, None))))
            }
            ConsumerOperation::Released(found) => (
                held.is_some() == *found,
                if *found { None } else { state.clone() },
            ),
            ConsumerOperation::Read(shown) => (*shown == held, state.clone()),
        }
    }
}

/// Result of the second check.
#[derive(Debug, Default)]
pub struct LinearizabilityReport {
    /// Consumers whose histories are not linearizable.
    pub violations: Vec<String>,
    /// Consumers whose histories were searched.
    pub searched: usize,
    /// Consumers whose histories were too long.
    pub skipped: usize,
}

/// Searches for a linearization of each consumer's history. It takes from the witness's finding
/// only which unanswered writes were executed, and which refusals left a consumer behind.
pub fn check(history: &History, finding: &Finding) -> LinearizabilityReport {
    let mut opinion = LinearizabilityReport::default();
    let holders = holders(history);
    for consumer in all_consumers(history).difference(&holders).copied() {
        let spans = spans(history, finding, consumer);
        if spans.len() > EVENTS_MAX {
            opinion.skipped += 1;
        } else if !spans.is_empty() {
            opinion.searched += 1;
            if !WGLChecker::<ConsumerRegister>::is_linearizable(actions(&spans)) {
                let lines = spans
                    .iter()
                    .map(|span| format!("\n    {}", span.event.line()));
                opinion.violations.push(format!(
                    "the history of consumer {consumer} is not linearizable:{}",
                    lines.collect::<String>()
                ));
            }
        }
    }
    opinion
}

fn all_consumers(history: &History) -> BTreeSet<Uuid> {
    history
        .events
        .iter()
        .flat_map(|event| match &event.operation {
            Operation::Write(write) => (consumers(&write.command).into_iter())
                .map(ToString::to_string)
                .collect(),
            Operation::Read(question, _) => match &question.asked {
                QuestionKind::Allocations(consumer) => vec![consumer.to_string()],
                _ => Vec::new(),
            },
        })
        .filter_map(|consumer| consumer.parse().ok())
        .collect()
}

/// The consumers that had a hold or may have had one: leases end, and other consumers' claims end
/// holds, without an operation on the consumer. The witness checks them by the log.
fn holders(history: &History) -> BTreeSet<Uuid> {
    let claims = history
        .events
        .iter()
        .filter_map(|event| match &event.operation {
            Operation::Write(write) => match &write.command {
                Command::Claim(claim) if claim.hold.is_some() => Some(&claim.claimants),
                _ => None,
            },
            Operation::Read(..) => None,
        });
    let consumers = claims.flatten().map(|one| one.consumer.to_string());
    consumers
        .filter_map(|consumer| consumer.parse().ok())
        .collect()
}

/// An observed operation with its duration.
struct Span<'a> {
    event: &'a Event,
    ended: Duration,
    seen: ConsumerOperation,
}

fn spans<'a>(history: &'a History, finding: &Finding, consumer: Uuid) -> Vec<Span<'a>> {
    let mut spans = Vec::new();
    for (number, event) in history.events.iter().enumerate() {
        let outcome = finding.effects.get(&number).map(|(_, outcome)| outcome);
        let answered = event.answer().filter(|answer| answer.status < 500);
        let ended = match answered {
            Some(_) => event.ended.unwrap_or(Duration::MAX),
            None => Duration::MAX,
        };
        let is_repeated = finding.repeats.contains_key(&number);
        let seen = parse_event(event, answered, outcome, (consumer, is_repeated));
        spans.extend(seen.map(|seen| Span { event, ended, seen }));
    }
    spans
}

fn parse_event(
    event: &Event,
    answered: Option<&Answer>,
    outcome: Option<&Outcome>,
    (consumer, is_repeated): (Uuid, bool),
) -> Option<ConsumerOperation> {
    let write = match &event.operation {
        Operation::Write(write) => write,
        Operation::Read(question, Level::Default | Level::Linearizable) => {
            // Answers before 1.28 do not contain the generation.
            let whole =
                question.asked == QuestionKind::Allocations(consumer) && question.minor >= 28;
            return answered.filter(|_| whole).map(parse_read);
        }
        Operation::Read(..) => return None,
    };
    let (status, conflict) = match answered {
        Some(answer) => (answer.status, says_conflict(answer)),
        None => {
            let right = expected(write, outcome?);
            (right.status, right.code == Some(CONCURRENT))
        }
    };
    let of =
        |named: &placement_model::types::ConsumerUuid| named.to_string() == consumer.to_string();
    if let Command::DeleteAllocations(DeleteAllocations { consumer: released }) = &write.command {
        return match status {
            204 | 404 if of(released) => Some(ConsumerOperation::Released(status == 204)),
            _ => None,
        };
    }
    if let Command::Claim(claim) = &write.command {
        let claimant = claim.claimants.iter().find(|one| of(&one.consumer))?;
        let held = Some(claimant.user.to_string());
        let is_held = match answered {
            Some(answer) => answer.json()["repeated"] == true,
            None => matches!(
                outcome,
                Some(Outcome::Done(Reply::Claimed { repeated: true, .. }))
            ),
        };
        return match status {
            200 if is_held => Some(ConsumerOperation::Held(held)),
            200 => Some(ConsumerOperation::Claimed(claimant.generation, held)),
            // With several consumers the answer does not name the conflicting one.
            409 if conflict => (claim.claimants.len() == 1)
                .then_some(ConsumerOperation::Conflict(claimant.generation)),
            409 => Some(ConsumerOperation::NoRoom(claimant.generation)),
            _ => None,
        };
    }
    let all = claims(&write.command);
    let claim = all.iter().find(|claim| of(&claim.consumer))?;
    let left_behind = matches!(
        outcome,
        Some(Outcome::Refused(Refusal::AllocationProviderNotFound(_)))
    );
    match status {
        204 if is_repeated => Some(ConsumerOperation::Repeated(
            claim.generation,
            (!claim.allocations.is_empty()).then(|| claim.user.to_string()),
        )),
        204 if claim.allocations.is_empty() => Some(ConsumerOperation::Emptied(claim.generation)),
        204 => Some(ConsumerOperation::Claimed(
            claim.generation,
            Some(claim.user.to_string()),
        )),
        409 if conflict => {
            // With several claims the answer does not name the conflicting one, and the conflict of
            // a reshape may concern a provider.
            let alone = matches!(write.command, Command::ReplaceAllocations(_)) && all.len() == 1;
            alone.then_some(ConsumerOperation::Conflict(claim.generation))
        }
        409 if matches!(write.command, Command::ReplaceAllocations(_)) => {
            Some(ConsumerOperation::NoRoom(claim.generation))
        }
        400 if left_behind => Some(ConsumerOperation::LeftBehind(claim.generation)),
        _ => None,
    }
}

const CONCURRENT: &str = "placement.concurrent_update";

fn says_conflict(answer: &Answer) -> bool {
    answer.code().is_some_and(|code| code == CONCURRENT)
}

fn parse_read(answer: &Answer) -> ConsumerOperation {
    let body = answer.json();
    let shown = body["consumer_generation"].as_i64().map(|generation| {
        let user = body["user_id"].as_str().unwrap_or_default();
        (generation, Some(user.to_owned()))
    });
    ConsumerOperation::Read(shown)
}

/// Calls and responses in time order. At the same instant calls come first: operations without a
/// provable order count as concurrent.
fn actions(spans: &[Span<'_>]) -> WglHistory<ConsumerOperation> {
    let mut timeline: BTreeMap<(Duration, u8, usize), (usize, Action<ConsumerOperation>)> =
        BTreeMap::new();
    for (process, Span { event, ended, seen }) in spans.iter().enumerate() {
        let call = (process, Action::Call(seen.clone()));
        timeline.insert((event.sent, 0, process), call);
        let response = (process, Action::Response(seen.clone()));
        timeline.insert((*ended, 1, process), response);
    }
    WglHistory::from_actions(timeline.into_values().collect())
}
