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
use super::digest::{Digest, Table};
use super::held::Held;
use super::providers::Providers;
use super::tree::{Node, Stock, Tree, TreeNumber};
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
pub(crate) struct Loading {
    /// Has the rows that refer to nothing, and the digest of all.
    state: State,
    providers: BTreeMap<ProviderId, Draft>,
    traits: Sets<TraitId>,
    aggregates: Sets<AggregateUuid>,
    consumers: Vec<(ConsumerUuid, Arc<ConsumerRow>)>,
    held: Held,
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
    /// Takes a row in, with its digest. Of several with one key the last counts.
    pub(crate) fn take(&mut self, row: Change, digest: Digest) {
        match row {
            Change::PutProvider(id, row) => self.take_provider(id, row),
            Change::PutInventory(id, class, row) => self.take_inventory(id, class, &row),
            Change::PutProviderTraits(id, traits) => self.take_traits(id, traits),
            Change::PutProviderAggregates(id, uuids) => self.take_aggregates(id, uuids),
            Change::PutConsumer(consumer, row) => self.take_consumer(consumer, row),
            row => return self.state.commit(&[row]),
        }
        self.state.digest.count_in(digest);
    }

    fn take_provider(&mut self, id: ProviderId, row: ProviderRow) {
        let draft = self.providers.entry(id).or_default();
        if let Some(old) = draft.row.replace(row) {
            self.state.digest.remove(Table::Provider, id, old);
        }
    }

    fn take_inventory(&mut self, id: ProviderId, class: ResourceClassId, row: &InventoryRow) {
        let stock = Stock {
            class,
            inventory: row.inventory,
            used: 0,
            updated_at: row.updated_at,
        };
        let draft = self.providers.entry(id).or_default();
        match draft.place(class) {
            Ok(at) => {
                let old = mem::replace(&mut draft.inventories[at], stock);
                let old = inventory_row(&old);
                self.state.digest.remove(Table::Inventory, (id, class), old);
            }
            Err(at) => draft.inventories.insert(at, stock),
        }
    }

    fn take_traits(&mut self, id: ProviderId, traits: BTreeSet<TraitId>) {
        let draft = self.providers.entry(id).or_default();
        let old = mem::replace(&mut draft.traits, shared(&mut self.traits, traits));
        if !old.is_empty() {
            self.state.digest.remove(Table::ProviderTraits, id, &*old);
        }
    }

    fn take_aggregates(&mut self, id: ProviderId, aggregates: BTreeSet<AggregateUuid>) {
        let draft = self.providers.entry(id).or_default();
        let old = mem::replace(
            &mut draft.aggregates,
            shared(&mut self.aggregates, aggregates),
        );
        if !old.is_empty() {
            let digest = &mut self.state.digest;
            digest.remove(Table::ProviderAggregates, id, &*old);
        }
    }

    fn take_consumer(&mut self, consumer: ConsumerUuid, mut row: ConsumerRow) {
        self.held.count(&consumer, &mut row);
        self.consumers.push((consumer, Arc::new(row)));
    }

    /// The state, if no row is missing.
    pub(crate) fn finish(mut self) -> Result<State, Dangling> {
        self.keep_last_of_each_consumer();
        let (order, rootless) = self.preorder();
        let rows = rootless + self.check_belongings() + self.put_used();
        if rows > 0 {
            return Err(Dangling { rows });
        }
        let trees = self.trees(order);
        let mut state = self.state;
        for (number, tree) in &trees {
            state.indexes.replace_tree(*number, None, Some(tree));
        }
        state.providers = Providers::of(trees);
        state.consumers = Consumers::of(self.consumers, self.held);
        Ok(state)
    }

    /// Sorts the consumers. A store has one row of each; if there were more, all are recounted.
    fn keep_last_of_each_consumer(&mut self) {
        self.consumers
            .sort_by(|(one, _), (other, _)| one.cmp(other));
        let all = self.consumers.len();
        let digest = &mut self.state.digest;
        self.consumers.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                mem::swap(later, earlier);
                let (consumer, old) = later;
                digest.remove(Table::Consumer, &*consumer, &**old);
            }
            same
        });
        if self.consumers.len() < all {
            self.held = Held::default();
            for (consumer, row) in &mut self.consumers {
                self.held.count(consumer, Arc::make_mut(row));
            }
        }
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

    /// Notes what is taken of each inventory. Returns how many consumers hold something that is not
    /// there.
    fn put_used(&mut self) -> usize {
        let mut all_there = true;
        for (provider, used) in mem::take(&mut self.held.used) {
            let draft = self.providers.get_mut(&provider);
            all_there &= draft.is_some_and(|draft| draft.put_used(&used));
        }
        if all_there {
            return 0;
        }
        let is_there = |amount: &Amount| {
            let draft = self.providers.get(&amount.provider);
            draft.is_some_and(|draft| draft.place(amount.class).is_ok())
        };
        let consumers = self.consumers.iter();
        let astray = consumers.filter(|(_, row)| !row.allocations.iter().all(is_there));
        astray.count()
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
    fn place(&self, class: ResourceClassId) -> Result<usize, usize> {
        self.inventories
            .binary_search_by_key(&class, |stock| stock.class)
    }

    /// Whether there is an inventory of all that is used.
    fn put_used(&mut self, used: &[(ResourceClassId, u64)]) -> bool {
        used.iter().all(|(class, units)| {
            let place = self.place(*class);
            if let Ok(at) = place {
                self.inventories[at].used = *units;
            }
            place.is_ok()
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
