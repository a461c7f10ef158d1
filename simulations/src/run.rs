//! One run: a cluster, its clients, a fault phase, a recovery phase and the checks.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use placement_machine::{coverage, simulate_within};
use placement_model::Stamped;
use placement_model::mutant::inject;

use crate::faults::{FaultRecord, Planned};
use crate::history::{Event, History};
use crate::invariants::{no_503_without_a_fault, staleness};
use crate::ledger::SharedLedger;
use crate::mutant::Mutant;
use crate::operation::{Level, Operation};
use crate::parameters::{Clouds, IN_THE_NEIGHBOUR, Parameters};
use crate::report::{Counts, Reads, Report, seen_at};
use crate::shared::Shared;
use crate::witness::Finding;
use crate::world::{RunObservations, World};
use crate::{net, trace, wgl, witness};

/// Runs a simulation with these faults: those of [`crate::faults::drawn`] for a seed, or those of a
/// scenario test.
pub fn run_with(parameters: &Parameters, mutant: Option<Mutant>, faults: Vec<Planned>) -> Report {
    let parameters = &Parameters {
        clouds: match mutant {
            None | Some(Mutant::PartitionForgotten | Mutant::NeighboursLastClaimForgotten) => {
                parameters.clouds
            }
            // The clients' own observations must catch the bug.
            Some(_) => Clouds::Alone,
        },
        watchers: match mutant {
            Some(mutant) if !mutant.is_caught_by_watchers() => 0,
            _ => parameters.watchers,
        },
        ..parameters.clone()
    };
    let (limits, lateness) = (parameters.knobs.limits, parameters.knobs.lateness);
    let _simulation = simulate_within(parameters.seed.number("raft"), limits, lateness);
    trace::begin();
    coverage::begin();
    net::connections();
    let shared = Shared::new(parameters.clone(), mutant);
    let ledger = SharedLedger::new();
    let mut course = RunObservations::default();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _injection = mutant.map(|mutant| inject(mutant.bug()));
        let mut world = World::new(parameters, mutant, shared.clone(), ledger.clone())?;
        let result = world.course(&faults);
        course = std::mem::take(&mut world.course);
        result
    }));
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => course
            .violations
            .push(seen_at(&error.to_string(), course.simulated)),
        Err(panic) => course.violations.push(format!("panic: {}", words(&panic))),
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
    course: RunObservations,
) -> Report {
    let history = shared.history.borrow().clone();
    let ledger = ledger.lock();
    let finding = witness::check(&history, &ledger.log);
    // The history of consumers before the backup is unknown.
    let opinion = match course.lost {
        Some(_) => wgl::LinearizabilityReport::default(),
        None => wgl::check(&history, &finding),
    };
    let mut violations = course.violations;
    if let Some((before, log)) = &course.lost {
        violations.extend(find_violations(before, log));
    }
    if parameters.clouds.neighbour().is_some() {
        let neighbours = &*shared.neighbours.borrow();
        let wrong = find_violations(neighbours, &ledger.log).into_iter();
        let refused = no_503_without_a_fault::check(neighbours, course.healthy_since);
        let all = wrong.chain(refused);
        violations.extend(all.map(|wrong| format!("{wrong}\n    {IN_THE_NEIGHBOUR}")));
    }
    violations.extend(ledger.violations.iter().cloned());
    violations.extend(finding.violations.iter().cloned());
    violations.extend(opinion.violations);
    violations.extend(staleness::check(&history));
    violations.extend(no_503_without_a_fault::check(
        &history,
        course.healthy_since,
    ));
    violations.extend(history.events.iter().filter_map(witness::broken_answer));
    let mut counts = count(&history, &finding, &course.faults);
    counts.simulated = course.simulated;
    counts.commits = ledger.log.len();
    let others = ledger
        .log
        .values()
        .filter(|one| one.partition != history.partition && !one.command.is_cluster_wide());
    counts.neighbours = others.count();
    counts.applied = ledger.applied;
    counts.snapshots = ledger.snapshots;
    counts.connections = net::connections();
    counts.elections = course.leaders.elections();
    counts.lost_bytes = course.lost_bytes;
    counts.late = course.late;
    counts.lost_files = course.lost_files;
    counts.searched = opinion.searched;
    counts.skipped = opinion.skipped;
    counts.looked_back = shared.looked_back.get();
    counts.events = shared.events.get();
    counts.recovery = course.recovery;
    counts.recovery_max = parameters.bounds().recovery;
    Report {
        parameters: parameters.clone(),
        history,
        violations,
        trace: trace::end(),
        counts,
        kinds: course.kinds,
        points: course.points,
        refused: course.refused,
        orders: course.orders,
        faults: course.faults,
        story: course.story,
        rare: coverage::end(),
    }
}

/// Violations in a history that is checked on its own.
fn find_violations(history: &History, log: &BTreeMap<u64, Stamped>) -> Vec<String> {
    let finding = witness::check(history, log);
    let mut violations = wgl::check(history, &finding).violations;
    violations.extend(finding.violations);
    violations.extend(staleness::check(history));
    violations.extend(history.events.iter().filter_map(witness::broken_answer));
    violations
}

fn count(history: &History, finding: &Finding, faults: &[FaultRecord]) -> Counts {
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

/// Whether a single fault lasted from the request to the answer.
fn in_fault(event: &Event, faults: &[FaultRecord]) -> bool {
    event
        .ended
        .is_some_and(|ended| faults.iter().any(|fault| fault.spans(event.sent, ended)))
}
