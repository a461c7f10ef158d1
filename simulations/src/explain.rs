//! Prints the story of one run for a human reader.

use std::fmt::Write as _;
use std::time::Duration;

use crate::history::{End, Event};
use crate::report::Report;
use crate::timeline::NodeState;

/// A line of the story.
type Line = (Duration, String);

/// The story of a run: its parameters, its events in order and its violations.
pub fn explain(report: &Report) -> String {
    let parameters = &report.parameters;
    let mut text = format!(
        "Seed {}: {} nodes, {} clients who contend for {} × {} units, and a fault phase of {:.1?}.\n\
         Heartbeats every {:?}, elections from {:?}; messages take up to {:?}, syncs up to {:?}.\n\n",
        parameters.seed.0,
        parameters.nodes,
        parameters.clients,
        parameters.providers,
        parameters.total,
        parameters.fault_phase,
        parameters.heartbeat,
        parameters.election,
        parameters.latency_max,
        parameters.sync_max,
    );
    for (at, line) in lines(report) {
        writeln!(text, "{:>9.3} s {line}", at.as_secs_f64()).expect(ALL);
    }
    for violation in &report.violations {
        writeln!(text, "\nVIOLATION: {violation}").expect(ALL);
    }
    if report.violations.is_empty() {
        text += "\nNo violations.\n";
    }
    text
}

const ALL: &str = "writing to a string succeeds";

/// All lines, in order.
fn lines(report: &Report) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (at, phase) in &report.story.phases {
        lines.push((*at, format!("==== {phase}")));
    }
    for (node, lives) in &report.story.lives {
        let mut before = NodeState::Down;
        for (at, life) in lives {
            if let Some(change) = change(before, *life) {
                lines.push((*at, format!("node {node} {change}")));
            }
            before = *life;
        }
    }
    for happened in &report.faults {
        let fault = happened.fault;
        lines.push((happened.from, format!("fault begins: {fault}")));
        if happened.to < Duration::MAX {
            lines.push((happened.to, format!("fault ends: {fault}")));
        }
    }
    let is_lost = |event: &&Event| matches!(event.end, End::Lost(_));
    for event in report.history.events.iter().filter(is_lost) {
        let ended = event.ended.unwrap_or(Duration::MAX);
        lines.push((ended, format!("  no answer: {}", event.line())));
    }
    lines.sort_by_key(|line| line.0);
    lines
}

fn change(before: NodeState, now: NodeState) -> Option<String> {
    match (before, now) {
        (_, NodeState::Leads(term)) => Some(format!("leads in term {term}")),
        (NodeState::Down, NodeState::Down) => None,
        (_, NodeState::Down) => Some("is down".to_owned()),
        (NodeState::Down, NodeState::Follows(term)) => {
            Some(format!("is up, its vote is for term {term}"))
        }
        (NodeState::Leads(_), NodeState::Follows(term)) => {
            Some(format!("no longer leads, its vote is for term {term}"))
        }
        // The leader's own line already shows the new term.
        (NodeState::Follows(_), NodeState::Follows(_)) => None,
    }
}
