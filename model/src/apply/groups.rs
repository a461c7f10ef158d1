//! Groups of a claim: conditions on the trees in which their members have allocations.

use std::collections::{BTreeMap, BTreeSet};

use super::consumers::Inspected;
use super::{claims, ensure};
use crate::command::{Claim, Group, GroupRule};
use crate::outcome::Refusal;
use crate::state::State;
use crate::state::tree::TreeNumber;
use crate::types::ConsumerUuid;

/// The groups of a claim with the trees of their other members.
pub(super) struct Groups<'a>(Vec<Placed<'a>>);

/// Number of members by tree.
type Members = BTreeMap<TreeNumber, u32>;

struct Placed<'a> {
    /// Index of the group in the claim.
    index: u32,
    group: &'a Group,
    /// The members that are not claimants.
    others: Members,
}

impl<'a> Groups<'a> {
    /// Counts the members before the claim, which ends the holds of the consumers `ended`.
    pub(super) fn new(state: &State, claim: &'a Claim, ended: &BTreeSet<ConsumerUuid>) -> Self {
        let claimants: BTreeSet<_> = claim.claimants.iter().map(|one| &one.consumer).collect();
        let has_claimant = |(_, group): &(u32, &Group)| {
            let mut claimants = claimants.iter();
            claimants.any(|consumer| group.members.contains(*consumer))
        };
        let placed = |(index, group): (u32, &'a Group)| {
            let others = group.members.iter();
            let others = others.filter(|one| !claimants.contains(one) && !ended.contains(*one));
            Placed {
                index,
                group,
                others: members(others.map(|member| state.trees_of_consumer(member))),
            }
        };
        let groups = (0..).zip(&claim.groups).filter(has_claimant);
        Self(groups.map(placed).collect())
    }

    /// Checks the groups for a choice. The trees without a claimant of the group are not judged.
    pub(super) fn check(&self, state: &State, choice: &Inspected<'_>) -> Result<(), Refusal> {
        if self.0.is_empty() {
            return Ok(());
        }
        let trees: Vec<_> = (0..choice.consumers.len())
            .map(|index| {
                let claims = claims::claims_of(&choice.claims, index).iter();
                let held = claims.filter(|claim| claim.amount > 0);
                state.trees_of_providers(held.map(|claim| claim.provider))
            })
            .collect();
        for placed in &self.0 {
            let claimants = choice.consumers.iter().zip(&trees);
            let claimants =
                claimants.filter(|(one, _)| placed.group.members.contains(&one.consumer));
            placed.check(state, &members(claimants.map(|(_, trees)| trees.clone())))?;
        }
        Ok(())
    }
}

impl Placed<'_> {
    fn check(&self, state: &State, claimants: &Members) -> Result<(), Refusal> {
        let everywhere: BTreeSet<_> = claimants.keys().chain(self.others.keys()).collect();
        for (tree, members) in claimants {
            let others = self.others.get(tree).copied().unwrap_or(0);
            let members = members.saturating_add(others);
            let holds = match self.group.rule {
                GroupRule::Apart { most } => members <= most,
                GroupRule::Together => everywhere.len() == 1,
            };
            ensure(holds, || {
                let root = state.node_by_id(tree.root());
                Refusal::GroupBroken {
                    group: self.index,
                    root: root.expect("a tree has a root").uuid,
                    members,
                }
            })?;
        }
        Ok(())
    }
}

/// Counts the members in each tree.
fn members(each: impl Iterator<Item = BTreeSet<TreeNumber>>) -> Members {
    let mut members = Members::new();
    for tree in each.flatten() {
        *members.entry(tree).or_default() += 1;
    }
    members
}
