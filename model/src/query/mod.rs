//! Queries over a [`crate::State`], one file per noun. No query blocks a writer.

pub mod aggregates;
pub mod allocations;
pub mod assignments;
pub mod candidates;
pub mod capacity;
pub mod consumers;
pub mod explain;
pub mod holds;
pub mod inventories;
pub mod limits;
pub mod pieces;
pub mod preemption;
mod ranked;
pub mod refuge;
pub mod resource_classes;
pub mod resource_providers;
pub mod traits;
mod tree_filter;
pub mod trees;
pub mod usages;
pub mod what_if;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::mutant;
use crate::state::State;
use crate::state::change::{Amount, Change, Changes, ConsumerRow, ProviderId, RowKey, TraitId};
use crate::state::tree::{Node, NodePlace, TreeNumber};
use crate::state::tree_set::TreeSet;
use crate::types::{
    ConsumerUuid, Generation, Given, ProviderName, ProviderUuid, ResourceClassName, TraitName,
};

/// The trait that marks a sharing provider.
const SHARING_TRAIT: &str = "MISC_SHARES_VIA_AGGREGATE";

/// Maximum number of consumers in trees that are emptied, or in which room is made.
pub const CONSUMERS_MAX: usize = 10_000;

/// A request refers to an unknown resource class or trait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownName {
    /// The resource class does not exist.
    #[error("no such resource class {0}")]
    ResourceClass(Given<ResourceClassName>),
    /// These traits do not exist.
    #[error("no such traits {0:?}")]
    Traits(Vec<Given<TraitName>>),
}

/// A provider as operators refer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedProvider {
    /// The UUID of the provider.
    pub uuid: ProviderUuid,
    /// The name, unique among all providers.
    pub name: ProviderName,
}

impl NamedProvider {
    pub(crate) fn from_node(node: &Node) -> Self {
        Self {
            uuid: node.uuid,
            name: node.name.clone(),
        }
    }
}

impl State {
    /// The id of the trait of sharing providers, or `None` if no such trait exists.
    pub(crate) fn sharing_trait(&self) -> Option<TraitId> {
        self.trait_id(&SHARING_TRAIT.parse().ok()?)
    }

    /// The trees in which a consumer has allocations, except for those of sharing providers.
    pub(crate) fn trees_of_consumer(&self, consumer: &ConsumerUuid) -> BTreeSet<TreeNumber> {
        let row = self.consumers.row(consumer);
        let held = row
            .into_iter()
            .flat_map(|row| row.allocations.by_provider());
        self.trees_of_providers(held.map(|(provider, _)| provider))
    }

    /// This state without these consumers, which exist.
    fn without<'a>(&self, consumers: impl Iterator<Item = &'a ConsumerUuid>) -> Cow<'_, Self> {
        let released: Changes = consumers
            .map(|consumer| Change::Delete(RowKey::Consumer(consumer.clone())))
            .collect();
        if released.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut state = self.clone();
        state.commit(&released);
        Cow::Owned(state)
    }

    /// The consumers with allocations in these trees; `None` if there are more than
    /// [`CONSUMERS_MAX`].
    fn consumers_in(&self, trees: &TreeSet) -> Option<Vec<(&ConsumerUuid, &ConsumerRow)>> {
        let trees = trees
            .iter()
            .filter_map(|number| self.tree(TreeNumber(number)));
        let mut holders = BTreeSet::new();
        for node in trees.flat_map(|tree| &tree.nodes) {
            for consumer in self.consumers.holders(node.id) {
                holders.insert(consumer);
                if holders.len() > CONSUMERS_MAX {
                    return None;
                }
            }
        }
        let row = |consumer| {
            let row = self.consumers.row(consumer);
            (consumer, &**row.expect("a holder is a consumer"))
        };
        Some(holders.into_iter().map(row).collect())
    }

    /// The allocations of a consumer in these trees, by provider.
    fn held_in<'a>(
        &self,
        row: &'a ConsumerRow,
        trees: &TreeSet,
    ) -> impl Iterator<Item = (NodePlace, &'a [Amount])> {
        let held = row.allocations.by_provider();
        held.filter_map(|(provider, amounts)| {
            let place = self.place_by_id(provider)?;
            trees.contains(place.tree.0).then_some((place, amounts))
        })
    }

    /// The largest share of a provider's capacity that a consumer holds in these trees.
    fn largest_share(&self, row: &ConsumerRow, trees: &TreeSet) -> f64 {
        let shares = self.held_in(row, trees).flat_map(|(place, amounts)| {
            let node = self.node(place);
            amounts.iter().filter_map(|amount| {
                let stock = node.stock(amount.class)?;
                Some(amount.units as f64 / stock.inventory.capacity_exact())
            })
        });
        shares.fold(0.0, f64::max)
    }

    /// The trees of providers, except for sharing providers.
    pub(crate) fn trees_of_providers(
        &self,
        providers: impl Iterator<Item = ProviderId>,
    ) -> BTreeSet<TreeNumber> {
        let sharing = self.sharing_trait();
        let tree = |provider: ProviderId| {
            let place = self.place_by_id(provider)?;
            let shares = sharing.is_some_and(|id| self.node(place).traits.contains(&id));
            let tree = if mutant!("apart-by-provider") {
                TreeNumber(provider.0)
            } else {
                place.tree
            };
            (!shares).then_some(tree)
        };
        providers.filter_map(tree).collect()
    }

    /// The generation of a provider and the result of `read`, or `None` if the provider does not
    /// exist.
    fn read_provider<T>(
        &self,
        provider: &ProviderUuid,
        read: impl FnOnce(&Node) -> T,
    ) -> Option<(Generation, T)> {
        let node = self.node(self.place(provider)?);
        Some((node.generation, read(node)))
    }
}
