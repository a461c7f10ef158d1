//! One run: a cluster, its clients, a storm of faults, a calm, and the judgement.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::faults::{Kinds, Planned, plan};
use crate::history::{Event, History};
use crate::invariants;
use crate::ledger::SharedLedger;
use crate::mutant::Mutant;
use crate::operation::Operation;
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
    /// Linearizable reads that were answered.
    pub reads: usize,
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
}

impl Report {
    /// The line that replays this run.
    pub fn replay(&self, mutant: Option<Mutant>) -> String {
        let mutant = mutant
            .map(|one| format!(" --mutant {}", one.name()))
            .unwrap_or_default();
        format!("scripts/simulate --seed {}{mutant}", self.parameters.seed.0)
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
    let mut counts = count(&history, &finding);
    counts.simulated = course.simulated;
    counts.commits = ledger.log.len();
    counts.applied = ledger.applied;
    counts.snapshots = ledger.snapshots;
    counts.connections = net::connections();
    counts.elections = course.leaders.elections();
    counts.lost_bytes = course.lost_bytes;
    counts.searched = opinion.searched;
    Report {
        parameters: parameters.clone(),
        history,
        violations,
        trace: trace::end(),
        counts,
        kinds: course.kinds,
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

fn count(history: &History, finding: &Finding) -> Counts {
    let mut counts = Counts {
        repeated: finding.repeated,
        resolved: finding.resolved,
        ..Counts::default()
    };
    for event in &history.events {
        let Some(answer) = event.answer() else {
            continue;
        };
        if answer.status == 503 {
            counts.unavailable += 1;
        } else if let Operation::Write(_) = event.operation {
            counts.acknowledged += 1;
            let elsewhere = answer
                .known_leader
                .is_some_and(|leader| leader != event.node);
            counts.forwarded += usize::from(elsewhere);
        } else {
            counts.reads += 1;
        }
    }
    counts
}
