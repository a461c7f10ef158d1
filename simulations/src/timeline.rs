//! The story of a run: its phases, and the role of each node over time.

use std::collections::BTreeMap;
use std::time::Duration;

/// State of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// The node is not running.
    Down,
    /// Running and not leading; with the term of its vote.
    Follows(u64),
    /// Leading in this term.
    Leads(u64),
}

/// Phases and node states over time.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Start of each phase, since the start of the simulation.
    pub phases: Vec<(Duration, &'static str)>,
    /// State changes of each node.
    pub lives: BTreeMap<u64, Vec<(Duration, NodeState)>>,
}

impl Timeline {
    /// Records the start of a phase.
    pub fn begins(&mut self, at: Duration, phase: &'static str) {
        self.phases.push((at, phase));
    }

    /// Records the state of a node, if it has changed.
    pub fn look(&mut self, at: Duration, node: u64, life: NodeState) {
        let lives = self.lives.entry(node).or_default();
        if lives.last().is_none_or(|(_, before)| *before != life) {
            lives.push((at, life));
        }
    }
}
