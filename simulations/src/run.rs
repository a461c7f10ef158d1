//! One run: a cluster, its clients, a storm of faults, a calm, and the judgement.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::faults::{Happened, Kinds, Planned, plan};
use crate::history::{Event, History};
use crate::invariants;
use crate::ledger::SharedLedger;
use crate::mutant::Mutant;
use crate::operation::{Level, Operation};
use crate::parameters::Parameters;
use crate::shared::Shared;
use crate::witness::Finding;
use crate::world::{Course, World};
use crate::{net, trace, wgl, witness};

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// The choices of the run.
    pub parameters: Parameters,
    /// What the clients saw.
    pub history: History,
    /// What is wrong, in words; empty if nothing is.
    pub violations: Vec<String>,
    /// Number and digest of what went over the network.
    pub trace: (u64, u128),
    /// What happened, for the gates against empty runs.
    pub counts: Counts,
    /// The kinds of faults that happened.
    pub kinds: Kinds,
    /// The faults that happened.
    pub faults: Vec<Happened>,
}

/// What happened in one run.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    /// Simulated time.
    pub simulated: Duration,
    /// Entries of the log that hold commands.
    pub commits: usize,
    /// Commands applied on all nodes together, those repeated after crashes included.
    pub applied: usize,
    /// Writes that were answered.
    pub acknowledged: usize,
    /// Acknowledged writes that were sent to a node that did not lead.
    pub forwarded: usize,
    /// Entries of the log that repeated an earlier one.
    pub repeated: usize,
    /// Writes without an answer that were in the log.
    pub resolved: usize,
    /// Reads that were answered.
    pub reads: Reads,
    /// Answers of 503.
    pub unavailable: usize,
    /// Leaders that there were; a term may have had several.
    pub elections: usize,
    /// How often a node was given a snapshot instead of entries.
    pub snapshots: usize,
    /// Connections that nodes tried to make to each other.
    pub connections: u64,
    /// Bytes of the log that power cuts took.
    pub lost_bytes: u64,
    /// Consumers whose histories had a second opinion.
    pub searched: usize,
    /// Consumers whose histories were too long for it.
    pub skipped: usize,
    /// How long the cluster took after the storm until every client got its writes through.
    pub calm: Duration,
    /// How long it might have taken.
    pub calm_max: Duration,
}

/// Reads that were answered, by what they promised.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// Linearizable, said aloud or by default.
    pub linearizable: usize,
    /// Of these, those that were asked and answered while a fault was going on.
    pub in_faults: usize,
    /// At or after a token.
    pub session: usize,
    /// At most so old.
    pub bounded: usize,
    /// What the node had.
    pub local: usize,
}

impl Counts {
    /// How much of the time that the cluster might take after the storm it took, in percent.
    pub fn calm_percent(&self) -> u128 {
        100 * self.calm.as_millis() / self.calm_max.as_millis().max(1)
    }
}

/// Runs the simulation that follows from `parameters`.
pub fn run(parameters: &Parameters, mutant: Option<Mutant>) -> Report {
    run_with(parameters, mutant, plan(parameters))
}

/// Runs the simulation with faults of its own, as pinned scenarios do.
pub fn run_with(parameters: &Parameters, mutant: Option<Mutant>, faults: Vec<Planned>) -> Report {
    let _simulation = placement_raft_store::runtime::simulate(parameters.seed.number("raft"));
    trace::begin();
    net::connections();
    let shared = Shared::new(parameters.clone());
    let ledger = SharedLedger::new(invariants::all());
    let mut course = Course::default();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(parameters, mutant, shared.clone(), ledger.clone())?;
        let result = world.course(&faults);
        course = std::mem::take(&mut world.course);
        result
    }));
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => course.violations.push(error.to_string()),
        Err(panic) => course
            .violations
            .push(format!("something panicked: {}", words(&panic))),
    }
    judge(parameters, &shared, &ledger, course)
}

fn words(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

fn judge(
    parameters: &Parameters,
    shared: &Shared,
    ledger: &SharedLedger,
    course: Course,
) -> Report {
    let history = shared.history.borrow().clone();
    let ledger = ledger.lock();
    let finding = witness::check(&history, &ledger.log);
    let opinion = wgl::check(&history, &finding);
    let mut violations = course.violations;
    violations.extend(ledger.violations.iter().cloned());
    violations.extend(finding.violations.iter().cloned());
    violations.extend(opinion.violations);
    violations.extend(history.events.iter().filter_map(broken_answer));
    let mut counts = count(&history, &finding, &course.faults);
    counts.simulated = course.simulated;
    counts.commits = ledger.log.len();
    counts.applied = ledger.applied;
    counts.snapshots = ledger.snapshots;
    counts.connections = net::connections();
    counts.elections = course.leaders.elections();
    counts.lost_bytes = course.lost_bytes;
    counts.searched = opinion.searched;
    counts.skipped = opinion.skipped;
    counts.calm = course.calm;
    counts.calm_max = parameters.bounds().calm;
    Report {
        parameters: parameters.clone(),
        history,
        violations,
        trace: trace::end(),
        counts,
        kinds: course.kinds,
        faults: course.faults,
    }
}

/// An answer that no client should ever get, whatever the state.
fn broken_answer(event: &Event) -> Option<String> {
    let answer = event.answer()?;
    let wrong = match answer.status {
        503 => answer.code().is_none().then_some("a 503 without a code"),
        500.. => Some("a server error"),
        400 | 401 | 403 | 405.. if answer.status != 409 => Some("a well-formed request refused"),
        _ if answer.index.is_none() => Some("an answer that does not say where it stands"),
        _ if answer.node != Some(event.node) => Some("an answer in another node's name"),
        _ => None,
    };
    wrong.map(|wrong| format!("{wrong}\n    {}", event.line()))
}

fn count(history: &History, finding: &Finding, faults: &[Happened]) -> Counts {
    let mut counts = Counts {
        repeated: finding.repeated,
        resolved: finding.resolved,
        ..Counts::default()
    };
    for event in &history.events {
        let Some(answer) = event.answer() else {
            continue;
        };
        match &event.operation {
            _ if answer.status == 503 => counts.unavailable += 1,
            Operation::Write(_) => {
                counts.acknowledged += 1;
                let elsewhere = answer
                    .known_leader
                    .is_some_and(|leader| leader != event.node);
                counts.forwarded += usize::from(elsewhere);
            }
            Operation::Read(_, level) => counts.reads.count(level, in_fault(event, faults)),
        }
    }
    counts
}

impl Reads {
    fn count(&mut self, level: &Level, in_fault: bool) {
        match level {
            Level::Default | Level::Linearizable => {
                self.linearizable += 1;
                self.in_faults += usize::from(in_fault);
            }
            Level::Session(_) => self.session += 1,
            Level::Bounded(_) => self.bounded += 1,
            Level::Local => self.local += 1,
        }
    }
}

/// Whether one fault was going on from the moment of the request to that of the answer.
fn in_fault(event: &Event, faults: &[Happened]) -> bool {
    event
        .ended
        .is_some_and(|ended| faults.iter().any(|fault| fault.spans(event.sent, ended)))
}
