//! Loads a state from its rows, in any order. Each row is stored in its final place at once; data
//! derived from several rows (trees, maps, indexes) is built at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use super::State;
use super::change::{
    Amount, Change, ConsumerRow, ProviderId, ProviderRow, ResourceClassId, TraitId,
};
use super::consumers::Consumers;
use super::digest::Digest;
use super::providers::Providers;
use super::tree::{Node, Stock, Tree, TreeNumber};
use super::usage_sums::UsageSums;
use crate::types::{AggregateUuid, ConsumerUuid};

/// The error for rows that refer to missing rows, or that no cluster can have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{rows} rows refer to missing rows, are out of range, or duplicate the name or UUID of another row"
)]
pub struct DanglingReference {
    /// Number of such rows.
    pub rows: usize,
}

/// A state that is being loaded.
#[derive(Default)]
pub(crate) struct Loading {
    /// Contains the rows without references, and the digest of all rows.
    state: State,
    providers: BTreeMap<ProviderId, Draft>,
    traits: Sets<TraitId>,
    aggregates: Sets<AggregateUuid>,
    consumers: Vec<(ConsumerUuid, Arc<ConsumerRow>)>,
    /// Updated with each consumer, so that the row shares its texts with earlier rows.
    sums: UsageSums,
    /// Number of rows that apply cannot have written. They are omitted.
    out_of_range: usize,
}

/// Limit of units per amount, so that sums over all consumers fit into 64 bits.
const UNITS_MAX: u64 = u32::MAX as u64;

/// A provider with the rows loaded so far.
#[derive(Default)]
struct Draft {
    row: Option<ProviderRow>,
    /// The inventories, sorted by class.
    inventories: Vec<Stock>,
    traits: Arc<BTreeSet<TraitId>>,
    aggregates: Arc<BTreeSet<AggregateUuid>>,
}

/// Returns the known set that equals a new one, so that equal sets are stored once.
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
    /// Adds a row with its digest. If a key occurs several times, the last row wins.
    pub(crate) fn take(&mut self, row: Change, digest: Digest) {
        if self.is_out_of_range(&row) {
            self.out_of_range += 1;
            return;
        }
        let old = match row {
            Change::PutProvider(id, row) => {
                let old = self.draft(id).row.replace(row);
                old.map(|old| Change::PutProvider(id, old))
            }
            Change::PutInventory(id, class, row) => {
                let old = self.draft(id).put(Stock::new(class, &row, 0));
                old.map(|old| Change::PutInventory(id, class, old.row()))
            }
            Change::PutProviderTraits(id, traits) => {
                let traits = shared(&mut self.traits, traits);
                let old = mem::replace(&mut self.draft(id).traits, traits);
                Some(Change::PutProviderTraits(id, old.as_ref().clone()))
            }
            Change::PutProviderAggregates(id, aggregates) => {
                let aggregates = shared(&mut self.aggregates, aggregates);
                let old = mem::replace(&mut self.draft(id).aggregates, aggregates);
                Some(Change::PutProviderAggregates(id, old.as_ref().clone()))
            }
            Change::PutConsumer(consumer, mut row) => {
                self.sums.add(&mut row);
                self.consumers.push((consumer, Arc::new(row)));
                None
            }
            row => return self.state.commit(&[row]),
        };
        self.state.digest.count_in(digest);
        if let Some(old) = old {
            self.state.digest.count_out(Digest::from_change(&old));
        }
    }

    /// Whether apply cannot have written the row. The largest id is never used, since the counter
    /// must be above it.
    fn is_out_of_range(&self, row: &Change) -> bool {
        match row {
            Change::PutConsumer(_, row) => (row.allocations.iter()).any(|it| it.units > UNITS_MAX),
            Change::PutLevel(level) => self.state.level > Some(*level),
            Change::PutProvider(ProviderId(id), _)
            | Change::PutResourceClass(ResourceClassId(id), _)
            | Change::PutTrait(TraitId(id), _) => *id == u32::MAX,
            _ => false,
        }
    }

    fn draft(&mut self, id: ProviderId) -> &mut Draft {
        self.providers.entry(id).or_default()
    }

    /// Completes the state, unless rows are missing or damaged.
    pub(crate) fn finish(mut self) -> Result<State, DanglingReference> {
        self.keep_last_of_each_consumer();
        let (order, rootless) = self.preorder();
        let dangling = rootless + self.check_belongings();
        let (holders, without) = self.count_held();
        let none_of = |rows| match rows {
            0 => Ok(()),
            rows => Err(DanglingReference { rows }),
        };
        none_of(dangling + without + self.out_of_range)?;
        let trees = self.trees(order);
        let mut state = self.state;
        for (number, tree) in &trees {
            state.indexes.replace_tree(*number, None, Some(tree));
        }
        state.providers = Providers::from_trees(trees);
        let alike = state.resource_classes.alike() + state.traits.alike();
        none_of(alike + state.providers.alike())?;
        state.consumers = Consumers::from_rows(self.consumers, holders, self.sums);
        Ok(state)
    }

    /// Sorts the consumers and keeps the last row of each. Tables on disk never contain duplicates.
    fn keep_last_of_each_consumer(&mut self) {
        self.consumers
            .sort_by(|(one, _), (other, _)| one.cmp(other));
        let digest = &mut self.state.digest;
        self.consumers.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                mem::swap(later, earlier);
                let (consumer, old) = later;
                digest.count_out(Digest::from_consumer(consumer, old));
                self.sums.remove(old);
            }
            same
        });
    }

    /// Returns the providers of all trees in preorder, each with the index of its parent in the
    /// tree, and the number of providers without a root. A parent can be younger than its child,
    /// since providers can be moved.
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

    /// Counts the uses of classes and traits. Returns the number of rows that refer to a missing
    /// provider, class or trait.
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

    /// Computes the usage of each inventory and the holders of each provider. Returns the holders,
    /// and the number of consumers with allocations of a missing inventory.
    fn count_held(&mut self) -> (Vec<(ProviderId, ConsumerUuid)>, usize) {
        let (mut holders, mut dangling) = (Vec::new(), 0);
        for (consumer, row) in &self.consumers {
            let mut is_there = true;
            for (provider, amounts) in row.allocations.by_provider() {
                let draft = self.providers.get_mut(&provider);
                is_there &= draft.is_some_and(|draft| draft.count(amounts));
                holders.push((provider, consumer.clone()));
            }
            dangling += usize::from(!is_there);
        }
        (holders, dangling)
    }

    fn trees(&mut self, order: Vec<(ProviderId, Option<u32>)>) -> Vec<(TreeNumber, Arc<Tree>)> {
        let mut trees = Vec::new();
        let is_root = |(_, parent): &(ProviderId, Option<u32>)| parent.is_none();
        for tree in order.chunk_by(|_, next| !is_root(next)) {
            let nodes = tree.iter().map(|(id, parent)| {
                let draft = self
                    .providers
                    .remove(id)
                    .expect("each provider has one place");
                draft.node(*id, *parent)
            });
            let tree = Tree::from_preorder(nodes.collect());
            trees.push((TreeNumber(tree.root().id.0), Arc::new(tree)));
        }
        trees
    }
}

impl Draft {
    /// Puts an inventory and returns the replaced one.
    fn put(&mut self, stock: Stock) -> Option<Stock> {
        match Stock::position(&self.inventories, stock.class) {
            Ok(at) => Some(mem::replace(&mut self.inventories[at], stock)),
            Err(at) => {
                self.inventories.insert(at, stock);
                None
            }
        }
    }

    /// Adds a consumer's amounts to the usage. Returns whether all inventories exist.
    fn count(&mut self, amounts: &[Amount]) -> bool {
        amounts.iter().all(|amount| {
            let position = Stock::position(&self.inventories, amount.class);
            if let Ok(at) = position {
                let sum = self.inventories[at]
                    .used
                    .checked_add(amount.units)
                    .expect("the sum of 2^32 amounts below 2^32 fits into 64 bits");
                self.inventories[at].used = sum;
            }
            position.is_ok()
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
