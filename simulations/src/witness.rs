//! Checks a history against the log that the cluster says it followed.
//!
//! Every answer names a place in the log. Two things then prove linearizability, in linear time:
//! what happened before in real time stands before in the log, and replaying the log through the
//! [`Oracle`] gives every recorded answer. Requests whose outcome is unknown are looked up in the
//! log; whatever else is in the log, nobody asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use placement_model::Stamped;
use placement_model::command::RequestId;

use crate::history::{Answer, End, Event, History};
use crate::invariants::from_history as promise;
use crate::operation::{Level, Operation, Question, Write};
use crate::oracle::{Effect, Oracle, Verdict};

/// What the check found, and what it learnt on the way.
#[derive(Debug, Default)]
pub struct Finding {
    /// What is wrong, in words; empty if nothing is.
    pub violations: Vec<String>,
    /// Where the writes of the history took effect, by number of the event.
    pub effects: BTreeMap<usize, (u64, Verdict)>,
    /// The state at the end of the log.
    pub oracle: Oracle,
    /// Entries of the log that repeated an earlier one.
    pub repeated: usize,
    /// Writes without an answer that turned out to be in the log.
    pub resolved: usize,
    /// Answers that were compared with the oracle's.
    pub compared: usize,
}

/// An entry of the log as the check needs it.
#[derive(Debug, Clone)]
struct Entry {
    request: Option<RequestId>,
    write: Write,
}

/// Checks `history` against `log`.
pub fn check(history: &History, log: &BTreeMap<u64, Stamped>) -> Finding {
    let mut finding = Finding::default();
    let entries = read_log(log, &mut finding);
    let verdicts = replay(history, &entries, &mut finding);
    resolve(history, &entries, &verdicts, &mut finding);
    check_order(history, &mut finding);
    finding
}

/// What can be asked of the state at the end of `log`.
pub fn every_question(log: &BTreeMap<u64, Stamped>) -> Vec<Question> {
    let mut oracle = Oracle::default();
    for entry in read_log(log, &mut Finding::default()).values() {
        oracle.entry(entry.request, &entry.write);
    }
    oracle.every_question()
}

fn read_log(log: &BTreeMap<u64, Stamped>, finding: &mut Finding) -> BTreeMap<u64, Entry> {
    let mut entries = BTreeMap::new();
    for (index, stamped) in log {
        match Write::from_command(&stamped.command) {
            Some(write) => {
                entries.insert(
                    *index,
                    Entry {
                        request: stamped.request,
                        write,
                    },
                );
            }
            None => finding.violations.push(format!(
                "{}: entry {index} of the log says what no client asked for: {:?}",
                promise::ASKED_FOR,
                stamped.command
            )),
        }
    }
    entries
}

/// Carries out the log entry by entry and compares every answer at its place. Returns where each
/// request of the log took effect.
fn replay(
    history: &History,
    entries: &BTreeMap<u64, Entry>,
    finding: &mut Finding,
) -> BTreeMap<u64, (u64, Verdict)> {
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
    let places: BTreeSet<u64> = entries.keys().chain(answers.keys()).copied().collect();
    let mut oracle = Oracle::default();
    let mut firsts: BTreeMap<(u64, u64, u64), u64> = BTreeMap::new();
    let mut verdicts = BTreeMap::new();
    for index in places {
        if let Some(entry) = entries.get(&index) {
            let effect = oracle.entry(entry.request, &entry.write);
            let name = entry
                .request
                .map(|one| (one.origin, one.boot, one.sequence));
            match effect {
                Effect::Decided(verdict) => {
                    if let Some(name) = name {
                        firsts.insert(name, index);
                    }
                    verdicts.insert(index, (index, verdict));
                }
                Effect::Repeated(verdict) => {
                    finding.repeated += 1;
                    let first = name.and_then(|name| firsts.get(&name)).copied();
                    verdicts.insert(index, (first.unwrap_or(index), verdict));
                }
                Effect::Straggler => {}
            }
        }
        for number in answers.remove(&index).unwrap_or_default() {
            let event = &history.events[number];
            let Some(answer) = event.answer() else {
                continue;
            };
            finding.compared += 1;
            let wrong = match &event.operation {
                Operation::Read(question, _) => wrong_read(question, answer, &oracle),
                Operation::Write(write) => {
                    let here = entries.get(&index).filter(|entry| entry.write == *write);
                    match here.and_then(|_| verdicts.get(&index)) {
                        Some((first, verdict)) => {
                            finding.effects.insert(number, (*first, *verdict));
                            wrong_verdict(*verdict, answer)
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
    finding.oracle = oracle;
    verdicts
}

fn wrong_read(question: &Question, answer: &Answer, oracle: &Oracle) -> Option<String> {
    let (status, body) = oracle.answer(question);
    if status != answer.status {
        return Some(format!(
            "{}: a read answered {} where {status} is right",
            promise::ANSWERS_FOLLOW,
            answer.status
        ));
    }
    (status == 200 && body != answer.json()).then(|| {
        format!(
            "{}: a read shows another state than the one at its place in the log: {body}",
            promise::ANSWERS_FOLLOW
        )
    })
}

fn wrong_verdict(verdict: Verdict, answer: &Answer) -> Option<String> {
    let codes_agree = verdict.status != 409 || answer.code().as_deref() == verdict.code;
    (verdict.status != answer.status || !codes_agree).then(|| {
        format!(
            "{}: a write answered {} where {verdict:?} is right",
            promise::ANSWERS_FOLLOW,
            answer.status
        )
    })
}

/// A write that is not at its place in the log may only have been refused, before it got there.
fn wrong_refusal(write: &Write, answer: &Answer, oracle: &Oracle) -> Option<String> {
    if answer.status < 400 {
        return Some(format!(
            "{}: an acknowledged write is not at its place in the log",
            promise::ACKNOWLEDGED_IS_THERE
        ));
    }
    wrong_verdict(oracle.clone().write(write), answer)
}

/// Finds the writes without an answer in the log, and entries that nobody asked for.
fn resolve(
    history: &History,
    entries: &BTreeMap<u64, Entry>,
    verdicts: &BTreeMap<u64, (u64, Verdict)>,
    finding: &mut Finding,
) {
    let claimed: BTreeSet<u64> = finding.effects.values().map(|(index, _)| *index).collect();
    let mut unknown: Vec<usize> = (0..history.events.len())
        .filter(|number| may_be_in_the_log(&history.events[*number]))
        .collect();
    for (index, entry) in entries {
        let is_first = verdicts.get(index).is_some_and(|(first, _)| first == index);
        if !is_first || claimed.contains(index) || entry.write == Write::Housekeeping {
            continue;
        }
        let origin = entry.request.map(|request| request.origin);
        let found = unknown.iter().position(|number| {
            let event = &history.events[*number];
            event.operation == Operation::Write(entry.write.clone())
                && origin.is_none_or(|origin| origin == event.node)
        });
        match found {
            Some(position) => {
                let number = unknown.remove(position);
                finding.effects.insert(number, verdicts[index]);
                finding.resolved += 1;
            }
            None => finding
                .violations
                .push(nobody_asked(history, *index, entry)),
        }
    }
}

fn nobody_asked(history: &History, index: u64, entry: &Entry) -> String {
    let denied = history.events.iter().find(|event| {
        event.operation == Operation::Write(entry.write.clone())
            && event.answer().is_some_and(said_nothing_committed)
    });
    match denied {
        Some(event) => format!(
            "{}: entry {index} of the log was applied, but no client asked for it but one who was \
             told that nothing was committed\n    {}",
            promise::NOTHING_COMMITTED,
            event.line()
        ),
        None => format!(
            "{}: entry {index} of the log was applied, but no client asked for it, or it was \
             applied twice: {entry:?}",
            promise::ASKED_FOR
        ),
    }
}

/// Whether a write without a verdict may have been committed.
fn may_be_in_the_log(event: &Event) -> bool {
    let is_write = matches!(event.operation, Operation::Write(_));
    is_write
        && match &event.end {
            End::Open | End::Lost(_) => true,
            End::NotSent(_) => false,
            End::Answer(answer) => answer.status >= 500 && !said_nothing_committed(answer),
        }
}

/// Whether the answer promises that the write never entered the log.
pub fn said_nothing_committed(answer: &Answer) -> bool {
    answer.status == 503
        && answer
            .code()
            .is_some_and(|code| code.contains("nothing_committed"))
}

/// What happened before in real time stands before in the log.
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
        let Some(place) = place(number, event, finding).filter(|_| answered) else {
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
                "{name}: an answer is from place {place} of the log, but must not be before {bound}\n    \
                 {}\n    because of {}",
                event.line(),
                history.events[other].line()
            ));
        }
    }
    finding.violations.extend(late);
}

/// Where an event stands in the log.
fn place(number: usize, event: &Event, finding: &Finding) -> Option<u64> {
    match finding.effects.get(&number) {
        Some((index, _)) => Some(*index),
        None => event.answer()?.index.map(|token| token.index),
    }
}
