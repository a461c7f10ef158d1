//! Results of a run.

use std::time::Duration;

use placement_machine::coverage::Counted;

use crate::faults::{FaultRecord, Kinds};
use crate::history::History;
use crate::operator::{Done, Order};
use crate::parameters::Parameters;
use crate::timeline::Timeline;

/// Results of a run.
#[derive(Debug)]
pub struct Report {
    /// Parameters of the run.
    pub parameters: Parameters,
    /// Requests and answers of the clients.
    pub history: History,
    /// Violated invariants; empty if the run succeeded.
    pub violations: Vec<String>,
    /// Number and digest of the network packets.
    pub trace: (u64, u128),
    /// Counts of events, which show that a run was not empty.
    pub counts: Counts,
    /// Kinds of faults that happened.
    pub kinds: Kinds,
    /// The points at which nodes lost power during their work.
    pub points: Kinds,
    /// Errors of nodes that refused their data, since a bit had flipped or it was an older copy.
    pub refused: Vec<String>,
    /// Orders of the operators, with outcomes.
    pub orders: Vec<(Order, Done)>,
    /// Faults that happened, with start and end.
    pub faults: Vec<FaultRecord>,
    /// Phases, and the roles of each node over time.
    pub story: Timeline,
    /// Executions of the product's rare paths.
    pub rare: Counted,
}

/// Adds the time of detection to a violation.
pub(crate) fn seen_at(wrong: &str, at: Duration) -> String {
    format!("{wrong}\n    seen at {:.3} s", at.as_secs_f64())
}

/// Counts of one run.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    /// Simulated time of the run.
    pub simulated: Duration,
    /// Log entries that hold commands.
    pub commits: usize,
    /// Number of these commands that belong to another partition.
    pub neighbours: usize,
    /// Commands applied, summed over all nodes, including repetitions after crashes.
    pub applied: usize,
    /// Writes that were answered.
    pub acknowledged: usize,
    /// Acknowledged writes that were sent to a follower.
    pub forwarded: usize,
    /// Log entries that repeat an earlier one.
    pub repeated: usize,
    /// Writes without an answer that were found in the log.
    pub resolved: usize,
    /// Reads that were answered.
    pub reads: Reads,
    /// Answers with status 503.
    pub unavailable: usize,
    /// Leaders elected; a term may have had several.
    pub elections: usize,
    /// Snapshots sent instead of entries.
    pub snapshots: usize,
    /// Most connection attempts of nodes to a single node.
    pub connections: u64,
    /// Bytes of the log lost in power cuts.
    pub lost_bytes: u64,
    /// Plain files and names lost in power cuts.
    pub lost_files: u64,
    /// Messages that were held and released late.
    pub late: u64,
    /// Consumers whose histories were checked by the second checker (`wgl`).
    pub searched: usize,
    /// Consumers whose histories were too long for the second checker.
    pub skipped: usize,
    /// Reads at earlier moments that watchers compared.
    pub looked_back: usize,
    /// Events that watchers received.
    pub events: usize,
    /// Time from the end of the fault phase until every client's writes succeeded.
    pub recovery: Duration,
    /// Limit of that time.
    pub recovery_max: Duration,
}

/// Answered reads by consistency level.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// Linearizable reads, by header or by default.
    pub linearizable: usize,
    /// Linearizable reads during which a fault lasted from request to answer.
    pub in_faults: usize,
    /// Session reads that were answered.
    pub session: usize,
    /// Bounded reads that were answered.
    pub bounded: usize,
    /// Local reads that were answered.
    pub local: usize,
}

impl Counts {
    /// Recovery time as a percentage of its limit.
    pub fn recovery_percent(&self) -> u128 {
        100 * self.recovery.as_millis() / self.recovery_max.as_millis().max(1)
    }
}
