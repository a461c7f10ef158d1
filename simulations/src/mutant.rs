//! Bugs put in on purpose, to prove that the checks can fail. No configuration reaches them.

use std::sync::Arc;

use futures::future::BoxFuture;
use placement_model::command::{Command, RequestId};
use placement_model::{Change, Changes, Outcome, Refusal, Stamped, State};
use placement_node::cluster::doors::{Consistency, ReadDoor, Standing, Unavailable, View};
use placement_raft_store::{Applier, Rules};

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Log entries and votes are called durable before they are synced.
    AcknowledgeBeforeSync,
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
    pub const ALL: [Mutant; 5] = [
        Mutant::AcknowledgeBeforeSync,
        Mutant::LocalReadAsLinearizable,
        Mutant::SkipCapacityCheck,
        Mutant::ApplyRetriesTwice,
        Mutant::DivergingNode,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mutant::AcknowledgeBeforeSync => "acknowledge-before-sync",
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

    fn standing(&self) -> Standing {
        self.0.standing()
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
        if let Command::SetAllocations { .. } = stamped.command {
            stamped.at.0 += 1;
        }
        Rules.apply(index, state, &stamped)
    }
}
