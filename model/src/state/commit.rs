//! Applies changes. No other code modifies tables, trees, indexes, sums and the digest.
//!
//! Changes come from apply, which decided on the same state, or through [`State::load`], which
//! refuses dangling references. A change that refers to a missing row is therefore a bug. The
//! resulting panic stops the node before its state diverges from other nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::State;
use super::change::{Change, ConsumerRow, ProviderId, ProviderRow, RowKey, TraitId};
use super::digest::Digest;
use super::limits::KeptLimits;
use super::tree::{Node, NodePlace, Stock, Tree, TreeNumber};
use crate::mutant;
use crate::types::ConsumerUuid;

/// A running commit. Each changed tree is copied once, and the indexes are updated once per tree,
/// at the end.
pub(crate) struct Commit<'a> {
    state: &'a mut State,
    /// The changed trees as they were before the commit; `None` for new trees.
    before: BTreeMap<TreeNumber, Option<Arc<Tree>>>,
}

impl<'a> Commit<'a> {
    pub(crate) fn new(state: &'a mut State) -> Self {
        Self {
            state,
            before: BTreeMap::new(),
        }
    }

    /// The state with all changes so far, except that its indexes are not updated yet.
    pub(crate) fn state(&self) -> &State {
        self.state
    }

    /// Updates the indexes for the changed trees.
    pub(crate) fn finish(self) {
        let State {
            providers, indexes, ..
        } = self.state;
        for (number, before) in &self.before {
            let after = providers.trees.get(number).map(|tree| &**tree);
            indexes.replace_tree(*number, before.as_deref(), after);
        }
    }

    pub(crate) fn carry_out(&mut self, changes: &[Change]) {
        let same = |one: &Change, next: &Change| {
            stocked(one).is_some_and(|provider| Some(provider) == stocked(next))
        };
        for together in changes.chunk_by(same) {
            match stocked(&together[0]) {
                Some(id) => self.change_inventories(id, together),
                None => self.carry_out_one(&together[0]),
            }
        }
    }

    fn carry_out_one(&mut self, change: &Change) {
        self.state.digest.count_in(Digest::from_change(change));
        match change {
            Change::PutProvider(id, row) => self.put_provider(*id, row),
            Change::PutConsumer(consumer, row) => self.put_consumer(consumer, row),
            Change::Delete(RowKey::Consumer(consumer)) => self.delete_consumer(consumer),
            other => self.carry_out_plain(other),
        }
    }

    /// Applies a change whose old row must be looked up for the digest.
    fn carry_out_plain(&mut self, change: &Change) {
        let state = &mut *self.state;
        if let Some(old) = state.current_row(&change.key()) {
            state.digest.count_out(Digest::from_change(&old));
        }
        match change {
            Change::Delete(RowKey::Provider(id)) => self.delete_provider(*id),
            Change::PutProviderTraits(id, traits) => self.put_provider_traits(*id, traits),
            Change::PutProviderAggregates(id, aggregates) => {
                self.node_mut(*id).aggregates = Arc::new(aggregates.clone());
            }
            Change::PutResourceClass(id, row) => state.resource_classes.put(id.0, row.clone()),
            Change::Delete(RowKey::ResourceClass(id)) => state.resource_classes.delete(id.0),
            Change::PutTrait(id, row) => state.traits.put(id.0, row.clone()),
            Change::Delete(RowKey::Trait(id)) => state.traits.delete(id.0),
            Change::PutSession(origin, row) => state.sessions.put(*origin, *row),
            Change::PutOutcome(origin, sequence, outcome) => {
                let outcome = outcome.clone();
                state.sessions.put_outcome(*origin, *sequence, outcome);
            }
            Change::Delete(RowKey::Outcome(origin, sequence)) => {
                state.sessions.delete_outcome(*origin, *sequence);
            }
            Change::PutCounters(counters) => state.counters = Some(*counters),
            Change::PutLevel(level) => {
                let old = state.level.replace(*level);
                assert!(old <= Some(*level), "the feature level never falls");
            }
            Change::PutJoin(node, row) => drop(state.joins.insert(*node, row.clone())),
            Change::Delete(RowKey::Join(node)) => {
                let old = state.joins.remove(node);
                old.expect("a deleted row exists");
            }
            Change::PutPartition(id, row) => drop(state.partitions.insert(*id, row.clone())),
            Change::PutLimits(row) => {
                state.limits = Some(Arc::new(KeptLimits::new(row.as_ref().clone())));
            }
            other => unreachable!("{other:?} is applied elsewhere"),
        }
    }

    /// Saves the value of a tree before this commit.
    fn remember(&mut self, number: TreeNumber) {
        let trees = &self.state.providers.trees;
        self.before
            .entry(number)
            .or_insert_with(|| trees.get(&number).cloned());
    }

    /// A mutable node of a mutable tree; other nodes remain shared.
    fn node_mut(&mut self, id: ProviderId) -> &mut Node {
        let place = self.place(id);
        self.remember(place.tree);
        let tree = self.state.providers.tree_mut(place);
        Arc::make_mut(&mut tree.nodes[place.node as usize])
    }

    fn place(&self, id: ProviderId) -> NodePlace {
        let place = self.state.providers.place(id);
        place.expect("a row refers to existing providers")
    }

    fn put_provider(&mut self, id: ProviderId, row: &ProviderRow) {
        if let Some(parent) = row.parent {
            self.remember(self.place(parent).tree);
        }
        let Some(place) = self.state.providers.place(id) else {
            self.remember(TreeNumber(id.0));
            self.state.providers.insert(id, row);
            return;
        };
        let old = self.state.providers.row(place);
        let old_row = Change::PutProvider(id, old.clone());
        self.state.digest.count_out(Digest::from_change(&old_row));
        let node = self.node_mut(id);
        node.uuid = row.uuid;
        node.name = row.name.clone();
        node.generation = row.generation;
        node.created_at = row.created_at;
        node.updated_at = row.updated_at;
        if row.name != old.name {
            self.state.providers.rename(id, &old.name, row.name.clone());
        }
        if row.parent != old.parent {
            self.remember(TreeNumber(id.0));
            self.state.providers.hang_elsewhere(place, row.parent);
        }
    }

    fn delete_provider(&mut self, id: ProviderId) {
        let place = self.place(id);
        self.remember(place.tree);
        self.state.providers.remove(place);
    }

    /// Applies the inventory changes of one provider together, in a map: in the sorted list, each
    /// insertion or deletion would move all later entries.
    fn change_inventories(&mut self, id: ProviderId, changes: &[Change]) {
        let mut stocks: BTreeMap<_, _> = std::mem::take(&mut self.node_mut(id).inventories)
            .into_iter()
            .map(|s| (s.class, s))
            .collect();
        let State {
            digest,
            resource_classes,
            ..
        } = &mut *self.state;
        for change in changes {
            digest.count_in(Digest::from_change(change));
            let old = match change {
                Change::PutInventory(_, class, row) => {
                    let used = stocks.get(class).map_or(0, |old| old.used);
                    resource_classes.add_use(class.0);
                    stocks.insert(*class, Stock::new(*class, row, used))
                }
                Change::Delete(RowKey::Inventory(_, class)) => {
                    let old = stocks.remove(class).expect("a deleted inventory exists");
                    assert_eq!(old.used, 0, "a deleted inventory has no allocations");
                    Some(old)
                }
                other => unreachable!("{other:?} does not concern an inventory"),
            };
            if let Some(old) = old {
                let old_row = Change::PutInventory(id, old.class, old.row());
                digest.count_out(Digest::from_change(&old_row));
                resource_classes.remove_use(old.class.0);
            }
        }
        self.node_mut(id).inventories = stocks.into_values().collect();
    }

    fn put_provider_traits(&mut self, id: ProviderId, traits: &BTreeSet<TraitId>) {
        let node = self.node_mut(id);
        let old = std::mem::replace(&mut node.traits, Arc::new(traits.clone()));
        let names = &mut self.state.traits;
        traits.difference(&old).for_each(|id| names.add_use(id.0));
        old.difference(traits).for_each(|id| names.remove_use(id.0));
    }

    fn put_consumer(&mut self, consumer: &ConsumerUuid, row: &ConsumerRow) {
        let old = self.state.consumers.put(consumer, row.clone());
        if let Some(old) = old {
            let digest = Digest::from_consumer(consumer, &old);
            self.state.digest.count_out(digest);
            if !mutant!("held-stays-counted") {
                self.count_used(&old, u64::checked_sub);
            }
        }
        self.count_used(row, u64::checked_add);
    }

    fn delete_consumer(&mut self, consumer: &ConsumerUuid) {
        let old = self.state.consumers.delete(consumer);
        let digest = Digest::from_consumer(consumer, &old);
        self.state.digest.count_out(digest);
        let before = mutant!("offers-stay-behind").then(|| self.before.clone());
        self.count_used(&old, u64::checked_sub);
        if let Some(before) = before {
            self.before = before;
        }
    }

    /// Adds a consumer's allocations to the usage of their inventories, or subtracts them.
    fn count_used(&mut self, row: &ConsumerRow, count: fn(u64, u64) -> Option<u64>) {
        for (provider, amounts) in row.allocations.by_provider() {
            let node = self.node_mut(provider);
            for amount in amounts {
                let stock = node
                    .stock_mut(amount.class)
                    .expect("an allocation has an inventory");
                // An amount is below 2^32, so the sum of 2^32 amounts fits into 64 bits.
                stock.used =
                    count(stock.used, amount.units).expect("the usage contains every allocation");
            }
        }
    }
}

/// The provider whose inventory a change puts or deletes, if any.
fn stocked(change: &Change) -> Option<ProviderId> {
    match change {
        Change::PutInventory(id, ..) | Change::Delete(RowKey::Inventory(id, _)) => Some(*id),
        _ => None,
    }
}
