//! What came of a run.

use std::time::Duration;

use placement_machine::coverage::Counted;

use crate::faults::{Happened, Kinds};
use crate::history::History;
use crate::operator::{Done, Order};
use crate::parameters::Parameters;
use crate::story::Story;

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// The choices of the run.
    pub parameters: Parameters,
    /// What the clients saw.
    pub history: History,
    /// What is wrong; empty if nothing is.
    pub violations: Vec<String>,
    /// Number and digest of what went over the network.
    pub trace: (u64, u128),
    /// What happened, for the gates against empty runs.
    pub counts: Counts,
    /// The kinds of faults that happened.
    pub kinds: Kinds,
    /// The points of their work at which nodes lost their power.
    pub points: Kinds,
    /// The errors of nodes that refused their data: a bit had turned in it, or it was an older
    /// copy.
    pub refused: Vec<String>,
    /// The orders of an operator, and their outcomes.
    pub orders: Vec<(Order, Done)>,
    /// The faults that happened.
    pub faults: Vec<Happened>,
    /// The phases, and what each node was when.
    pub story: Story,
    /// Which rare paths of the product ran, and how often.
    pub rare: Counted,
}

/// A complaint, with the moment at which it was seen.
pub(crate) fn seen_at(wrong: &str, at: Duration) -> String {
    format!("{wrong}\n    seen at {:.3} s", at.as_secs_f64())
}

/// What happened in one run.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    /// Simulated time.
    pub simulated: Duration,
    /// Entries of the log that hold commands.
    pub commits: usize,
    /// Those of them that are of another partition.
    pub neighbours: usize,
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
    /// The most connections that nodes tried to make to any one of them.
    pub connections: u64,
    /// Bytes of the log that power cuts took.
    pub lost_bytes: u64,
    /// Plain files and names that power cuts took.
    pub lost_files: u64,
    /// Messages that were kept for a while and arrived late.
    pub late: u64,
    /// Consumers whose histories had a second opinion.
    pub searched: usize,
    /// Consumers whose histories were too long for it.
    pub skipped: usize,
    /// Earlier moments that watchers compared with what was there then.
    pub looked_back: usize,
    /// Events that watchers took in.
    pub events: usize,
    /// How long the cluster took after the fault phase until every client got its writes through.
    pub recovery: Duration,
    /// How long it might have taken.
    pub recovery_max: Duration,
}

/// Reads that were answered, by what they promised.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// Linearizable, by header or by default.
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
    /// How much of the time that the cluster might take after the fault phase it took, in percent.
    pub fn recovery_percent(&self) -> u128 {
        100 * self.recovery.as_millis() / self.recovery_max.as_millis().max(1)
    }
}
