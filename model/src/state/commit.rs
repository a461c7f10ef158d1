//! Carries out changes: the one place where tables, trees, indexes, sums and the digest move.
//!
//! Changes come from apply, which looked at the state that they are made to, or through
//! [`State::load`], which refuses what refers to nothing. So a change that does not fit is a bug
//! of ours, and this stops the node rather than let it go on with a state that no other node has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::State;
use super::change::{
    Change, ConsumerRow, InventoryRow, ProviderId, ProviderRow, ResourceClassId, TraitId,
};
use super::digest::{Digest, Table};
use super::providers::Place;
use super::tree::{Node, Stock, Tree, TreeNumber};
use crate::mutant;
use crate::types::{AggregateUuid, ConsumerUuid};

/// The inventories of one provider.
type Stocks = BTreeMap<ResourceClassId, Stock>;

/// Changes on their way into a state. Trees are copied once, and reach the indexes once, at the end.
pub(crate) struct Commit<'a> {
    state: &'a mut State,
    /// The trees as they were, of those that have changed since.
    before: BTreeMap<TreeNumber, Option<Arc<Tree>>>,
}

impl<'a> Commit<'a> {
    pub(crate) fn new(state: &'a mut State) -> Self {
        Self {
            state,
            before: BTreeMap::new(),
        }
    }

    /// The state with all changes so far, but for its indexes, which are those from before.
    pub(crate) fn state(&self) -> &State {
        self.state
    }

    /// Tells the indexes what became of the trees.
    pub(super) fn finish(self) {
        for (number, before) in &self.before {
            let after = self.state.providers.trees.get(number);
            if before.is_some() || after.is_some() {
                self.state
                    .indexes
                    .replace_tree(*number, before.as_deref(), after.map(|t| &**t));
            }
        }
    }

    pub(crate) fn carry_out(&mut self, changes: &[Change]) {
        for together in
            changes.chunk_by(|one, next| stocked(one).is_some_and(|id| Some(id) == stocked(next)))
        {
            match stocked(&together[0]) {
                Some(id) => self.change_inventories(id, together),
                None => self.carry_out_one(&together[0]),
            }
        }
    }

    fn carry_out_one(&mut self, change: &Change) {
        self.state.digest.count_in(Digest::of(change));
        match change {
            // Those of one provider go together.
            Change::PutInventory(..) | Change::DeleteInventory(..) => {}
            Change::PutProvider(id, row) => self.put_provider(*id, row),
            Change::DeleteProvider(id) => self.delete_provider(*id),
            Change::PutProviderTraits(id, traits) => self.put_provider_traits(*id, traits),
            Change::PutProviderAggregates(id, uuids) => self.put_provider_aggregates(*id, uuids),
            Change::PutConsumer(consumer, row) => self.put_consumer(consumer, row),
            Change::DeleteConsumer(consumer) => self.delete_consumer(consumer),
            other => self.carry_out_flat(other),
        }
    }

    /// Rows that nothing follows from but the digest: what they replace or delete is taken out of it.
    fn carry_out_flat(&mut self, change: &Change) {
        let state = &mut *self.state;
        let digest = &mut state.digest;
        match change {
            Change::PutResourceClass(id, row) => {
                digest.remove_old(
                    Table::ResourceClass,
                    id,
                    state.resource_classes.put(id.0, row.clone()),
                );
            }
            Change::DeleteResourceClass(id) => {
                digest.remove(
                    Table::ResourceClass,
                    id,
                    state.resource_classes.delete(id.0),
                );
            }
            Change::PutTrait(id, row) => {
                digest.remove_old(Table::Trait, id, state.traits.put(id.0, row.clone()));
            }
            Change::DeleteTrait(id) => digest.remove(Table::Trait, id, state.traits.delete(id.0)),
            Change::PutSession(origin, row) => {
                digest.remove_old(Table::Session, origin, state.sessions.put(*origin, *row));
            }
            Change::PutOutcome(origin, sequence, outcome) => {
                let old = state
                    .sessions
                    .put_outcome(*origin, *sequence, outcome.clone());
                digest.remove_old(Table::Outcome, (origin, sequence), old.as_deref());
            }
            Change::DeleteOutcome(origin, sequence) => {
                let old = state.sessions.delete_outcome(*origin, *sequence);
                digest.remove(Table::Outcome, (origin, sequence), &*old);
            }
            Change::PutCounters(counters) => {
                let old = state.counters.replace(*counters);
                digest.remove_old(Table::Counters, (), old);
            }
            Change::PutLevel(level) => {
                let old = state.level.replace(*level);
                assert!(old <= Some(*level), "the feature level never falls");
                digest.remove_old(Table::Level, (), old);
            }
            Change::PutJoin(node, row) => {
                let old = state.joins.insert(*node, row.clone());
                digest.remove_old(Table::Join, node, old);
            }
            Change::DeleteJoin(node) => {
                let old = state.joins.remove(node);
                digest.remove(Table::Join, node, old.expect("a row that goes is there"));
            }
            Change::PutPartition(id, row) => {
                let old = state.partitions.insert(*id, row.clone());
                digest.remove_old(Table::Partition, id, old);
            }
            other => unreachable!("{other:?} is about providers or consumers"),
        }
    }

    /// Remembers a tree as it was before this commit.
    fn remember(&mut self, number: TreeNumber) {
        let trees = &self.state.providers.trees;
        self.before
            .entry(number)
            .or_insert_with(|| trees.get(&number).cloned());
    }

    /// A node of its own for writing, in a tree of its own; the others stay shared.
    fn node_mut(&mut self, id: ProviderId) -> &mut Node {
        let place = self.place(id);
        self.remember(place.tree);
        let tree = self.state.providers.trees.get_mut(&place.tree);
        let tree = Arc::make_mut(tree.expect("a place names a tree that exists"));
        Arc::make_mut(&mut tree.nodes[place.node as usize])
    }

    fn place(&self, id: ProviderId) -> Place {
        let place = self.state.providers.place(id);
        place.expect("a row refers to providers that are there")
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
        let old = self.state.providers.trees[&place.tree].row(place.node);
        self.state.digest.remove(Table::Provider, id, &old);
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
        let row = self.state.providers.trees[&place.tree].row(place.node);
        self.state.digest.remove(Table::Provider, id, row);
        self.state.providers.remove(place);
    }

    /// Changes inventories of one provider, taken apart and put together once: in the sorted list each
    /// change would move all that stand behind it.
    fn change_inventories(&mut self, id: ProviderId, changes: &[Change]) {
        let stocks = std::mem::take(&mut self.node_mut(id).inventories);
        let mut stocks: BTreeMap<_, _> = stocks.into_iter().map(|s| (s.class, s)).collect();
        for change in changes {
            self.state.digest.count_in(Digest::of(change));
            match change {
                Change::PutInventory(_, class, row) => {
                    self.put_inventory(&mut stocks, id, *class, row);
                }
                Change::DeleteInventory(_, class) => {
                    self.delete_inventory(&mut stocks, id, *class);
                }
                other => unreachable!("{other:?} is about no inventory"),
            }
        }
        self.node_mut(id).inventories = stocks.into_values().collect();
    }

    fn put_inventory(
        &mut self,
        stocks: &mut Stocks,
        id: ProviderId,
        class: ResourceClassId,
        row: &InventoryRow,
    ) {
        let old = stocks.get(&class);
        let used = old.map_or(0, |old| old.used);
        match old {
            Some(old) => {
                let old = inventory_row(old);
                self.state.digest.remove(Table::Inventory, (id, class), old);
            }
            None => self.state.resource_classes.add_use(class.0),
        }
        let stock = Stock {
            class,
            inventory: row.inventory,
            used,
            updated_at: row.updated_at,
        };
        stocks.insert(class, stock);
    }

    fn delete_inventory(&mut self, stocks: &mut Stocks, id: ProviderId, class: ResourceClassId) {
        let old = stocks.remove(&class);
        let old = old.expect("an inventory that goes is there");
        assert_eq!(old.used, 0, "nothing is taken of an inventory that goes");
        let old = inventory_row(&old);
        self.state.digest.remove(Table::Inventory, (id, class), old);
        self.state.resource_classes.remove_use(class.0);
    }

    fn put_provider_traits(&mut self, id: ProviderId, traits: &BTreeSet<TraitId>) {
        let node = self.node_mut(id);
        let old = std::mem::replace(&mut node.traits, Arc::new(traits.clone()));
        let State {
            digest,
            traits: names,
            ..
        } = &mut *self.state;
        if !old.is_empty() {
            digest.remove(Table::ProviderTraits, id, &*old);
        }
        traits.difference(&old).for_each(|id| names.add_use(id.0));
        old.difference(traits).for_each(|id| names.remove_use(id.0));
    }

    fn put_provider_aggregates(&mut self, id: ProviderId, aggregates: &BTreeSet<AggregateUuid>) {
        let node = self.node_mut(id);
        let old = std::mem::replace(&mut node.aggregates, Arc::new(aggregates.clone()));
        if !old.is_empty() {
            self.state
                .digest
                .remove(Table::ProviderAggregates, id, &*old);
        }
    }

    fn put_consumer(&mut self, consumer: &ConsumerUuid, row: &ConsumerRow) {
        let old = self.state.consumers.put(consumer, row.clone());
        if let Some(old) = old {
            self.state.digest.remove(Table::Consumer, consumer, &*old);
            if !mutant!("held-stays-counted") {
                self.give_back(&old);
            }
        }
        self.take(row);
    }

    fn delete_consumer(&mut self, consumer: &ConsumerUuid) {
        let old = self.state.consumers.delete(consumer);
        self.state.digest.remove(Table::Consumer, consumer, &*old);
        let before = mutant!("offers-stay-behind").then(|| self.before.clone());
        self.give_back(&old);
        if let Some(before) = before {
            self.before = before;
        }
    }

    fn take(&mut self, row: &ConsumerRow) {
        self.change_used(row, |used, amount| {
            let sum = used.checked_add(amount);
            sum.expect("no amount is larger than max_unit, so 2^32 of them fit into the sum")
        });
    }

    fn give_back(&mut self, row: &ConsumerRow) {
        self.change_used(row, |used, amount| {
            let rest = used.checked_sub(amount);
            rest.expect("what a consumer holds was counted in")
        });
    }

    fn change_used(&mut self, row: &ConsumerRow, change: fn(u64, u64) -> u64) {
        for (provider, amounts) in row.allocations.by_provider() {
            let node = self.node_mut(provider);
            for amount in amounts {
                let stock = node.stock_mut(amount.class);
                let stock = stock.expect("only what there is an inventory of is held");
                stock.used = change(stock.used, amount.units);
            }
        }
    }
}

/// Of which provider a change puts or deletes an inventory, if it does.
fn stocked(change: &Change) -> Option<ProviderId> {
    match change {
        Change::PutInventory(id, ..) | Change::DeleteInventory(id, _) => Some(*id),
        _ => None,
    }
}

/// The row that a stock is kept as on disk.
pub(super) fn inventory_row(stock: &Stock) -> InventoryRow {
    InventoryRow {
        inventory: stock.inventory,
        updated_at: stock.updated_at,
    }
}
