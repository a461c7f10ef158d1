//! What happened in a run, as a person would tell it: the phases, and what each node was when.

use std::collections::BTreeMap;
use std::time::Duration;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It does not run.
    Down,
    /// It runs and does not lead; with the term of its vote.
    Follows(u64),
    /// It leads in this term.
    Leads(u64),
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Story {
    /// What began when, since the start of the simulation.
    pub phases: Vec<(Duration, &'static str)>,
    /// What each node became when.
    pub lives: BTreeMap<u64, Vec<(Duration, Life)>>,
}

impl Story {
    /// Notes that a phase begins.
    pub fn begins(&mut self, at: Duration, phase: &'static str) {
        self.phases.push((at, phase));
    }

    /// Notes what a node is, if that is new.
    pub fn look(&mut self, at: Duration, node: u64, life: Life) {
        let lives = self.lives.entry(node).or_default();
        if lives.last().is_none_or(|(_, before)| *before != life) {
            lives.push((at, life));
        }
    }
}
