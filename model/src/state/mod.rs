//! The whole placement model as one immutable value. Cloning is cheap, so a reader can hold a state
//! as long as it needs.

mod amounts;
pub mod audit;
pub mod change;
mod commit;
mod consumers;
mod dense;
mod digest;
mod holds;
mod ids;
pub mod indexes;
pub(crate) mod limits;
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
pub use loading::DanglingReference;
pub(crate) use loading::Loading;
pub use tree::NodePlace;

use change::{
    Change, Counters, JoinRow, NameRow, PartitionRow, ProviderId, ResourceClassId, SessionRow,
    TraitId,
};
pub(crate) use commit::Commit;
use consumers::Consumers;
use indexes::Indexes;
use limits::KeptLimits;
use names::NameTable;
use providers::Providers;
pub(crate) use providers::TreeCursor;
use sessions::Sessions;
pub(crate) use sessions::WriteStatus;
use tree::{Node, Tree, TreeNumber};

use crate::level::Level;
use crate::types::{Given, PartitionId, ProviderUuid, ResourceClassName, TraitName};

/// The state of the placement model in one partition, after some prefix of the log.
///
/// The state of the default partition also contains the rows of the whole cluster, such as sessions
/// and partitions. They were stored there before partitions were introduced.
///
/// Consists of persistent maps: a clone shares all data with its original until one of them is
/// modified. Two states are equal if their rows are equal.
#[derive(Clone, Default)]
pub struct State {
    pub(crate) providers: Providers,
    pub(crate) resource_classes: NameTable<ResourceClassName>,
    pub(crate) traits: NameTable<TraitName>,
    pub(crate) consumers: Consumers,
    pub(crate) sessions: Sessions,
    counters: Option<Counters>,
    /// `None` until the level is first raised.
    level: Option<Level>,
    /// Rows of the node numbers that were reserved and are still needed. The row with the highest
    /// number is kept, because the next number must be above it.
    joins: OrdMap<u64, JoinRow>,
    /// All partitions ever created, deleted ones included. The default one has a row only once it
    /// has routes.
    pub(crate) partitions: OrdMap<PartitionId, PartitionRow>,
    /// `None` until limits are first put.
    limits: Option<Arc<KeptLimits>>,
    indexes: Indexes,
    digest: Digest,
}

/// Modification of a state.
impl State {
    /// Applies changes that [`crate::apply()`] returned, or that were read from disk. No other code
    /// modifies tables, trees, indexes, running sums and the digest.
    ///
    /// A row may only refer to existing rows: parents come before children, providers before their
    /// inventories, inventories before their allocations. Load rows in any other or unknown order,
    /// such as rows of tables on disk, with [`State::load`].
    ///
    /// # Panics
    /// Panics if a change refers to a missing row. No command leads to such a change.
    pub fn commit(&mut self, changes: &[Change]) {
        let mut commit = Commit::new(self);
        commit.carry_out(changes);
        commit.finish();
    }
}

/// Lookups for search and queries.
impl State {
    /// The digest of all rows, which [`State::commit`] keeps up to date.
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

    /// The tree with this number.
    pub fn tree(&self, number: TreeNumber) -> Option<&Arc<Tree>> {
        self.providers.trees.get(&number)
    }

    /// A number larger than any tree number.
    pub(crate) fn tree_numbers_end(&self) -> u32 {
        let last = self.providers.trees.get_max();
        last.map_or(0, |(number, _)| number.0.saturating_add(1))
    }

    /// The place of the provider with this UUID.
    pub fn place(&self, uuid: &ProviderUuid) -> Option<NodePlace> {
        self.place_by_id(self.providers.id_of_uuid(uuid)?)
    }

    /// The place of the provider with this dense id.
    pub fn place_by_id(&self, id: ProviderId) -> Option<NodePlace> {
        self.providers.place(id)
    }

    /// The node at `place`, which must belong to this state.
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
    /// Panics if no class has this id.
    pub fn resource_class_name(&self, id: ResourceClassId) -> &ResourceClassName {
        let row = self.resource_classes.row(id.0);
        &row.expect("a row refers to existing classes").name
    }

    /// The dense id of a trait.
    pub fn trait_id(&self, name: &TraitName) -> Option<TraitId> {
        self.traits.id(name).map(TraitId)
    }

    /// The name of a trait that a row of this state refers to.
    ///
    /// # Panics
    /// Panics if no trait has this id.
    pub fn trait_name(&self, id: TraitId) -> &TraitName {
        &self.trait_row(id).name
    }

    /// The bitmap indexes over trees.
    pub fn indexes(&self) -> &Indexes {
        &self.indexes
    }

    /// The number of trees, providers, consumers, resource classes and traits.
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

/// The number of objects in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Number of provider trees.
    pub trees: usize,
    /// Number of resource providers.
    pub providers: usize,
    /// Number of consumers, including those without allocations.
    pub consumers: usize,
    /// Number of resource classes.
    pub resource_classes: usize,
    /// Number of traits, standard and custom.
    pub traits: usize,
}

/// Lookups for apply and queries.
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

    /// The ids of all these traits, or the names that do not exist.
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

    /// The row of a trait that a row of this state refers to.
    pub(crate) fn trait_row(&self, id: TraitId) -> &NameRow<TraitName> {
        let row = self.traits.row(id.0);
        row.expect("a row refers to existing traits")
    }

    /// The write progress of a node; `None` if the node has never written.
    pub fn session(&self, origin: u64) -> Option<&SessionRow> {
        self.sessions.row(origin)
    }

    /// Whether a node was permanently removed, so that its commands are no longer applied.
    pub fn is_retired(&self, origin: u64) -> bool {
        self.session(origin)
            .is_some_and(|row| row.boot == SessionRow::RETIRED.boot)
    }

    /// The joining and replacing nodes, by node number.
    pub fn joins(&self) -> impl Iterator<Item = (u64, &JoinRow)> {
        self.joins.iter().map(|(node, row)| (*node, row))
    }

    /// The row of a joining or replacing node.
    pub fn join(&self, node: u64) -> Option<&JoinRow> {
        self.joins.get(&node)
    }

    pub(crate) fn kept_limits(&self) -> Option<&KeptLimits> {
        self.limits.as_deref()
    }

    /// The highest known node number: the maximum over the nodes that have written, were removed,
    /// are joining or replace another node.
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

/// Prints only sizes and digest, since a state can contain millions of rows.
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
