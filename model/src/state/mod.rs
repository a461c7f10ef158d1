//! The whole placement model as one immutable value: cloning it costs nothing, so a reader keeps
//! the state it started with for as long as it likes.

mod amounts;
pub mod audit;
pub mod change;
mod commit;
mod consumers;
mod dense;
mod digest;
mod ids;
pub mod indexes;
mod loading;
pub(crate) mod names;
mod providers;
mod rows;
mod sessions;
pub mod tree;
pub mod tree_set;
pub(crate) mod usage_sums;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use imbl::OrdMap;

pub use digest::Digest;
pub use loading::Dangling;
pub(crate) use loading::Loading;
pub use tree::NodePlace;

use change::{
    Change, Counters, JoinRow, NameRow, PartitionRow, ProviderId, ResourceClassId, SessionRow,
    TraitId,
};
pub(crate) use commit::Commit;
use consumers::Consumers;
use indexes::Indexes;
use names::NameTable;
use providers::Providers;
pub(crate) use providers::TreeCursor;
pub(crate) use sessions::Seen;
use sessions::Sessions;
use tree::{Node, Tree, TreeNumber};

use crate::level::Level;
use crate::types::{Given, PartitionId, ProviderUuid, ResourceClassName, TraitName};

/// The state of the placement model in one partition, after some prefix of the log.
///
/// That of the default partition also has what the whole cluster has once: sessions, and the rows
/// of partitions. They have been among its rows since before there were other partitions, and so
/// they stay.
///
/// Made of persistent maps: a clone shares everything with its original until one of them is
/// written to. Two states are equal if their rows are.
#[derive(Clone, Default)]
pub struct State {
    pub(crate) providers: Providers,
    pub(crate) resource_classes: NameTable<ResourceClassName>,
    pub(crate) traits: NameTable<TraitName>,
    pub(crate) consumers: Consumers,
    pub(crate) sessions: Sessions,
    counters: Option<Counters>,
    /// `None` until it was raised.
    level: Option<Level>,
    /// A row for each number that was given to a node and is still of use. The highest that was
    /// ever given stays: the next one is above it.
    joins: OrdMap<u64, JoinRow>,
    /// Those that were ever made, but for the default one.
    pub(crate) partitions: OrdMap<PartitionId, PartitionRow>,
    indexes: Indexes,
    digest: Digest,
}

/// Writing.
impl State {
    /// Carries out changes that [`crate::apply()`] decided on, or that were read back from disk.
    /// The one place where tables, trees, indexes, running sums and the digest move.
    ///
    /// Rows refer only to rows that are there: parents come before children, providers before
    /// their inventories, inventories before the allocations of them. Rows in another order (as
    /// tables on disk give them), or of which it is not known, go through [`State::load`].
    ///
    /// # Panics
    /// If a change refers to what is not there: no command leads to that.
    pub fn commit(&mut self, changes: &[Change]) {
        let mut commit = Commit::new(self);
        commit.carry_out(changes);
        commit.finish();
    }
}

/// What the search and the queries look things up by.
impl State {
    /// The digest, kept up to date by [`State::commit`].
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The feature level of the cluster.
    pub fn level(&self) -> Level {
        self.level.unwrap_or_default()
    }

    /// All trees in the order of their roots' creation.
    pub fn trees(&self) -> impl Iterator<Item = (TreeNumber, &Arc<Tree>)> {
        self.providers
            .trees
            .iter()
            .map(|(number, tree)| (*number, tree))
    }

    /// One tree.
    pub fn tree(&self, number: TreeNumber) -> Option<&Arc<Tree>> {
        self.providers.trees.get(&number)
    }

    /// More than the number of any tree.
    pub(crate) fn tree_numbers_end(&self) -> u32 {
        let last = self.providers.trees.get_max();
        last.map_or(0, |(number, _)| number.0.saturating_add(1))
    }

    /// Where the provider with this UUID is.
    pub fn place(&self, uuid: &ProviderUuid) -> Option<NodePlace> {
        self.place_by_id(self.providers.id_of_uuid(uuid)?)
    }

    /// Where the provider with this dense id is.
    pub fn place_by_id(&self, id: ProviderId) -> Option<NodePlace> {
        self.providers.place(id)
    }

    /// The node at a place of this state.
    pub fn node(&self, place: NodePlace) -> &Arc<Node> {
        self.providers.node(place)
    }

    /// The node with this dense id.
    pub fn node_by_id(&self, id: ProviderId) -> Option<&Arc<Node>> {
        Some(self.node(self.place_by_id(id)?))
    }

    /// The dense id of a resource class.
    pub fn resource_class_id(&self, name: &ResourceClassName) -> Option<ResourceClassId> {
        self.resource_classes.id(name).map(ResourceClassId)
    }

    /// The name of a resource class that a row of this state refers to.
    ///
    /// # Panics
    /// If no row has this id.
    pub fn resource_class_name(&self, id: ResourceClassId) -> &ResourceClassName {
        let row = self.resource_classes.row(id.0);
        &row.expect("a row refers to classes that are there").name
    }

    /// The dense id of a trait.
    pub fn trait_id(&self, name: &TraitName) -> Option<TraitId> {
        self.traits.id(name).map(TraitId)
    }

    /// The name of a trait that a row of this state refers to.
    ///
    /// # Panics
    /// If no row has this id.
    pub fn trait_name(&self, id: TraitId) -> &TraitName {
        &self.trait_row(id).name
    }

    /// Which trees have what.
    pub fn indexes(&self) -> &Indexes {
        &self.indexes
    }

    /// How many providers, consumers, resource classes and traits there are.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            trees: self.providers.trees.len(),
            providers: self.providers.len(),
            consumers: self.consumers.len(),
            resource_classes: self.resource_classes.len(),
            traits: self.traits.len(),
        }
    }
}

/// How much a state holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Provider trees.
    pub trees: usize,
    /// Resource providers.
    pub providers: usize,
    /// Consumer records, those without allocations included.
    pub consumers: usize,
    /// Resource classes.
    pub resource_classes: usize,
    /// Traits.
    pub traits: usize,
}

/// What apply and the queries need besides.
impl State {
    pub(crate) fn place_given(&self, given: &Given<ProviderUuid>) -> Option<NodePlace> {
        self.place(given.valid()?)
    }

    pub(crate) fn class_given(&self, given: &Given<ResourceClassName>) -> Option<ResourceClassId> {
        self.resource_classes.given(given).map(ResourceClassId)
    }

    pub(crate) fn trait_given(&self, given: &Given<TraitName>) -> Option<TraitId> {
        self.traits.given(given).map(TraitId)
    }

    /// The ids of all these traits, or those that do not exist.
    pub(crate) fn traits_given(
        &self,
        names: &BTreeSet<Given<TraitName>>,
    ) -> Result<BTreeSet<TraitId>, Vec<Given<TraitName>>> {
        let is_unknown = |name: &&Given<TraitName>| self.trait_given(name).is_none();
        let unknown: Vec<_> = names.iter().filter(is_unknown).cloned().collect();
        if !unknown.is_empty() {
            return Err(unknown);
        }
        let known = names.iter().filter_map(|name| self.trait_given(name));
        Ok(known.collect())
    }

    /// A trait that a row of this state refers to.
    pub(crate) fn trait_row(&self, id: TraitId) -> &NameRow<TraitName> {
        let row = self.traits.row(id.0);
        row.expect("a row refers to traits that are there")
    }

    /// How far the writes of a node have come; `None` if it has never written.
    pub fn session(&self, origin: u64) -> Option<&SessionRow> {
        self.sessions.row(origin)
    }

    /// Whether a node was removed for good, so that nothing it sends is carried out any more.
    pub fn is_retired(&self, origin: u64) -> bool {
        self.session(origin)
            .is_some_and(|row| row.boot == SessionRow::RETIRED.boot)
    }

    /// The nodes that are to join or to take the place of others, by their numbers.
    pub fn joins(&self) -> impl Iterator<Item = (u64, &JoinRow)> {
        self.joins.iter().map(|(node, row)| (*node, row))
    }

    /// What is known of a number that was given to a node that is to join.
    pub fn join(&self, node: u64) -> Option<&JoinRow> {
        self.joins.get(&node)
    }

    /// The highest number of a node that this state knows: of those that wrote, were removed or are
    /// to join.
    pub fn last_node(&self) -> u64 {
        let last_join = self.joins.get_max().map_or(0, |(node, _)| *node);
        self.sessions.last().max(last_join)
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters.unwrap_or_default()
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for State {}

/// A state can hold a million rows: what it prints is its sizes and its digest.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "State({:?}, digest {:032x})",
            self.sizes(),
            self.digest.sum
        )
    }
}
