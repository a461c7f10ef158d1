//! Claims with choices, ceilings and groups. A choice is first written to a copy without any check;
//! groups and ceilings are then counted in that copy. The limits are checked last.

use std::collections::BTreeSet;

use placement_model::command::{
    Ceiling, Claim, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, Counted, Group,
    GroupRule,
};
use placement_model::outcome::{Refusal, RefusedChoice, Reply, Shortage};
use placement_model::types::{
    ConsumerUuid, Generation, ProviderUuid, ResourceClassName, Timestamp,
};

use super::holds::HoldUpdate;
use super::inventories::exact_capacity;
use super::{ApplyResult, Naive, NaiveConsumer};

/// The choices of a claim, each as the allocations of `POST /allocations`.
fn choices(claim: &Claim) -> Vec<Vec<ConsumerAllocations>> {
    let mut choices = Vec::new();
    for choice in &claim.choices {
        let mut consumers = Vec::new();
        for (claimant, allocations) in claim.claimants.iter().zip(choice) {
            consumers.push(ConsumerAllocations {
                consumer: claimant.consumer.clone(),
                allocations: allocations.clone(),
                project: claimant.project.clone(),
                user: claimant.user.clone(),
                generation: claimant.generation,
                consumer_type: claimant.consumer_type.clone(),
            });
        }
        choices.push(consumers);
    }
    choices
}

impl Naive {
    pub(super) fn claim(&mut self, at: Timestamp, claim: &Claim) -> ApplyResult {
        let choices = choices(claim);
        if let Some(choice) = self.held_choice(claim) {
            let repeated = true;
            return Ok(Reply::Claimed { choice, repeated });
        }
        for claimant in &claim.claimants {
            self.check_generation(&claimant.consumer, claimant.generation)?;
        }
        let update = self.claimed_holds(at, claim)?;
        let mut unknown = Vec::new();
        let (mut of_groups, mut of_ceilings) = (Vec::new(), Vec::new());
        let (mut without_room, mut of_limits) = (Vec::new(), Vec::new());
        for (choice, consumers) in (0_u32..).zip(&choices) {
            let mut named = consumers.iter().flat_map(|one| &one.allocations);
            if let Some(asked) = named.find(|asked| self.given(&asked.provider).is_none()) {
                let refusal = Refusal::AllocationProviderNotFound(asked.provider.clone());
                unknown.push((choice, refusal, None));
                continue;
            }
            let after = self.unchecked(at, consumers, &update);
            if let Some(refusal) = broken_group(claim, &after) {
                of_groups.push((choice, refusal, None));
            } else if let Some(refusal) = self.passed_ceiling(claim, &after) {
                of_ceilings.push((choice, refusal, None));
            } else {
                match self.with_room(at, consumers, &update) {
                    Ok(after) => {
                        let repeated = false;
                        match after.check_limits(self, Reply::Claimed { choice, repeated }) {
                            Ok(reply) => {
                                *self = after;
                                return Ok(reply);
                            }
                            Err(refusal) => of_limits.push(refusal),
                        }
                    }
                    Err(refusal) => {
                        let shortage = self.shortage(claim, &after, &refusal);
                        without_room.push((choice, refusal, shortage));
                    }
                }
            }
        }
        if let Some(refusal) = of_limits.into_iter().next() {
            return Err(refusal);
        }
        if without_room.is_empty() {
            let mut deciding = of_ceilings.iter().chain(&of_groups);
            if let Some((_, refusal, _)) = deciding.next() {
                return Err(refusal.clone());
            }
        }
        let all = [without_room, of_ceilings, of_groups, unknown].concat();
        let reason = |(choice, refusal, shortage)| RefusedChoice {
            choice,
            refusal,
            shortage,
        };
        Err(Refusal::ClaimRefused(
            all.into_iter().take(4).map(reason).collect(),
        ))
    }

    /// The choice that all claimants hold, if they are sent as new.
    pub fn held_choice(&self, claim: &Claim) -> Option<u32> {
        let is_new = |generation| generation == ConsumerGeneration::New;
        if !claim.claimants.iter().all(|one| is_new(one.generation)) {
            return None;
        }
        let kept_for = claim.hold.as_ref().map(|hold| &hold.kept_for);
        for claimant in &claim.claimants {
            let hold = self.consumers.get(&claimant.consumer)?.hold.as_ref();
            if hold.map(|hold| &hold.kept_for) != kept_for {
                return None;
            }
        }
        let held = (0..claim.choices.len()).find(|choice| self.holds_choice(claim, *choice));
        held.map(|choice| choice as u32)
    }

    /// Whether all claimants hold exactly this choice, with the owner and type of the claim.
    pub fn holds_choice(&self, claim: &Claim, choice: usize) -> bool {
        let choices = choices(claim);
        let Some(consumers) = choices.get(choice) else {
            return false;
        };
        consumers.iter().all(|wanted| self.is_held(wanted))
    }

    fn is_held(&self, wanted: &ConsumerAllocations) -> bool {
        let Some(row) = self.consumers.get(&wanted.consumer) else {
            return false;
        };
        let mut of = BTreeSet::new();
        for asked in &wanted.allocations {
            for (class, amount) in &asked.resources {
                let Some(provider) = self.given(&asked.provider) else {
                    return false;
                };
                let Ok(class) = self.named_class(class) else {
                    return false;
                };
                of.insert((provider, class, *amount));
            }
        }
        let mine = self.allocations.iter();
        let mine = mine.filter(|((holder, _, _), _)| *holder == wanted.consumer);
        let held: BTreeSet<_> = mine.map(|((_, p, c), n)| (*p, c.clone(), *n)).collect();
        let same_type = match &wanted.consumer_type {
            ConsumerTypeUpdate::Keep => true,
            ConsumerTypeUpdate::Set(name) => row.consumer_type.as_ref() == Some(name),
        };
        held == of && same_type && row.project == wanted.project && row.user == wanted.user
    }

    /// The model after a choice, if no check refused it.
    fn unchecked(
        &self,
        at: Timestamp,
        consumers: &[ConsumerAllocations],
        update: &HoldUpdate,
    ) -> Self {
        let mut after = self.clone();
        after.end_holds(&update.ended);
        for wanted in consumers {
            let old = self.consumers.get(&wanted.consumer);
            let consumer_type = match &wanted.consumer_type {
                ConsumerTypeUpdate::Keep => old.and_then(|old| old.consumer_type.clone()),
                ConsumerTypeUpdate::Set(name) => Some(name.clone()),
            };
            let row = NaiveConsumer {
                generation: Generation(0),
                project: wanted.project.clone(),
                user: wanted.user.clone(),
                consumer_type,
                updated: at,
                hold: None,
            };
            after.consumers.insert(wanted.consumer.clone(), row);
            after
                .allocations
                .retain(|(holder, _, _), _| *holder != wanted.consumer);
            for asked in &wanted.allocations {
                let provider = self.given(&asked.provider).unwrap();
                for (class, amount) in &asked.resources {
                    if let Ok(class) = self.named_class(class) {
                        let key = (wanted.consumer.clone(), provider, class);
                        after.allocations.insert(key, *amount);
                    }
                }
            }
        }
        after
    }

    fn with_room(
        &self,
        at: Timestamp,
        consumers: &[ConsumerAllocations],
        update: &HoldUpdate,
    ) -> Result<Self, Refusal> {
        let mut made = self.clone();
        for wanted in consumers {
            made.ensure_consumer(at, wanted, self)?;
        }
        made.reshape(at, &[], consumers, update)?;
        Ok(made)
    }

    fn passed_ceiling(&self, claim: &Claim, after: &Self) -> Option<Refusal> {
        for (index, ceiling) in (0..).zip(&claim.ceilings) {
            let now = self.counted(ceiling, |_| true);
            let then = after.counted(ceiling, |_| true);
            if then > ceiling.limit && then > now {
                let is_claimant =
                    |uuid: &ConsumerUuid| claim.claimants.iter().any(|one| one.consumer == *uuid);
                return Some(Refusal::OverCeiling {
                    ceiling: index,
                    used: after.counted(ceiling, |uuid| !is_claimant(uuid)),
                    requested: after.counted(ceiling, is_claimant),
                    limit: ceiling.limit,
                });
            }
        }
        None
    }

    /// What a ceiling counts of some consumers.
    pub fn counted(&self, ceiling: &Ceiling, of: impl Fn(&ConsumerUuid) -> bool) -> u64 {
        let mut count = 0;
        for (uuid, row) in &self.consumers {
            let types = ceiling.types.as_ref();
            let counts = ceiling.projects.contains(&row.project)
                && types.is_none_or(|types| types.contains(&row.consumer_type));
            if !counts || !of(uuid) {
                continue;
            }
            let mine = self.allocations.iter();
            let mut mine = mine.filter(|((holder, _, _), _)| holder == uuid);
            count += match &ceiling.of {
                Counted::Consumers => u64::from(mine.next().is_some()),
                Counted::Units(asked) => {
                    let of_class =
                        mine.filter(|((_, _, class), _)| class.as_str() == asked.as_str());
                    of_class.map(|(_, amount)| *amount).sum()
                }
            };
        }
        count
    }

    /// The roots of the trees where a consumer has allocations, except on sharing providers.
    pub fn trees_of(&self, consumer: &ConsumerUuid) -> BTreeSet<ProviderUuid> {
        let mine = self.allocations.keys();
        let mine = mine.filter(|(holder, _, _)| holder == consumer);
        let shares = |uuid: &ProviderUuid| {
            let mut traits = self.providers[uuid].traits.iter();
            traits.any(|name| name.as_str() == "MISC_SHARES_VIA_AGGREGATE")
        };
        mine.filter(|(_, provider, _)| !shares(provider))
            .map(|(_, provider, _)| self.root(provider))
            .collect()
    }

    /// The first tree, in the order of creation, in which a group's rule is violated, and the
    /// number of its members there.
    pub fn violation(
        &self,
        group: &Group,
        claimants: &[ConsumerUuid],
    ) -> Option<(ProviderUuid, u32)> {
        let claimants = claimants.iter().filter(|one| group.members.contains(*one));
        let touched: BTreeSet<_> = claimants.flat_map(|one| self.trees_of(one)).collect();
        let mut touched: Vec<_> = touched.into_iter().collect();
        touched.sort_by_key(|root| self.providers[root].order);
        let members_in = |root: &ProviderUuid| {
            let members = group.members.iter();
            members
                .filter(|one| self.trees_of(one).contains(root))
                .count() as u32
        };
        let all: BTreeSet<_> = group
            .members
            .iter()
            .flat_map(|one| self.trees_of(one))
            .collect();
        let bad = touched.into_iter().find(|root| match group.rule {
            GroupRule::Apart { most } => members_in(root) > most,
            GroupRule::Together => all.len() > 1,
        });
        bad.map(|root| (root, members_in(&root)))
    }

    fn shortage(&self, claim: &Claim, after: &Self, refusal: &Refusal) -> Option<Shortage> {
        let Refusal::AllocationCapacity(provider, class) = refusal else {
            return None;
        };
        let is_claimant =
            |uuid: &ConsumerUuid| claim.claimants.iter().any(|one| one.consumer == *uuid);
        let of = |(key, amount): (&(ConsumerUuid, ProviderUuid, ResourceClassName), &u64)| {
            (key.1 == *provider && key.2 == *class).then(|| (is_claimant(&key.0), *amount))
        };
        let held: Vec<_> = after.allocations.iter().filter_map(of).collect();
        let sum = |claimants: bool| -> u64 {
            let part = held
                .iter()
                .filter(|(is_claimant, _)| *is_claimant == claimants);
            part.map(|(_, amount)| amount).sum()
        };
        let capacity = exact_capacity(&self.providers[provider].inventories[class].inventory);
        Some(Shortage {
            requested: sum(true),
            free: (capacity.floor() as u64).saturating_sub(sum(false)),
        })
    }
}

fn broken_group(claim: &Claim, after: &Naive) -> Option<Refusal> {
    let claimants: Vec<_> = claim
        .claimants
        .iter()
        .map(|one| one.consumer.clone())
        .collect();
    for (index, group) in (0..).zip(&claim.groups) {
        if let Some((root, members)) = after.violation(group, &claimants) {
            return Some(Refusal::GroupBroken {
                group: index,
                root,
                members,
            });
        }
    }
    None
}
