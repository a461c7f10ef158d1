//! Rules that decide wrongly.

use std::sync::Arc;

use placement_model::cluster::ClusterChanges;
use placement_model::command::{Command, ReplaceAllocations, RequestId};
use placement_model::types::PartitionId;
use placement_model::{Change, Cluster, Outcome, Refusal, Stamped};
use placement_raft_store::{Applier, Rules};

use super::Mutant;

/// The rules that a node applies.
pub(super) fn rules(mutant: Option<Mutant>, node: u64) -> Arc<dyn Applier> {
    match mutant {
        Some(Mutant::SkipCapacityCheck) => Arc::new(NoCapacity),
        Some(Mutant::ApplyRetriesTwice) => Arc::new(Forgetful),
        Some(Mutant::PartitionForgotten) => Arc::new(OnePartition),
        Some(Mutant::DivergingNode) if node == 2 => Arc::new(LateClock),
        Some(Mutant::FirstOfSeveralStays) => Arc::new(FirstStays),
        Some(Mutant::GenerationStays) => Arc::new(SameGeneration),
        Some(Mutant::LastClaimForgotten) => Arc::new(LastForgotten),
        Some(Mutant::ReplyOfTheWriteBefore) => Arc::new(NextWriteId),
        _ => Arc::new(Rules),
    }
}

struct NoCapacity;

impl Applier for NoCapacity {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let (outcome, changes) = Rules.apply(index, cluster, stamped);
        if !matches!(
            outcome,
            Outcome::Refused(Refusal::AllocationCapacity { .. })
        ) {
            return (outcome, changes);
        }
        // The same question to a cloud of boundless stock.
        let mut boundless = cluster.clone();
        let stock: ClusterChanges = cluster
            .rows()
            .filter_map(|(partition, change)| match change {
                Change::PutInventory(provider, class, mut row) => {
                    row.inventory.total = 1_000_000;
                    let change = Change::PutInventory(provider, class, row);
                    Some((partition, vec![change]))
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
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let forgotten = stamped.request.map(|request| RequestId {
            // A session of its own for every entry, so that none is recognised.
            origin: request.origin + 1000 * index,
            ..request
        });
        Rules.apply(
            index,
            cluster,
            &Stamped {
                request: forgotten,
                ..stamped.clone()
            },
        )
    }
}

struct OnePartition;

impl Applier for OnePartition {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let mut stamped = stamped.clone();
        stamped.partition = PartitionId::DEFAULT;
        Rules.apply(index, cluster, &stamped)
    }
}

struct LateClock;

impl Applier for LateClock {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let mut stamped = stamped.clone();
        if let Command::ReplaceAllocations(_) = stamped.command {
            stamped.at.0 += 1;
        }
        Rules.apply(index, cluster, &stamped)
    }
}

struct FirstStays;

impl Applier for FirstStays {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let (outcome, mut changes) = Rules.apply(index, cluster, stamped);
        if let Outcome::Refused(_) = outcome
            && let Command::ReplaceAllocations(ReplaceAllocations { consumers }) = &stamped.command
            && consumers.len() > 1
        {
            let mut first = Stamped {
                request: None,
                ..stamped.clone()
            };
            first.command = Command::ReplaceAllocations(ReplaceAllocations {
                consumers: consumers[..1].to_vec(),
            });
            let (alone, more) = Rules.apply(index, cluster, &first);
            if matches!(alone, Outcome::Done(_)) {
                changes.extend(more);
            }
        }
        (outcome, changes)
    }
}

struct SameGeneration;

impl Applier for SameGeneration {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let (outcome, mut changes) = Rules.apply(index, cluster, stamped);
        if let Command::ReplaceInventories(_) = stamped.command {
            for (partition, changes) in &mut changes {
                for change in changes {
                    if let Change::PutProvider(id, row) = change
                        && let Some(state) = cluster.partition(*partition)
                        && let Some(before) = state.node_by_id(*id)
                    {
                        row.generation = before.generation;
                    }
                }
            }
        }
        (outcome, changes)
    }
}

struct LastForgotten;

impl Applier for LastForgotten {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let mut stamped = stamped.clone();
        if let Command::ReplaceAllocations(ReplaceAllocations { consumers }) = &mut stamped.command
        {
            for consumer in consumers {
                if consumer.allocations.len() > 1 {
                    consumer.allocations.pop();
                }
            }
        }
        Rules.apply(index, cluster, &stamped)
    }
}

struct NextWriteId;

impl Applier for NextWriteId {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let (outcome, mut changes) = Rules.apply(index, cluster, stamped);
        for change in changes.iter_mut().flat_map(|(_, own)| own) {
            if let Change::PutOutcome(_, sequence, _) | Change::DeleteOutcome(_, sequence) = change
            {
                *sequence += 1;
            }
        }
        (outcome, changes)
    }
}
