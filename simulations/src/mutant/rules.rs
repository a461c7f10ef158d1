//! Appliers with wrong rules.

use std::sync::Arc;

use placement_model::cluster::ClusterChanges;
use placement_model::command::{Command, ReplaceAllocations, WriteId};
use placement_model::state::change::{Amounts, ConsumerRow, RowKey};
use placement_model::types::{Generation, PartitionId};
use placement_model::{Change, Cluster, Outcome, Refusal, Reply, Stamped};
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
        Some(Mutant::SecondChoiceFirst) => second_choice_first,
        Some(Mutant::TypeLeftOut) => type_left_out,
        Some(Mutant::RefusedClaimLeavesARow) => row_left,
        Some(Mutant::RepetitionTakesTheNext) => next_choice,
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

fn second_choice_first(
    index: u64,
    cluster: &Cluster,
    stamped: &Stamped,
) -> (Outcome, ClusterChanges) {
    let mut swapped = stamped.clone();
    match &mut swapped.command {
        Command::Claim(claim) if claim.choices.len() > 1 => claim.choices.swap(0, 1),
        _ => return Rules.apply(index, cluster, stamped),
    }
    let (outcome, changes) = Rules.apply(index, cluster, &swapped);
    let right =
        |choice: &mut u32, _| *choice = [1, 0].get(*choice as usize).copied().unwrap_or(*choice);
    with_choice(outcome, changes, right)
}

fn next_choice(index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
    let (outcome, changes) = Rules.apply(index, cluster, stamped);
    let next = |choice: &mut u32, repeated| *choice += u32::from(repeated);
    with_choice(outcome, changes, next)
}

/// Changes the claimed choice in the outcome and where it is stored. `change` also gets whether
/// the claim is repeated.
fn with_choice(
    mut outcome: Outcome,
    mut changes: ClusterChanges,
    change: impl Fn(&mut u32, bool),
) -> (Outcome, ClusterChanges) {
    let changes_of_all = changes.iter_mut().flat_map(|(_, own)| own);
    let stored = changes_of_all.filter_map(|change| match change {
        Change::PutOutcome(_, _, outcome) => Some(outcome),
        _ => None,
    });
    for outcome in stored.chain([&mut outcome]) {
        let reply = match outcome {
            Outcome::Done(Reply::OverLimits { reply, .. }) => &mut **reply,
            Outcome::Done(reply) => reply,
            _ => continue,
        };
        if let Reply::Claimed { choice, repeated } = reply {
            change(choice, *repeated);
        }
    }
    (outcome, changes)
}

fn type_left_out(index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
    let mut stamped = stamped.clone();
    if let Command::Claim(claim) = &mut stamped.command {
        for types in claim
            .ceilings
            .iter_mut()
            .filter_map(|one| one.types.as_mut())
        {
            types.pop_first();
        }
    }
    Rules.apply(index, cluster, &stamped)
}

fn row_left(index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
    let (outcome, mut changes) = Rules.apply(index, cluster, stamped);
    if let Outcome::Refused(Refusal::ClaimRefused(_)) = outcome
        && let Command::Claim(claim) = &stamped.command
        && let Some(state) = cluster.partition(stamped.partition)
        && let Some(first) = claim.claimants.first()
        && state.consumer(&first.consumer).is_none()
    {
        let row = ConsumerRow {
            generation: Generation(0),
            project: first.project.clone(),
            user: first.user.clone(),
            consumer_type: None,
            allocations: Amounts::default(),
            updated_at: stamped.at,
            hold: None,
        };
        let put = Change::PutConsumer(first.consumer.clone(), row);
        changes.push((stamped.partition, vec![put]));
    }
    (outcome, changes)
}
