//! Results of many rounds.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use placement_witness::history::End;

use super::round::RoundResult;

/// Sums over many rounds.
#[derive(Debug, Default)]
pub struct Summary {
    /// Number of rounds added.
    pub rounds: usize,
    /// Total duration of the clients' work.
    pub passed: Duration,
    requests: BTreeMap<&'static str, usize>,
    ends: BTreeMap<&'static str, usize>,
    faults: BTreeMap<&'static str, usize>,
    elections: usize,
    entries: usize,
    snapshots: usize,
    compared: usize,
    resolved: usize,
    searched: usize,
}

impl Summary {
    /// Adds the results of a round.
    pub fn add(&mut self, course: &RoundResult) {
        self.rounds += 1;
        let last = course.history.events.iter().filter_map(|event| event.ended);
        self.passed += last.max().unwrap_or_default();
        for event in &course.history.events {
            *self.requests.entry(event.operation.kind()).or_default() += 1;
            *self.ends.entry(words(&event.end)).or_default() += 1;
        }
        for (fault, times) in &course.faults {
            *self.faults.entry(fault).or_default() += times;
        }
        // The first leader is elected without a fault.
        self.elections += course.log.leaders().saturating_sub(1);
        self.entries += course.log.entries();
        self.snapshots += course.log.snapshots;
        self.compared += course.verdict.compared;
        self.resolved += course.verdict.resolved;
        self.searched += course.verdict.searched;
    }
}

fn words(end: &End) -> &'static str {
    match end {
        End::Answer(answer) => match answer.status {
            200..300 => "success",
            404 => "not found",
            409 => "conflict",
            400..500 => "other refusals",
            503 => "503",
            _ => "server errors",
        },
        End::NotSent(_) => "no connection",
        End::Lost(_) | End::Open => "no answer",
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |counts: &BTreeMap<&str, usize>| {
            let words = counts
                .iter()
                .map(|(what, times)| format!("{times} × {what}"));
            words.collect::<Vec<_>>().join(", ")
        };
        let requests: usize = self.requests.values().sum();
        let faults: usize = self.faults.values().sum();
        writeln!(
            f,
            "{} rounds, {} s of requests",
            self.rounds,
            self.passed.as_secs()
        )?;
        writeln!(f, "{requests} requests: {}", list(&self.requests))?;
        writeln!(f, "ended as: {}", list(&self.ends))?;
        writeln!(f, "{faults} faults: {}", list(&self.faults))?;
        writeln!(
            f,
            "{} new leaders; {} snapshots installed; {} log entries checked, {} answers \
             compared with the expected ones, {} writes without an answer found in the log, {} consumers' \
             histories searched",
            self.elections,
            self.snapshots,
            self.entries,
            self.compared,
            self.resolved,
            self.searched
        )
    }
}
