//! Bugs put in on purpose, to prove that the checks can fail. No configuration reaches them.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use placement_model::command::{Command, RequestId};
use placement_model::{Change, Changes, Outcome, Refusal, Stamped, State};
use placement_node::doors::{Consistency, Position, ReadDoor, Unavailable, View};
use placement_raft_store::{Applier, Faults, Rules};

use crate::faults::{Fault, Planned, drawn};
use crate::parameters::Parameters;
use crate::report::Report;
use crate::seed::Seed;

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Log entries and votes are called durable before they are synced.
    AcknowledgeBeforeSync,
    /// Votes are answered and never written.
    ForgetVotes,
    /// A linearizable read is answered from what the node has.
    LocalReadAsLinearizable,
    /// Allocations are not held against the capacity.
    SkipCapacityCheck,
    /// A repeated request is carried out again.
    ApplyRetriesTwice,
    /// One node decides otherwise than the others.
    DivergingNode,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Mutant; 6] = [
        Mutant::AcknowledgeBeforeSync,
        Mutant::ForgetVotes,
        Mutant::LocalReadAsLinearizable,
        Mutant::SkipCapacityCheck,
        Mutant::ApplyRetriesTwice,
        Mutant::DivergingNode,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mutant::AcknowledgeBeforeSync => "acknowledge-before-sync",
            Mutant::ForgetVotes => "forget-votes",
            Mutant::LocalReadAsLinearizable => "local-read-as-linearizable",
            Mutant::SkipCapacityCheck => "skip-capacity-check",
            Mutant::ApplyRetriesTwice => "apply-retries-twice",
            Mutant::DivergingNode => "diverging-node",
        }
    }

    /// The mutant of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mutant| mutant.name() == name)
    }

    /// Words of the complaint that must catch it. Another complaint is no proof: a cluster that
    /// does not form fails as well.
    pub fn complaint(self) -> &'static str {
        match self {
            Mutant::AcknowledgeBeforeSync => "an acknowledged write is not at its place in the log",
            Mutant::ForgetVotes => "votes are kept",
            Mutant::LocalReadAsLinearizable => "must not be before",
            Mutant::SkipCapacityCheck => "no over-allocation",
            Mutant::ApplyRetriesTwice => "a write answered",
            Mutant::DivergingNode => "equal digests",
        }
    }

    /// Whether the run was caught for the right reason.
    pub fn is_caught_by(self, report: &Report) -> bool {
        let words = self.complaint();
        report.violations.iter().any(|one| one.contains(words))
    }

    /// The run that shall catch it: the one that is drawn from the seed, or one that brings about
    /// what the bug needs. Without the bug it must hold.
    pub fn course(self, seed: Seed) -> (Parameters, Vec<Planned>) {
        match self {
            Mutant::AcknowledgeBeforeSync => power_cuts(seed),
            _ => drawn(seed),
        }
    }
}

/// Syncs are slow, and the power of all nodes fails again and again: a majority must lose the same
/// entry. Among the runs as they are drawn, about one in twenty loses an acknowledged write.
fn power_cuts(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        sync_min: Duration::from_millis(50),
        sync_max: Duration::from_millis(250),
        writes_percent: 80,
        ..Parameters::from_seed(seed)
    };
    let faults = (1..5)
        .map(|number| Planned {
            begins: Duration::from_millis(1500 * number),
            lasts: Duration::from_millis(100),
            fault: Fault::PowerCutAll,
        })
        .collect();
    (parameters, faults)
}

/// What is wrong with the disk of a node with this bug.
pub fn disk(mutant: Option<Mutant>) -> Faults {
    Faults {
        acknowledge_before_sync: mutant == Some(Mutant::AcknowledgeBeforeSync),
        forget_votes: mutant == Some(Mutant::ForgetVotes),
    }
}

/// The rules that a node with this bug applies.
pub fn rules(mutant: Option<Mutant>, node: u64) -> Arc<dyn Applier> {
    match mutant {
        Some(Mutant::SkipCapacityCheck) => Arc::new(NoCapacity),
        Some(Mutant::ApplyRetriesTwice) => Arc::new(Forgetful),
        Some(Mutant::DivergingNode) if node == 2 => Arc::new(LateClock),
        _ => Arc::new(Rules),
    }
}

/// What a node with this bug puts around its read door.
pub fn read_door(mutant: Option<Mutant>) -> fn(Arc<dyn ReadDoor>) -> Arc<dyn ReadDoor> {
    match mutant {
        Some(Mutant::LocalReadAsLinearizable) => |door| Arc::new(Hasty(door)),
        _ => |door| door,
    }
}

struct Hasty(Arc<dyn ReadDoor>);

impl ReadDoor for Hasty {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        match consistency {
            Consistency::Linearizable => self.0.view(Consistency::Local),
            other => self.0.view(other),
        }
    }

    fn position(&self) -> Position {
        self.0.position()
    }
}

struct NoCapacity;

impl Applier for NoCapacity {
    fn apply(&self, index: u64, state: &State, stamped: &Stamped) -> (Outcome, Changes) {
        let (outcome, changes) = Rules.apply(index, state, stamped);
        if !matches!(
            outcome,
            Outcome::Refused(Refusal::AllocationCapacity { .. })
        ) {
            return (outcome, changes);
        }
        // The same question to a cloud of boundless stock.
        let mut boundless = state.clone();
        let stock: Changes = state
            .rows()
            .filter_map(|change| match change {
                Change::PutInventory(provider, class, mut row) => {
                    row.inventory.total = 1_000_000;
                    Some(Change::PutInventory(provider, class, row))
                }
                _ => None,
            })
            .collect();
        boundless.commit(&stock);
        Rules.apply(index, &boundless, stamped)
    }
}

struct Forgetful;

impl Applier for Forgetful {
    fn apply(&self, index: u64, state: &State, stamped: &Stamped) -> (Outcome, Changes) {
        let forgotten = stamped.request.map(|request| RequestId {
            // A session of its own for every entry, so that none is recognised.
            origin: request.origin + 1000 * index,
            ..request
        });
        Rules.apply(
            index,
            state,
            &Stamped {
                request: forgotten,
                ..stamped.clone()
            },
        )
    }
}

struct LateClock;

impl Applier for LateClock {
    fn apply(&self, index: u64, state: &State, stamped: &Stamped) -> (Outcome, Changes) {
        let mut stamped = stamped.clone();
        if let Command::ReplaceAllocations(_) = stamped.command {
            stamped.at.0 += 1;
        }
        Rules.apply(index, state, &stamped)
    }
}
