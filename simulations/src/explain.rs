//! The story of one run, so that a person can follow it.

use std::fmt::Write as _;
use std::time::Duration;

use crate::history::{End, Event};
use crate::report::Report;
use crate::story::Life;

/// A line of the story.
type Line = (Duration, String);

/// The story of a run: what it was made of, what happened when, and what is wrong.
pub fn explain(report: &Report) -> String {
    let parameters = &report.parameters;
    let mut text = format!(
        "Seed {}: {} nodes, {} clients who contend for {} × {} units, and a storm of {:.1?}.\n\
         Heartbeats every {:?}, elections from {:?}; messages take up to {:?}, syncs up to {:?}.\n\n",
        parameters.seed.0,
        parameters.nodes,
        parameters.clients,
        parameters.providers,
        parameters.total,
        parameters.storm,
        parameters.heartbeat,
        parameters.election,
        parameters.latency_max,
        parameters.sync_max,
    );
    let mut events: Vec<&Event> = report.history.events.iter().collect();
    events.sort_by_key(|event| ended(event));
    let mut events = events.into_iter().peekable();
    for (at, line) in lines(report) {
        let mut between = Between::default();
        while let Some(event) = events.next_if(|event| ended(event) <= at) {
            between.add(event);
        }
        text += &between.text();
        writeln!(text, "{} {line}", moment(at)).expect(ALL);
    }
    let mut between = Between::default();
    events.for_each(|event| between.add(event));
    text += &between.text();
    for violation in &report.violations {
        writeln!(text, "\nWRONG: {violation}").expect(ALL);
    }
    if report.violations.is_empty() {
        text += "\nNothing is wrong.\n";
    }
    text
}

const ALL: &str = "a text takes what is written";

fn moment(at: Duration) -> String {
    format!("{:>9.3} s", at.as_secs_f64())
}

fn ended(event: &Event) -> Duration {
    event.ended.unwrap_or(Duration::MAX)
}

/// What is told line by line, in order.
fn lines(report: &Report) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (at, phase) in &report.story.phases {
        lines.push((*at, format!("==== {phase}")));
    }
    for (node, lives) in &report.story.lives {
        let mut before = Life::Down;
        for (at, life) in lives {
            if let Some(told) = told(before, *life) {
                lines.push((*at, format!("node {node} {told}")));
            }
            before = *life;
        }
    }
    for happened in &report.faults {
        let fault = happened.fault;
        lines.push((happened.from, format!("fault begins: {fault}")));
        if happened.to < Duration::MAX {
            lines.push((happened.to, format!("fault is over: {fault}")));
        }
    }
    let is_lost = |event: &&Event| matches!(event.end, End::Lost(_));
    for event in report.history.events.iter().filter(is_lost) {
        lines.push((ended(event), format!("  no answer: {}", event.line())));
    }
    lines.sort_by_key(|line| line.0);
    lines
}

fn told(before: Life, now: Life) -> Option<String> {
    match (before, now) {
        (_, Life::Leads(term)) => Some(format!("leads in term {term}")),
        (Life::Down, Life::Down) => None,
        (_, Life::Down) => Some("is down".to_owned()),
        (Life::Down, Life::Follows(term)) => Some(format!("is up, its vote is of term {term}")),
        (Life::Leads(_), Life::Follows(term)) => {
            Some(format!("leads no longer, its vote is of term {term}"))
        }
        // Whom it follows is told by the line of who leads.
        (Life::Follows(_), Life::Follows(_)) => None,
    }
}

/// The requests that ended between two lines.
#[derive(Default)]
struct Between {
    done: usize,
    refused: usize,
    unavailable: usize,
    not_sent: usize,
    slowest: Duration,
}

impl Between {
    fn add(&mut self, event: &Event) {
        match &event.end {
            End::Answer(answer) => {
                match answer.status {
                    ..400 => self.done += 1,
                    503 => self.unavailable += 1,
                    _ => self.refused += 1,
                }
                self.slowest = self.slowest.max(ended(event) - event.sent);
            }
            End::NotSent(_) => self.not_sent += 1,
            // Those have a line each, or no end.
            End::Lost(_) | End::Open => {}
        }
    }

    fn text(&self) -> String {
        let Self {
            done,
            refused,
            unavailable,
            not_sent,
            slowest,
        } = self;
        let counts = [
            (*done, "done"),
            (*refused, "refused"),
            (*unavailable, "answered 503"),
            (*not_sent, "that reached nobody"),
        ];
        let counts: Vec<String> = (counts.iter())
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if counts.is_empty() {
            return String::new();
        }
        let slowest = slowest.as_millis();
        let counts = counts.join(", ");
        format!("            requests: {counts}; the slowest took {slowest} ms\n")
    }
}
