//! Checks a history against the log that the cluster applied.
//!
//! Every answer names a log index. Two facts then prove linearizability in linear time: the log
//! order respects the real-time order, and replaying the log through the [`Oracle`] gives every
//! recorded answer. Requests with unknown outcome are looked up in the log, and every other entry
//! must have been requested by a client.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use placement_model::types::PartitionId;
use placement_model::{Outcome, Refusal, Reply, Stamped};

use crate::history::{Answer, End, Event, History, Reported};
use crate::inquiry::last_questions;
use crate::operation::{Level, Operation, Question, Token, Write};
use crate::oracle::{Oracle, expected, is_housekeeping};
use crate::promise;
use crate::repeats::{ConsumerChanges, Judged, is_conflict};
use crate::workload::Names;

/// Result of the check.
#[derive(Debug, Default)]
pub struct Finding {
    /// Violations; empty on success.
    pub violations: Vec<String>,
    /// For writes in the history, by number of the event: the index where they took effect, and the
    /// outcome.
    pub effects: BTreeMap<usize, (u64, Outcome)>,
    /// Log entries that repeat an earlier one.
    pub repeated: usize,
    /// Unanswered writes that were found in the log.
    pub resolved: usize,
    /// Refused writes that were answered as done, by number of the event: the index where an
    /// earlier attempt took effect.
    pub repeats: BTreeMap<usize, u64>,
    /// Answers that were compared with the oracle's.
    pub compared: usize,
}

/// Where each log entry took effect: at its own index, or at the index of its first occurrence.
type Effects = BTreeMap<u64, (u64, Outcome)>;

/// A write id, ordered as its node issues them: node, start of the node, sequence number.
type Id = (u64, u64, u64);

fn id(stamped: &Stamped) -> Option<Id> {
    let id = stamped.write_id?;
    Some((id.origin, id.boot, id.sequence))
}

/// Checks `history` against `log`.
pub fn check(history: &History, log: &BTreeMap<u64, Stamped>) -> Finding {
    let mut finding = Finding::default();
    let effects = replay(history, log, &mut finding);
    one_answer_each(history, &mut finding);
    resolve(history, log, &effects, &mut finding);
    check_repeats(history, &mut finding);
    check_order(history, &mut finding);
    check_headers(history, &mut finding);
    check_calls(history, &mut finding);
    finding
}

/// Reports an answer that is wrong in any state.
pub fn broken_answer(event: &Event) -> Option<String> {
    let answer = event.answer()?;
    let wrong = match answer.status {
        503 => answer.code().is_none().then_some("a 503 without a code"),
        500.. => Some("a server error"),
        401 | 403 | 405.. if answer.status != 409 => Some("a valid request refused"),
        _ if answer.index.is_none() => Some("an answer without an index"),
        _ if answer.node != Some(event.node) => Some("an answer that names another node"),
        _ => None,
    };
    wrong.map(|wrong| format!("{wrong}\n    {}", event.line()))
}

/// All questions about a partition at the end of `log`, including questions about names that hold
/// nothing.
pub fn every_question(
    log: &BTreeMap<u64, Stamped>,
    partition: PartitionId,
    names: &Names,
) -> Vec<Question> {
    let mut oracle = Oracle::for_partition(partition);
    for stamped in log.values() {
        oracle.entry(stamped);
    }
    let mut questions = oracle.every_question();
    for question in last_questions(names) {
        if !questions.contains(&question) {
            questions.push(question);
        }
    }
    questions
}

/// Executes the log entry by entry and compares every answer at its index.
fn replay(history: &History, log: &BTreeMap<u64, Stamped>, finding: &mut Finding) -> Effects {
    let mut answers: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, event) in history.events.iter().enumerate() {
        if let Some(index) = event
            .answer()
            .filter(|one| one.status < 500)
            .and_then(|one| one.index)
        {
            answers.entry(index.index).or_default().push(number);
        }
    }
    let places: BTreeSet<u64> = log.keys().chain(answers.keys()).copied().collect();
    let mut oracle = Oracle::for_partition(history.partition);
    let mut firsts: BTreeMap<Id, u64> = BTreeMap::new();
    let mut effects = Effects::new();
    let mut changes = ConsumerChanges::default();
    for index in places {
        if let Some(stamped) = log.get(&index) {
            let outcome = changes.entry(index, stamped, &mut oracle);
            let first = id(stamped).map_or(index, |id| *firsts.entry(id).or_insert(index));
            if first != index {
                finding.repeated += 1;
            }
            if outcome != Outcome::AnsweredBefore {
                effects.insert(index, (first, outcome));
            }
        }
        for number in answers.remove(&index).unwrap_or_default() {
            let event = &history.events[number];
            let Some(answer) = event.answer() else {
                continue;
            };
            finding.compared += 1;
            let wrong = match &event.operation {
                Operation::Read(question, _) => wrong_read(question, answer, &mut oracle),
                Operation::Write(write) => {
                    let here = log
                        .get(&index)
                        .filter(|here| is_command_of(here, write, history.partition, event.node));
                    match here.and_then(|_| effects.get(&index)) {
                        Some((first, outcome)) => {
                            finding.effects.insert(number, (*first, outcome.clone()));
                            let judged = if is_conflict(&write.command, outcome) {
                                changes.judge(number, (index, log), (write, answer), &oracle)
                            } else {
                                Judged::Refused
                            };
                            match judged {
                                Judged::Repeats(earlier) => {
                                    finding.repeats.insert(number, earlier);
                                    wrong_write(write, &Outcome::Done(Reply::Done), answer)
                                }
                                Judged::Refused => wrong_write(write, outcome, answer),
                                Judged::Wrong(wrong) => Some(wrong),
                            }
                        }
                        None => wrong_refusal(write, answer, &oracle),
                    }
                }
            };
            if let Some(wrong) = wrong {
                finding
                    .violations
                    .push(format!("{wrong}\n    {}", event.line()));
            }
        }
    }
    finding.violations.extend(changes.wrong_conflicts(history));
    effects
}

/// Whether a log entry is the command that this node creates from a write to this partition.
fn is_command_of(entry: &Stamped, write: &Write, partition: PartitionId, node: u64) -> bool {
    let of_both = entry.partition == partition && entry.command == write.command;
    let is_request = |id| write.request_id.is_none_or(|own| own == id);
    of_both
        && entry.write_id.is_none_or(|id| id.origin == node)
        && entry.request_id.is_none_or(is_request)
}

fn wrong_read(question: &Question, answer: &Answer, oracle: &mut Oracle) -> Option<String> {
    let wrong = oracle.wrong(question, answer)?;
    Some(format!(
        "{}: a read does not show the state at its log index: {wrong}",
        promise::ANSWERS_FOLLOW
    ))
}

fn wrong_write(write: &Write, outcome: &Outcome, answer: &Answer) -> Option<String> {
    let wrong = expected(write, outcome).wrong(answer)?;
    Some(format!(
        "{}: a write got {}: {wrong}",
        promise::ANSWERS_FOLLOW,
        answer.status
    ))
}

/// A write without an entry at its index must have been refused before it was proposed.
fn wrong_refusal(write: &Write, answer: &Answer, oracle: &Oracle) -> Option<String> {
    if answer.status < 400 {
        return Some(format!(
            "{}: an acknowledged write is not at its log index",
            promise::ACKNOWLEDGED_IS_THERE
        ));
    }
    wrong_write(write, &oracle.predict(write), answer)
}

/// Checks that no log entry answers two requests.
fn one_answer_each(history: &History, finding: &mut Finding) {
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    for (number, (index, _)) in &finding.effects {
        if let Some(other) = seen.insert(*index, *number) {
            finding.violations.push(format!(
                "{}: log entry {index} answers two requests\n    {}\n    {}",
                promise::ASKED_FOR,
                history.events[other].line(),
                history.events[*number].line()
            ));
        }
    }
}

/// Finds unanswered writes in the log, and entries that no client requested.
///
/// Unanswered identical requests through the same node cannot be distinguished. A node issues
/// ascending write ids, each after its request was sent. So the lowest id is assigned to the
/// request sent first, which is correct whenever any assignment is. An id issued before a request
/// was sent belongs to another request.
fn resolve(
    history: &History,
    log: &BTreeMap<u64, Stamped>,
    effects: &Effects,
    finding: &mut Finding,
) {
    let claimed: BTreeSet<u64> = finding.effects.values().map(|(index, _)| *index).collect();
    let mut unknown: Vec<(usize, &Write)> = history
        .events
        .iter()
        .enumerate()
        .filter(|(_, event)| may_be_in_the_log(event))
        .filter_map(|(number, event)| match &event.operation {
            Operation::Write(write) => Some((number, write)),
            Operation::Read(..) => None,
        })
        .collect();
    let ids_ended: BTreeMap<Id, Duration> = (finding.effects.iter())
        .filter_map(|(number, (index, _))| {
            Some((id(log.get(index)?)?, history.events[*number].ended?))
        })
        .collect();
    let issued_before = |id: Id| {
        let later = ids_ended.range(id..);
        let of_node = later.take_while(|(later, _)| later.0 == id.0);
        of_node.map(|(_, ended)| *ended).min()
    };
    let mut entries: Vec<(&u64, &Stamped)> = log.range(history.behind + 1..).collect();
    entries.sort_by_key(|(_, stamped)| id(stamped));
    for (index, stamped) in entries {
        let own = effects.get(index).filter(|(first, _)| first == index);
        let Some(effect) = own.filter(|_| !claimed.contains(index)) else {
            continue;
        };
        if is_housekeeping(stamped, history.partition) {
            continue;
        }
        let issued_before = id(stamped).and_then(issued_before);
        let found = unknown.iter().position(|(number, write)| {
            let event = &history.events[*number];
            is_command_of(stamped, write, history.partition, event.node)
                && issued_before.is_none_or(|ended| event.sent < ended)
        });
        match found {
            Some(position) => {
                let (number, _) = unknown.remove(position);
                finding.effects.insert(number, effect.clone());
                finding.resolved += 1;
            }
            None => finding
                .violations
                .push(not_asked_for(history, *index, stamped)),
        }
    }
}

fn not_asked_for(history: &History, index: u64, stamped: &Stamped) -> String {
    let denied = history.events.iter().find(|event| {
        let denied = event.answer().is_some_and(denies_any_commit);
        let is_it = |write| is_command_of(stamped, write, history.partition, event.node);
        matches!(&event.operation, Operation::Write(write) if denied && is_it(write))
    });
    match denied {
        Some(event) => format!(
            "{}: log entry {index} was applied, but the only client that asked for it got the \
             answer that nothing was committed\n    {}",
            promise::NOTHING_COMMITTED,
            event.line()
        ),
        None => format!(
            "{}: log entry {index} was applied, but no client asked for it, or it was \
             applied twice: {stamped:?}",
            promise::ASKED_FOR
        ),
    }
}

/// Whether a write without a definite answer may have been committed.
fn may_be_in_the_log(event: &Event) -> bool {
    let is_write = matches!(event.operation, Operation::Write(_));
    is_write
        && match &event.end {
            End::Open | End::Lost(_) => true,
            End::NotSent(_) => false,
            End::Answer(answer) => answer.status >= 500 && !denies_any_commit(answer),
        }
}

/// Whether the answer promises that the write never entered the log.
pub fn denies_any_commit(answer: &Answer) -> bool {
    answer.status == 503
        && answer
            .code()
            .is_some_and(|code| code.contains("nothing_committed"))
}

/// Checks that each repeated write that was answered as done has an earlier attempt, sent before it
/// by the same client, at the log entry that took effect.
fn check_repeats(history: &History, finding: &mut Finding) {
    let request_id = |event: &Event| match &event.operation {
        Operation::Write(write) => write.request_id,
        Operation::Read(..) => None,
    };
    let mut wrong = Vec::new();
    for (number, earlier) in &finding.repeats {
        // The requests before a restore are in another history.
        if *earlier <= history.behind {
            continue;
        }
        let event = &history.events[*number];
        let is_attempt = |other: &usize| {
            let other = &history.events[*other];
            other.client == event.client
                && other.sent <= event.sent
                && request_id(other) == request_id(event)
        };
        let mut there = (finding.effects.iter())
            .filter(|(_, (index, _))| index == earlier)
            .map(|(other, _)| other);
        if !there.any(is_attempt) {
            wrong.push(format!(
                "{}: log entry {earlier} is not of an earlier attempt\n    {}",
                promise::REPEATED_ONCE,
                event.line()
            ));
        }
    }
    finding.violations.extend(wrong);
}

/// Checks that the log order respects the real-time order.
fn check_order(history: &History, finding: &mut Finding) {
    let mut ended: Vec<(Duration, u64, usize)> = Vec::new();
    for (number, event) in history.events.iter().enumerate() {
        let (Some(at), Some(place)) = (event.ended, place(number, event, finding)) else {
            continue;
        };
        if event.answer().is_some_and(|answer| answer.status < 500) {
            ended.push((at, place, number));
        }
    }
    ended.sort();
    let highest: Vec<(Duration, u64, usize)> = ended
        .iter()
        .scan((0, 0), |highest, (at, place, number)| {
            if *place >= highest.0 {
                *highest = (*place, *number);
            }
            Some((*at, highest.0, highest.1))
        })
        .collect();
    let before = |time: Duration| {
        let position = highest.partition_point(|(at, _, _)| *at < time);
        position
            .checked_sub(1)
            .map(|position| (highest[position].1, highest[position].2))
    };
    let mut late = Vec::new();
    for (number, event) in history.events.iter().enumerate() {
        let answered = event.answer().is_some_and(|answer| answer.status < 500);
        // An unanswered write in the log follows the operations answered before it was sent.
        let known = answered || finding.effects.contains_key(&number);
        let Some(place) = place(number, event, finding).filter(|_| known) else {
            continue;
        };
        let strictly = finding.effects.contains_key(&number);
        let (name, bound) = match &event.operation {
            Operation::Write(_) => (promise::REAL_TIME, before(event.sent)),
            Operation::Read(_, Level::Default | Level::Linearizable) => {
                (promise::LINEARIZABLE, before(event.sent))
            }
            Operation::Read(_, Level::Session(token)) => {
                (promise::SESSION, Some((token.index, number)))
            }
            Operation::Read(_, Level::Bounded(ms)) => {
                let since = event.sent.saturating_sub(Duration::from_millis(*ms));
                (promise::BOUNDED, before(since))
            }
            Operation::Read(_, Level::Local) => continue,
        };
        let Some((bound, other)) = bound else {
            continue;
        };
        if place < bound || (strictly && place == bound) {
            late.push(format!(
                "{name}: an answer is from log index {place}, but must not be before {bound}\n    \
                 {}\n    because of {}",
                event.line(),
                history.events[other].line()
            ));
        }
    }
    finding.violations.extend(late);
}

/// Checks that headers of answers match the requested consistency and the epoch.
fn check_headers(history: &History, finding: &mut Finding) {
    let answered = |event: &Event| event.answer().filter(|one| one.status < 500).cloned();
    let first = history
        .events
        .iter()
        .find_map(|event| answered(event)?.index);
    for event in &history.events {
        let Some(answer) = answered(event) else {
            continue;
        };
        let (epoch, own) = (
            first.map(|one| one.epoch),
            answer.index.map(|one| one.epoch),
        );
        let named = answer.effective.as_deref().unwrap_or("-");
        // The refusal of a malformed request does not depend on the state.
        let depends = named != "none" || answer.status != 400;
        let wrong = match keeps(&event.operation) {
            _ if own.is_some() && own != epoch => format!(
                "it is of epoch {}, but the first answer was of {}",
                own.unwrap_or_default(),
                epoch.unwrap_or_default()
            ),
            kept if depends && kept != named => {
                format!("it says {named}, but {kept} was asked for")
            }
            _ => continue,
        };
        finding.violations.push(format!(
            "{}: {wrong}\n    {}",
            promise::SAYS_WHAT_IT_KEEPS,
            event.line()
        ));
    }
}

/// The expected value of `Placement-Effective-Consistency`.
pub fn keeps(operation: &Operation) -> String {
    match operation {
        Operation::Write(_) | Operation::Read(_, Level::Default | Level::Linearizable) => {
            "linearizable".to_owned()
        }
        Operation::Read(_, Level::Session(_)) => "session".to_owned(),
        Operation::Read(_, Level::Bounded(ms)) => {
            let seconds = Duration::from_millis(*ms).as_secs_f64();
            format!("bounded;max={seconds}")
        }
        Operation::Read(_, Level::Local) => "local".to_owned(),
    }
}

/// Checks that the results reported by our client library match the outcomes of its requests.
fn check_calls(history: &History, finding: &mut Finding) {
    let mut shown: BTreeMap<usize, Token> = BTreeMap::new();
    for call in &history.calls {
        // A command refused because of changed routes is in the log and may be sent again.
        let in_the_log = (call.requests.iter()).filter(|number| {
            (finding.effects.get(*number)).is_some_and(|(_, outcome)| {
                !matches!(outcome, Outcome::Refused(Refusal::RoutesChanged(_)))
            })
        });
        let (in_the_log, last) = (in_the_log.count(), call.requests.last());
        let last = last.and_then(|number| history.events[*number].answer());
        let wrong = match &call.reported {
            _ if in_the_log > 1 && !call.repeats_unknown => {
                Some("one write was executed more than once".to_owned())
            }
            Reported::Answered(status) if last.map(|one| one.status) != Some(*status) => {
                Some(format!("it says {status}, which was not the last answer"))
            }
            Reported::NothingCommitted if in_the_log > 0 => {
                Some("it says that nothing was committed, but the write is in the log".to_owned())
            }
            Reported::Other(what) => Some(what.clone()),
            Reported::Answered(_) | Reported::NothingCommitted | Reported::Unknown => None,
        };
        let mut wrong: Vec<String> = wrong.into_iter().collect();
        for number in &call.requests {
            let event = &history.events[*number];
            let shown = shown
                .entry(event.client)
                .or_insert(Token { epoch: 0, index: 0 });
            if let Operation::Read(_, Level::Session(asked)) = &event.operation
                && asked < shown
            {
                wrong.push(format!("it asks for {asked} after it was shown {shown}"));
            }
            // The client did not see an answer that arrived just as it timed out: it sent the
            // request again.
            let is_seen = call.requests.last() == Some(number)
                && matches!(call.reported, Reported::Answered(_));
            let success = event
                .answer()
                .filter(|one| is_seen && (200..300).contains(&one.status));
            *shown = success
                .and_then(|one| one.index)
                .unwrap_or(*shown)
                .max(*shown);
        }
        finding.violations.extend(wrong.into_iter().map(|wrong| {
            let lines = call
                .requests
                .iter()
                .map(|number| history.events[*number].line());
            format!(
                "{}: {wrong}\n    {}",
                promise::CLIENT,
                lines.collect::<Vec<_>>().join("\n    ")
            )
        }));
    }
}

/// The log index of an event.
fn place(number: usize, event: &Event, finding: &Finding) -> Option<u64> {
    match finding.effects.get(&number) {
        Some((index, _)) => Some(*index),
        None => event.answer()?.index.map(|token| token.index),
    }
}
