//! Estimates the cost of a claim before it is applied.

use crate::cluster::Cluster;
use crate::command::{
    Ceiling, Claim, Command, ConsumerAllocations, Group, ProviderAmounts, Stamped, WriteId,
};
use crate::state::State;
use crate::state::tree::NodePlace;
use crate::types::{ConsumerUuid, ProjectId};

/// Fixed steps per claim, for writing its rows and hashing them before and after.
const STEPS_OF_ROWS: usize = 8;
/// Maximum number of resource classes for an estimate. A claim copies the usage sums of a project,
/// which grow with the number of classes.
const CLASSES_MAX: usize = 1024;

impl Cluster {
    /// Estimates the steps to apply and commit a claim or its deletion, about a microsecond each.
    /// Steps are counted for rows, amounts, current allocations, the inventories of affected trees,
    /// and outcomes to delete. Returns `None` for more than `most` steps, or for another command.
    pub fn steps_of_claim(&self, stamped: &Stamped, most: usize) -> Option<usize> {
        let state = self.partition(stamped.partition)?;
        let mut steps = Steps { state, left: most };
        steps.take(STEPS_OF_ROWS)?;
        if state.resource_classes.len() > CLASSES_MAX {
            return None;
        }
        match &stamped.command {
            Command::ReplaceAllocations(replace) => {
                let mut consumers = replace.consumers.iter();
                consumers.try_for_each(|consumer| steps.claim(consumer))?;
                let mut consumers = replace.consumers.iter();
                consumers.try_for_each(|consumer| steps.limits(&consumer.project, 1))?;
            }
            Command::DeleteAllocations(delete) => steps.give_back(&delete.consumer)?,
            Command::Claim(claim) => steps.choices(claim)?,
            _ => return None,
        }
        if let Some(id) = &stamped.write_id {
            steps.forget(self.default_partition(), id)?;
        }
        Some(most - steps.left)
    }
}

/// Counts steps up to a limit.
struct Steps<'a> {
    state: &'a State,
    left: usize,
}

impl Steps<'_> {
    fn take(&mut self, steps: usize) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }

    fn claim(&mut self, consumer: &ConsumerAllocations) -> Option<()> {
        self.allocations(&consumer.allocations)?;
        self.replaced(&consumer.consumer)
    }

    /// Counts the current allocations of a consumer and the holds that are kept for it, which end.
    fn replaced(&mut self, consumer: &ConsumerUuid) -> Option<()> {
        self.give_back(consumer)?;
        let mut ended = self.state.consumers.holds().for_consumer(consumer);
        ended.try_for_each(|holder| self.give_back(holder))
    }

    fn allocations(&mut self, allocations: &[ProviderAmounts]) -> Option<()> {
        for asked in allocations {
            self.take(1 + asked.resources.len())?;
            self.tree(self.state.place_given(&asked.provider))?;
        }
        Some(())
    }

    /// Counts the amounts of all choices, but the trees of only one choice, whichever has most.
    fn choices(&mut self, claim: &Claim) -> Option<()> {
        for claimant in &claim.claimants {
            self.replaced(&claimant.consumer)?;
            self.limits(&claimant.project, claim.choices.len())?;
        }
        let kept_for = claim.hold.as_ref().map_or(0, |hold| hold.kept_for.len());
        self.take(kept_for * claim.claimants.len())?;
        claim
            .ceilings
            .iter()
            .try_for_each(|one| self.ceiling(one))?;
        claim.groups.iter().try_for_each(|one| self.group(one))?;
        let mut most = 0;
        for choice in &claim.choices {
            let lines = choice.iter().flatten();
            let lines: usize = lines.map(|asked| 1 + asked.resources.len()).sum();
            // Each choice is compared with each ceiling and group, for each claimant at most.
            let conditions = claim.ceilings.len() + claim.groups.len();
            self.take(lines + conditions * claim.claimants.len())?;
            let mut alone = Steps { ..*self };
            choice.iter().try_for_each(|one| alone.allocations(one))?;
            most = most.max(self.left - alone.left);
        }
        self.take(most)
    }

    /// Counts the sums that the limits of a project and its parent concern, for each choice.
    fn limits(&mut self, project: &ProjectId, choices: usize) -> Option<()> {
        let Some(limits) = self.state.kept_limits() else {
            return Some(());
        };
        let projects = std::iter::once(project).chain(limits.parent(project));
        let sums = projects.map(|project| {
            let members = 1 + limits.children(project);
            1 + members * limits.types() * limits.resources_max(project)
        });
        self.take(sums.fold(0, usize::saturating_add).saturating_mul(choices))
    }

    /// Counts the sums that a ceiling adds up.
    fn ceiling(&mut self, ceiling: &Ceiling) -> Option<()> {
        let sums = self.state.consumers.sums();
        ceiling.projects.iter().try_for_each(|project| {
            let types = match &ceiling.types {
                Some(types) => types.len(),
                None => sums.get(project, None).map_or(0, |sums| sums.len()),
            };
            self.take(1 + types)
        })
    }

    /// Counts the allocations of the members of a group.
    fn group(&mut self, group: &Group) -> Option<()> {
        group.members.iter().try_for_each(|member| {
            let row = self.state.consumers.row(member);
            self.take(1 + row.map_or(0, |row| row.allocations.iter().len()))
        })
    }

    /// Counts the current allocations of a consumer, which the claim replaces.
    fn give_back(&mut self, consumer: &ConsumerUuid) -> Option<()> {
        self.take(1)?;
        let Some(row) = self.state.consumers.row(consumer) else {
            return Some(());
        };
        let kept_for = row.hold.as_ref().map_or(0, |hold| hold.kept_for.len());
        self.take(row.allocations.iter().len() + kept_for)?;
        let mut providers = row.allocations.by_provider();
        providers.try_for_each(|(provider, _)| self.tree(self.state.place_by_id(provider)))
    }

    /// Counts a tree, which is copied when one of its providers changes.
    fn tree(&mut self, place: Option<NodePlace>) -> Option<()> {
        let Some(tree) = place.and_then(|place| self.state.tree(place.tree)) else {
            return Some(());
        };
        let mut nodes = tree.nodes.iter();
        nodes.try_for_each(|node| self.take(1 + node.inventories.len()))
    }

    /// Counts the outcomes that are deleted when the new outcome is stored. After a restart of the
    /// node, these are all its outcomes.
    fn forget(&mut self, of_all: &State, id: &WriteId) -> Option<()> {
        let sessions = &of_all.sessions;
        let new_boot = (sessions.row(id.origin)).is_some_and(|row| row.boot != id.boot);
        let goes = |sequence: &u64| new_boot || *sequence < id.answered_below;
        let mut going = sessions.sequences(id.origin).take_while(goes);
        going.try_for_each(|_| self.take(1))
    }
}
