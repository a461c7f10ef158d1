//! A second opinion on linearizability that knows nothing of the log's order: the algorithm of
//! Wing, Gong and Lowe, on the history of one consumer at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History as WglHistory};
use todc_utils::specifications::Specification;
use uuid::Uuid;

use crate::history::{Answer, History};
use crate::operation::{Belief, Claim, Level, Operation, Question, Write};
use crate::oracle::Verdict;
use crate::witness::Finding;

/// Longer histories are left to the witness check: the search is exponential in the worst case.
const EVENTS_MAX: usize = 400;

/// What was seen of one consumer.
#[derive(Debug, Clone)]
enum Seen {
    /// A claim that was carried out.
    Claimed(Belief, Held),
    /// All was given back by an empty claim.
    Emptied(Belief),
    /// A claim that met another generation than it believed.
    Conflict(Belief),
    /// A claim that found no room: it says nothing of the consumer but its generation.
    NoRoom(Belief),
    /// Released, or nothing was there to release.
    Released(bool),
    /// What a linearizable read showed.
    Read(Option<(i64, Held)>),
}

/// Who marked the claim.
type Held = String;

struct ConsumerRegister;

impl Specification for ConsumerRegister {
    type State = Option<(i64, Held)>;
    type Operation = Seen;

    fn init() -> Self::State {
        None
    }

    fn apply(operation: &Seen, state: &Self::State) -> (bool, Self::State) {
        let agrees = |belief: &Belief| match belief {
            Belief::Unchecked => true,
            Belief::New => state.is_none(),
            Belief::At(generation) => state.as_ref().is_some_and(|one| one.0 == *generation),
        };
        match operation {
            Seen::Claimed(belief, held) => {
                let generation = state.as_ref().map_or(0, |one| one.0) + 1;
                (agrees(belief), Some((generation, held.clone())))
            }
            Seen::Emptied(belief) => (agrees(belief), None),
            Seen::Conflict(belief) => (!agrees(belief), state.clone()),
            Seen::NoRoom(belief) => (agrees(belief), state.clone()),
            Seen::Released(found) => (
                state.is_some() == *found,
                if *found { None } else { state.clone() },
            ),
            Seen::Read(shown) => (shown == state, state.clone()),
        }
    }
}

/// What the second opinion is.
#[derive(Debug, Default)]
pub struct Opinion {
    /// What is wrong, in words.
    pub violations: Vec<String>,
    /// Consumers whose histories were searched.
    pub searched: usize,
    /// Consumers whose histories were too long.
    pub skipped: usize,
}

/// Searches a linearization of each consumer's history. Of the witness's finding only this is
/// used: which writes without an answer happened.
pub fn check(history: &History, finding: &Finding) -> Opinion {
    let mut opinion = Opinion::default();
    for consumer in consumers(history) {
        let spans = spans(history, finding, consumer);
        if spans.len() > EVENTS_MAX {
            opinion.skipped += 1;
        } else if !spans.is_empty() {
            opinion.searched += 1;
            if !WGLChecker::<ConsumerRegister>::is_linearizable(actions(&spans)) {
                opinion.violations.push(format!(
                    "the history of consumer {consumer} is not linearizable"
                ));
            }
        }
    }
    opinion
}

fn consumers(history: &History) -> BTreeSet<Uuid> {
    history
        .events
        .iter()
        .flat_map(|event| match &event.operation {
            Operation::Write(Write::Allocate(claims)) => {
                claims.iter().map(|claim| claim.consumer).collect()
            }
            Operation::Write(Write::Release { consumer }) => vec![*consumer],
            Operation::Read(Question::Allocations(consumer), _) => vec![*consumer],
            _ => Vec::new(),
        })
        .collect()
}

/// When it began and ended, and what was seen.
type Span = (Duration, Duration, Seen);

fn spans(history: &History, finding: &Finding, consumer: Uuid) -> Vec<Span> {
    let mut spans = Vec::new();
    for (number, event) in history.events.iter().enumerate() {
        let effect = finding.effects.get(&number).map(|(_, verdict)| *verdict);
        let answered = event.answer().filter(|answer| answer.status < 500);
        let ended = match answered {
            Some(_) => event.ended.unwrap_or(Duration::MAX),
            None => Duration::MAX,
        };
        let seen = match &event.operation {
            Operation::Write(Write::Allocate(claims)) => {
                let verdict = answered.map(verdict).or(effect);
                claims
                    .iter()
                    .find(|claim| claim.consumer == consumer)
                    .and_then(|claim| of_claim(claim, verdict?, claims.len() == 1))
            }
            Operation::Write(Write::Release { consumer: released }) if *released == consumer => {
                answered
                    .map(verdict)
                    .or(effect)
                    .map(|one| Seen::Released(one.status == 204))
            }
            Operation::Read(Question::Allocations(asked), Level::Default | Level::Linearizable)
                if *asked == consumer =>
            {
                answered.map(of_read)
            }
            _ => None,
        };
        spans.extend(seen.map(|seen| (event.sent, ended, seen)));
    }
    spans
}

fn verdict(answer: &Answer) -> Verdict {
    let conflict = answer
        .code()
        .is_some_and(|code| code == "placement.concurrent_update");
    Verdict {
        status: answer.status,
        code: conflict.then_some("placement.concurrent_update"),
    }
}

fn of_claim(claim: &Claim, verdict: Verdict, alone: bool) -> Option<Seen> {
    match (verdict.status, verdict.code) {
        (204, _) if claim.amounts.is_empty() => Some(Seen::Emptied(claim.belief)),
        (204, _) => Some(Seen::Claimed(claim.belief, claim.user.clone())),
        (409, Some("placement.concurrent_update")) => alone.then_some(Seen::Conflict(claim.belief)),
        (409, _) => Some(Seen::NoRoom(claim.belief)),
        _ => None,
    }
}

fn of_read(answer: &Answer) -> Seen {
    let body = answer.json();
    let shown = body["consumer_generation"].as_i64().map(|generation| {
        (
            generation,
            body["user_id"].as_str().unwrap_or_default().to_owned(),
        )
    });
    Seen::Read(shown)
}

/// Calls and responses in the order of time. At the same instant calls come first: what is not
/// provably before counts as concurrent.
fn actions(spans: &[Span]) -> WglHistory<Seen> {
    let mut timeline: BTreeMap<(Duration, u8, usize), (usize, Action<Seen>)> = BTreeMap::new();
    for (process, (sent, ended, seen)) in spans.iter().enumerate() {
        timeline.insert((*sent, 0, process), (process, Action::Call(seen.clone())));
        timeline.insert(
            (*ended, 1, process),
            (process, Action::Response(seen.clone())),
        );
    }
    WglHistory::from_actions(timeline.into_values().collect())
}
