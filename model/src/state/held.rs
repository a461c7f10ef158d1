//! What follows from the consumers of a state that is being loaded.

use std::collections::{BTreeMap, BTreeSet};

use super::change::{Amount, ConsumerRow, ProviderId, ResourceClassId};
use super::usage_sums::{Owner, TypeSum};
use crate::types::{ConsumerTypeName, ConsumerUuid, ProjectId, UserId};

/// Counts consumers one by one.
#[derive(Default)]
pub(super) struct Held {
    /// Who holds something of which provider, in the order in which they came.
    pub(super) holders: Vec<(ProviderId, ConsumerUuid)>,
    /// What is taken of each inventory, sorted by class.
    pub(super) used: BTreeMap<ProviderId, Vec<(ResourceClassId, u64)>>,
    /// What the consumers of each owner hold together, beside the owner with the texts that all of
    /// them share.
    pub(super) owners: BTreeMap<Owner, (Owner, TypeSum)>,
    texts: Texts,
}

/// Texts of which there are few, though there are millions of consumers.
#[derive(Default)]
struct Texts {
    projects: BTreeSet<ProjectId>,
    users: BTreeSet<UserId>,
    types: BTreeSet<Option<ConsumerTypeName>>,
}

impl Held {
    /// Counts a consumer in, and makes its row share its texts with those before.
    pub(super) fn count(&mut self, consumer: &ConsumerUuid, row: &mut ConsumerRow) {
        if row.allocations.is_empty() {
            return self.texts.share(row);
        }
        if let Some((owner, sum)) = self.owners.get_mut(&Owner::of(row)) {
            owner.share_texts(row);
            sum.add(row);
        } else {
            self.texts.share(row);
            let mut sum = TypeSum::default();
            sum.add(row);
            let owner = Owner::of(row);
            self.owners.insert(owner.clone(), (owner, sum));
        }
        for (provider, amounts) in row.allocations.by_provider() {
            self.holders.push((provider, consumer.clone()));
            add_amounts(self.used.entry(provider).or_default(), amounts);
        }
    }
}

fn add_amounts(used: &mut Vec<(ResourceClassId, u64)>, amounts: &[Amount]) {
    for amount in amounts {
        let at = used.binary_search_by_key(&amount.class, |(class, _)| *class);
        let at = at.unwrap_or_else(|at| {
            used.insert(at, (amount.class, 0));
            at
        });
        let sum = used[at].1.checked_add(amount.units);
        used[at].1 = sum.expect("no amount is larger than max_unit, so 2^32 of them fit");
    }
}

impl Texts {
    fn share(&mut self, row: &mut ConsumerRow) {
        share(&mut self.projects, &mut row.project);
        share(&mut self.users, &mut row.user);
        share(&mut self.types, &mut row.consumer_type);
    }
}

/// Replaces a text by the one that is equal to it, if there was one before.
fn share<T: Ord + Clone>(known: &mut BTreeSet<T>, text: &mut T) {
    match known.get(text) {
        Some(known) => *text = known.clone(),
        None => drop(known.insert(text.clone())),
    }
}
