//! Appliers with wrong rules.

use std::sync::Arc;

use placement_model::cluster::ClusterChanges;
use placement_model::command::{Command, ReplaceAllocations, WriteId};
use placement_model::state::change::RowKey;
use placement_model::types::PartitionId;
use placement_model::{Change, Cluster, Outcome, Refusal, Stamped};
use placement_raft_store::{Applier, Rules};

use super::Mutant;
use crate::parameters::Clouds;

type Decide = fn(u64, &Cluster, &Stamped) -> (Outcome, ClusterChanges);

struct FaultyApplier(Decide);

impl Applier for FaultyApplier {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        (self.0)(index, cluster, stamped)
    }
}

/// The rules that a node applies.
pub(super) fn rules(mutant: Option<Mutant>, node: u64) -> Arc<dyn Applier> {
    let decide: Decide = match mutant {
        Some(Mutant::SkipCapacityCheck) => no_capacity,
        Some(Mutant::ApplyRetriesTwice) => forgetful,
        Some(Mutant::PartitionForgotten) => one_partition,
        Some(Mutant::DivergingNode) if node == 2 => late_clock,
        Some(Mutant::FirstOfSeveralStays) => first_stays,
        Some(Mutant::GenerationStays) => same_generation,
        Some(Mutant::LastClaimForgotten) => last_forgotten,
        Some(Mutant::NeighboursLastClaimForgotten) => neighbours_last_forgotten,
        Some(Mutant::ReplyOfTheWriteBefore) => next_write_id,
        _ => return Arc::new(Rules),
    };
    Arc::new(FaultyApplier(decide))
}

fn no_capacity(index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
    let (outcome, changes) = Rules.apply(index, cluster, stamped);
    if !matches!(
        outcome,
        Outcome::Refused(Refusal::AllocationCapacity { .. })
    ) {
        return (outcome, changes);
    }
    // Decides again, on a state with huge inventories.
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

fn forgetful(index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
    let forgotten = stamped.write_id.map(|request| WriteId {
        // A separate session for every entry, so that no repetition is recognized.
        origin: request.origin + 1000 * index,
        ..request
    });
    Rules.apply(
        index,
        cluster,
        &Stamped {
            write_id: forgotten,
            ..stamped.clone()
        },
    )
}

fn one_partition(index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
    let mut stamped = stamped.clone();
    stamped.partition = PartitionId::DEFAULT;
    Rules.apply(index, cluster, &stamped)
}

fn late_clock(index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
    let mut stamped = stamped.clone();
    if let Command::ReplaceAllocations(_) = stamped.command {
        stamped.at.0 += 1;
    }
    Rules.apply(index, cluster, &stamped)
}

fn first_stays(index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
    let (outcome, mut changes) = Rules.apply(index, cluster, stamped);
    if let Outcome::Refused(_) = outcome
        && let Command::ReplaceAllocations(ReplaceAllocations { consumers }) = &stamped.command
        && consumers.len() > 1
    {
        let mut first = Stamped {
            write_id: None,
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

fn same_generation(index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
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

fn last_forgotten(index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
    let mut stamped = stamped.clone();
    if let Command::ReplaceAllocations(ReplaceAllocations { consumers }) = &mut stamped.command {
        for consumer in consumers {
            if consumer.allocations.len() > 1 {
                consumer.allocations.pop();
            }
        }
    }
    Rules.apply(index, cluster, &stamped)
}

fn neighbours_last_forgotten(
    index: u64,
    cluster: &Cluster,
    stamped: &Stamped,
) -> (Outcome, ClusterChanges) {
    if Clouds::First.neighbour() == Some(stamped.partition) {
        last_forgotten(index, cluster, stamped)
    } else {
        Rules.apply(index, cluster, stamped)
    }
}

fn next_write_id(index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
    let (outcome, mut changes) = Rules.apply(index, cluster, stamped);
    for change in changes.iter_mut().flat_map(|(_, own)| own) {
        if let Change::PutOutcome(_, sequence, _) | Change::Delete(RowKey::Outcome(_, sequence)) =
            change
        {
            *sequence += 1;
        }
    }
    (outcome, changes)
}
