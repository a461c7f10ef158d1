//! A state from its rows, in whatever order they come. Each row goes at once to the place where it
//! stays; what follows from all of them together (trees, maps, indexes) is built once, at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use super::State;
use super::change::{
    Amount, Change, ConsumerRow, InventoryRow, ProviderId, ProviderRow, ResourceClassId, TraitId,
};
use super::commit::inventory_row;
use super::consumers::Consumers;
use super::digest::Table;
use super::providers::Providers;
use super::tree::{Node, Stock, Tree, TreeNumber};
use super::usage_sums::UsageSums;
use crate::types::{AggregateUuid, ConsumerUuid};

/// Rows that refer to others that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{rows} rows refer to others that are not there")]
pub struct Dangling {
    /// How many.
    pub rows: usize,
}

/// Rows on their way into a state.
#[derive(Default)]
pub(super) struct Loading {
    /// Has the rows that refer to nothing, and the digest of all.
    state: State,
    providers: BTreeMap<ProviderId, Draft>,
    traits: Sets<TraitId>,
    aggregates: Sets<AggregateUuid>,
    consumers: Vec<(ConsumerUuid, Arc<ConsumerRow>)>,
    sums: UsageSums,
}

/// A provider, as far as its rows have come.
#[derive(Default)]
struct Draft {
    row: Option<ProviderRow>,
    /// Sorted by class.
    inventories: Vec<Stock>,
    traits: Arc<BTreeSet<TraitId>>,
    aggregates: Arc<BTreeSet<AggregateUuid>>,
}

/// The one of these sets that is equal to a new one, so that equal ones are held once.
fn shared<T: Ord>(known: &mut Sets<T>, new: BTreeSet<T>) -> Arc<BTreeSet<T>> {
    if let Some(set) = known.get(&new) {
        return Arc::clone(set);
    }
    let new = Arc::new(new);
    known.insert(Arc::clone(&new));
    new
}

type Sets<T> = BTreeSet<Arc<BTreeSet<T>>>;

impl Loading {
    /// Takes a row in. Of several with one key the last counts.
    pub(super) fn take(&mut self, row: Change) {
        match row {
            Change::PutProvider(id, row) => self.take_provider(id, row),
            Change::PutInventory(id, class, row) => self.take_inventory(id, class, &row),
            Change::PutProviderTraits(id, traits) => self.take_traits(id, traits),
            Change::PutProviderAggregates(id, uuids) => self.take_aggregates(id, uuids),
            Change::PutConsumer(consumer, row) => self.take_consumer(consumer, row),
            row => self.state.commit(&[row]),
        }
    }

    fn take_provider(&mut self, id: ProviderId, row: ProviderRow) {
        let digest = &mut self.state.digest;
        digest.add(Table::Provider, id, &row);
        let draft = self.providers.entry(id).or_default();
        if let Some(old) = draft.row.replace(row) {
            digest.remove(Table::Provider, id, old);
        }
    }

    fn take_inventory(&mut self, id: ProviderId, class: ResourceClassId, row: &InventoryRow) {
        let digest = &mut self.state.digest;
        digest.add(Table::Inventory, (id, class), row);
        let stock = Stock {
            class,
            inventory: row.inventory,
            used: 0,
            updated_at: row.updated_at,
        };
        let stocks = &mut self.providers.entry(id).or_default().inventories;
        match stocks.binary_search_by_key(&class, |stock| stock.class) {
            Ok(at) => {
                let old = mem::replace(&mut stocks[at], stock);
                digest.remove(Table::Inventory, (id, class), inventory_row(&old));
            }
            Err(at) => stocks.insert(at, stock),
        }
    }

    fn take_traits(&mut self, id: ProviderId, traits: BTreeSet<TraitId>) {
        let digest = &mut self.state.digest;
        if !traits.is_empty() {
            digest.add(Table::ProviderTraits, id, &traits);
        }
        let draft = self.providers.entry(id).or_default();
        let old = mem::replace(&mut draft.traits, shared(&mut self.traits, traits));
        if !old.is_empty() {
            digest.remove(Table::ProviderTraits, id, &*old);
        }
    }

    fn take_aggregates(&mut self, id: ProviderId, aggregates: BTreeSet<AggregateUuid>) {
        let digest = &mut self.state.digest;
        if !aggregates.is_empty() {
            digest.add(Table::ProviderAggregates, id, &aggregates);
        }
        let draft = self.providers.entry(id).or_default();
        let old = mem::replace(
            &mut draft.aggregates,
            shared(&mut self.aggregates, aggregates),
        );
        if !old.is_empty() {
            digest.remove(Table::ProviderAggregates, id, &*old);
        }
    }

    fn take_consumer(&mut self, consumer: ConsumerUuid, mut row: ConsumerRow) {
        self.state.digest.add(Table::Consumer, &consumer, &row);
        self.sums.share_texts(&mut row);
        self.sums.add(&row);
        self.consumers.push((consumer, Arc::new(row)));
    }

    /// The state, if no row is missing.
    pub(super) fn finish(mut self) -> Result<State, Dangling> {
        self.keep_last_of_each_consumer();
        let (order, rootless) = self.preorder();
        let rows = rootless + self.check_belongings() + self.count_used();
        if rows > 0 {
            return Err(Dangling { rows });
        }
        let trees = self.trees(order);
        let mut state = self.state;
        for (number, tree) in &trees {
            state.indexes.replace_tree(*number, None, Some(tree));
        }
        state.providers = Providers::of(trees);
        state.consumers = Consumers::of(self.consumers, self.sums);
        Ok(state)
    }

    /// Sorts the consumers. A store has one row of each, but a row that is replaced was counted in.
    fn keep_last_of_each_consumer(&mut self) {
        self.consumers
            .sort_by(|(one, _), (other, _)| one.cmp(other));
        let (digest, sums) = (&mut self.state.digest, &mut self.sums);
        self.consumers.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                mem::swap(later, earlier);
                let (consumer, old) = later;
                digest.remove(Table::Consumer, &*consumer, &**old);
                sums.remove(old);
            }
            same
        });
    }

    /// The providers of all trees, as trees are laid out, each with the place of its parent in its tree; and
    /// how many have no root. A provider may have a parent that is younger than itself, since it can be moved.
    fn preorder(&mut self) -> (Vec<(ProviderId, Option<u32>)>, usize) {
        let mut roots = Vec::new();
        let mut children: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (id, draft) in &self.providers {
            match draft.row.as_ref().map(|row| row.parent) {
                Some(Some(parent)) => children.entry(parent).or_default().push(*id),
                Some(None) => roots.push(*id),
                None => {}
            }
        }
        let mut order = Vec::with_capacity(self.providers.len());
        let mut waiting = Vec::new();
        for root in roots {
            let start = order.len();
            waiting.push((root, None));
            while let Some((id, parent)) = waiting.pop() {
                let index = (order.len() - start) as u32;
                order.push((id, parent));
                let below = children.remove(&id).unwrap_or_default();
                waiting.extend(below.into_iter().rev().map(|child| (child, Some(index))));
            }
        }
        let mut rootless = 0;
        for id in children.into_values().flatten() {
            rootless += 1;
            self.providers.entry(id).or_default().row = None;
        }
        (order, rootless)
    }

    /// Counts classes and traits in use. Returns how many rows are of a provider, a class or a
    /// trait that is not there.
    fn check_belongings(&mut self) -> usize {
        let mut dangling = 0;
        let (classes, traits) = (&mut self.state.resource_classes, &mut self.state.traits);
        for draft in self.providers.values_mut() {
            let is_there = draft.row.is_some();
            let stocks = draft.inventories.len();
            draft
                .inventories
                .retain(|stock| is_there && classes.row(stock.class.0).is_some());
            draft.inventories.shrink_to_fit();
            dangling += stocks - draft.inventories.len();
            for stock in &draft.inventories {
                classes.add_use(stock.class.0);
            }
            let known = draft.traits.iter().all(|id| traits.row(id.0).is_some());
            if is_there && known {
                draft.traits.iter().for_each(|id| traits.add_use(id.0));
            } else {
                dangling += usize::from(!draft.traits.is_empty());
            }
            dangling += usize::from(!is_there && !draft.aggregates.is_empty());
        }
        dangling
    }

    /// Adds up what is taken of each inventory. Returns how many consumers hold something that is
    /// not there.
    fn count_used(&mut self) -> usize {
        let mut dangling = 0;
        for (_, row) in &self.consumers {
            let mut held = row.allocations.by_provider();
            let fits = held.all(|(provider, amounts)| {
                let draft = self.providers.get_mut(&provider);
                draft.is_some_and(|draft| draft.take(amounts))
            });
            dangling += usize::from(!fits);
        }
        dangling
    }

    fn trees(&mut self, order: Vec<(ProviderId, Option<u32>)>) -> Vec<(TreeNumber, Arc<Tree>)> {
        let mut trees = Vec::new();
        let is_root = |(_, parent): &(ProviderId, Option<u32>)| parent.is_none();
        for tree in order.chunk_by(|_, next| !is_root(next)) {
            let nodes = tree.iter().map(|(id, parent)| {
                let draft = self.providers.remove(id);
                draft
                    .expect("each provider has one place")
                    .node(*id, *parent)
            });
            let tree = Tree::of_preorder(nodes.collect());
            trees.push((TreeNumber(tree.root().id.0), Arc::new(tree)));
        }
        trees
    }
}

impl Draft {
    /// Adds to what is taken. `false` if there is no such inventory, or the sum has no end.
    fn take(&mut self, amounts: &[Amount]) -> bool {
        amounts.iter().all(|amount| {
            let found = self
                .inventories
                .binary_search_by_key(&amount.class, |stock| stock.class);
            let sum = found.ok().and_then(|at| {
                let used = &mut self.inventories[at].used;
                *used = used.checked_add(amount.units)?;
                Some(())
            });
            sum.is_some()
        })
    }

    fn node(self, id: ProviderId, parent: Option<u32>) -> Node {
        let row = self.row.expect("only providers with a row have a place");
        Node {
            parent,
            inventories: self.inventories,
            traits: self.traits,
            aggregates: self.aggregates,
            ..Node::new(id, &row)
        }
    }
}
