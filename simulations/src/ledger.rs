//! The ledger observes all nodes from outside: every node passes each command and its index to it,
//! including commands that are applied again after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use placement_model::cluster::ClusterChanges;
use placement_model::state::change::{ConsumerRow, InventoryRow, NameRow, ProviderRow};
use placement_model::types::{PartitionId, Timestamp};
use placement_model::{Change, Changes, Cluster, Outcome, Stamped};
use placement_raft_store::{Applier, LogEvent, LogObserver};

use crate::invariants::members_change_as_ordered::OrderedChanges;
use crate::invariants::{self, Applied, Invariant, LogInvariant, LogObservation};
use crate::logs::{LogChange, Logs};

/// All commands that the nodes have applied.
pub struct Ledger {
    /// The log, up to the highest index applied on any node.
    pub log: BTreeMap<u64, Stamped>,
    /// For each log entry, the partitions in which it has made a change that clients can observe.
    changed: BTreeMap<u64, Vec<PartitionId>>,
    /// How often the whole cluster was lost.
    pub(crate) life: usize,
    /// Violations found so far.
    pub violations: Vec<String>,
    /// Number of applied commands, including repetitions after crashes.
    pub applied: usize,
    /// Number of times a node continued after commands that it had not applied, which means that it
    /// installed a snapshot.
    pub snapshots: usize,
    /// The last index that each node applied.
    last: BTreeMap<u64, u64>,
    starts: BTreeMap<u64, u64>,
    logs: Logs,
    ordered: OrderedChanges,
    invariants: Vec<Box<dyn Invariant + Send>>,
    log_invariants: Vec<Box<dyn LogInvariant + Send>>,
}

/// A ledger that the nodes share.
#[derive(Clone)]
pub struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    /// A ledger before the first command.
    pub fn new() -> Self {
        let ordered = OrderedChanges::default();
        let ledger = Ledger {
            log: BTreeMap::new(),
            changed: BTreeMap::new(),
            life: 0,
            violations: Vec::new(),
            applied: 0,
            snapshots: 0,
            last: BTreeMap::new(),
            starts: BTreeMap::new(),
            logs: Logs::default(),
            invariants: invariants::all(),
            log_invariants: invariants::log_invariants(&ordered),
            ordered,
        };
        Self(Arc::new(Mutex::new(ledger)))
    }

    /// Locks the ledger. If a check panicked, the violations that it found before remain.
    pub fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock()
    }

    /// An observer for the log of a node.
    pub fn log_observer(&self, node: u64) -> Arc<dyn LogObserver> {
        Arc::new(Watched {
            node,
            ledger: self.clone(),
        })
    }

    /// An applier for one start of a node. It applies commands with `inner` and records them here.
    pub fn applier(&self, node: u64, inner: Arc<dyn Applier>) -> Arc<dyn Applier> {
        let mut ledger = self.lock();
        let starts = ledger.starts.entry(node).or_default();
        *starts += 1;
        Arc::new(Witnessed {
            node,
            start: *starts,
            ledger: self.clone(),
            inner,
        })
    }
}

impl Ledger {
    /// Records that all nodes were lost and start again from the state at index `behind`, with
    /// these voters. Returns the previous log.
    pub fn begin_again(&mut self, behind: u64, voters: BTreeSet<u64>) -> BTreeMap<u64, Stamped> {
        let before = self.log.clone();
        self.log.retain(|index, _| *index <= behind);
        self.changed.retain(|index, _| *index <= behind);
        self.life += 1;
        self.last.values_mut().for_each(|last| *last = behind);
        self.logs = Logs::starting_at(behind, voters);
        self.invariants = invariants::all();
        self.log_invariants = invariants::log_invariants(&self.ordered);
        before
    }

    /// The first entry after `after`, up to `up_to`, that has changed something in a partition.
    pub(crate) fn changed(&self, partition: PartitionId, after: u64, up_to: u64) -> Option<u64> {
        let range = self.changed.range(after.saturating_add(1)..);
        let mut entries = range.take_while(|(index, _)| **index <= up_to);
        let found = entries.find(|(_, partitions)| partitions.contains(&partition));
        found.map(|(index, _)| *index)
    }

    /// The logs of all nodes.
    pub fn logs(&self) -> &Logs {
        &self.logs
    }

    /// The permissions for membership changes, which operators update.
    pub fn ordered(&self) -> OrderedChanges {
        self.ordered.clone()
    }
}

impl Default for SharedLedger {
    fn default() -> Self {
        Self::new()
    }
}

struct Watched {
    node: u64,
    ledger: SharedLedger,
}

impl LogObserver for Watched {
    fn note(&self, event: LogEvent<'_>) {
        self.ledger.lock().happened(self.node, &event.into());
    }
}

struct Witnessed {
    node: u64,
    start: u64,
    ledger: SharedLedger,
    inner: Arc<dyn Applier>,
}

impl Applier for Witnessed {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let (outcome, changes) = self.inner.apply(index, cluster, stamped);
        let mut after = cluster.clone();
        after.commit(&changes);
        let own = stamped.partition;
        let (partition, before, now) = match (cluster.partition(own), after.partition(own)) {
            (Some(before), Some(now)) => (own, before, now),
            _ => {
                let (before, now) = (cluster.default_partition(), after.default_partition());
                (PartitionId::DEFAULT, before, now)
            }
        };
        let of_all: Vec<_> = changes.iter().flat_map(|(_, own)| own).cloned().collect();
        let applied = Applied {
            node: self.node,
            start: self.start,
            index,
            partition,
            before,
            after: now,
            digest: after.digest(),
            stamped,
            outcome: &outcome,
            changes: &of_all,
        };
        let mut ledger = self.ledger.lock();
        ledger.note(&applied);
        (ledger.changed.entry(index)).or_insert_with(|| changed(cluster, &after, &changes));
        drop(ledger);
        (outcome, changes)
    }
}

/// The partitions in which a value that clients can see has changed.
fn changed(before: &Cluster, after: &Cluster, changes: &ClusterChanges) -> Vec<PartitionId> {
    let is_changed = |(partition, changes): &&(PartitionId, Changes)| {
        let states = [before, after].map(|cluster| cluster.partition(*partition));
        let mut rows = changes.iter().map(Change::key).map(|key| {
            states.map(|state| {
                state.map_or_else(|| Change::Delete(key.clone()), |state| state.row(&key))
            })
        });
        rows.any(|[before, after]| value(before) != value(after))
    };
    let changed = changes.iter().filter(is_changed);
    changed.map(|(partition, _)| *partition).collect()
}

/// The part of a row that clients can change, without its timestamps.
fn value(row: Change) -> Option<Change> {
    let never = Timestamp(0);
    match row {
        Change::PutProvider(id, row) => Some(Change::PutProvider(
            id,
            ProviderRow {
                created_at: never,
                updated_at: never,
                ..row
            },
        )),
        Change::PutInventory(id, class, row) => Some(Change::PutInventory(
            id,
            class,
            InventoryRow {
                updated_at: never,
                ..row
            },
        )),
        Change::PutResourceClass(id, row) => {
            let updated_at = never;
            Some(Change::PutResourceClass(id, NameRow { updated_at, ..row }))
        }
        Change::PutTrait(id, row) => {
            let updated_at = never;
            Some(Change::PutTrait(id, NameRow { updated_at, ..row }))
        }
        Change::PutProviderTraits(id, traits) if !traits.is_empty() => {
            Some(Change::PutProviderTraits(id, traits))
        }
        Change::PutConsumer(consumer, row) => {
            let updated_at = never;
            Some(Change::PutConsumer(
                consumer,
                ConsumerRow { updated_at, ..row },
            ))
        }
        Change::PutProviderAggregates(id, aggregates) if !aggregates.is_empty() => {
            Some(Change::PutProviderAggregates(id, aggregates))
        }
        _ => None,
    }
}

impl Ledger {
    fn happened(&mut self, node: u64, happened: &LogChange) {
        let committed = self.logs.note(node, happened);
        let hint = LogObservation {
            node,
            happened,
            committed,
        };
        for invariant in &mut self.log_invariants {
            if let Err(wrong) = invariant.check_change(&self.logs, &hint) {
                self.violations
                    .push(format!("{}: {wrong}", invariant.name()));
            }
        }
    }

    fn note(&mut self, applied: &Applied<'_>) {
        self.applied += 1;
        let last = self
            .last
            .insert(applied.node, applied.index)
            .unwrap_or_default();
        if last < applied.index && self.log.range(last + 1..applied.index).next().is_some() {
            self.snapshots += 1;
        }
        for invariant in &mut self.invariants {
            if let Err(wrong) = invariant.applied(applied) {
                let Applied { node, index, .. } = applied;
                self.violations.push(format!(
                    "{}: at {index} on node {node}: {wrong}",
                    invariant.name()
                ));
            }
        }
        self.log
            .entry(applied.index)
            .or_insert_with(|| applied.stamped.clone());
    }
}
