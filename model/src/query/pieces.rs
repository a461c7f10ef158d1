//! Splits a state into commands that copy its rows into another partition.

use std::collections::BTreeMap;
use std::iter::Peekable;

use serde::Serialize;

use crate::command::{FillPartition, Filled, FilledConsumer, FilledProvider};
use crate::state::State;
use crate::state::change::{ConsumerRow, NameRow};
use crate::state::tree::{NodePlace, Tree, TreeNumber};
use crate::types::{ConsumerUuid, ProviderUuid, ResourceClassName, Timestamp, TraitName};

/// Maximum number of steps per command. A step moves one provider in its tree. The limit bounds the
/// time for which other writes wait.
const STEPS_MAX: usize = 100_000;

/// A row that cannot be copied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UncopyableRow {
    /// The row's name, its size in bytes, and the limit.
    #[error("{0} takes {1} bytes in the log; the limit is {2}")]
    TooLong(String, usize, usize),
    /// The row has a time that the REST API cannot represent.
    #[error("{0} has a time outside the years 1970 to 9999")]
    Time(String),
}

/// A row with its dependent rows.
#[derive(Serialize)]
enum RowGroup {
    Class(NameRow<ResourceClassName>),
    Trait(NameRow<TraitName>),
    Provider(FilledProvider),
    /// A child that was created before its parent, followed by the parent.
    Parent(ProviderUuid, ProviderUuid),
    Consumer(FilledConsumer),
}

/// An upper bound of the group's bytes in a command, an upper bound of its steps, and the group.
type WeighedGroup = (usize, usize, RowGroup);

impl State {
    /// Returns all rows as commands, to be applied in this order. A command exceeds `bytes` in the
    /// log, or 100,000 steps, only if it contains a single row. A row that cannot be copied, for
    /// example because it exceeds `bytes_max`, is replaced by an error.
    pub fn pieces(
        &self,
        bytes: usize,
        bytes_max: usize,
    ) -> impl Iterator<Item = Result<FillPartition, UncopyableRow>> {
        let classes = self
            .resource_classes
            .rows()
            .map(|(_, row)| (0, RowGroup::Class(row.clone())));
        let traits = self
            .traits
            .rows()
            .map(|(_, row)| (0, RowGroup::Trait(row.clone())));
        let mut growth = Growth::default();
        let providers = self.providers.places().map(move |(_, place)| {
            let tree = self.tree(place.tree);
            let tree = tree.expect("a place refers to an existing tree");
            let steps = growth.steps(tree, place);
            (steps, self.provider_part(tree, place))
        });
        // Parents that were created after their children are set once all providers exist. Setting
        // one such parent may move all nodes of the tree, so it counts as that many steps.
        let older_children = self.trees().flat_map(|(_, tree)| {
            (0..).zip(&tree.nodes).filter_map(move |(index, node)| {
                let parent = tree.parent(index).filter(|parent| parent.id > node.id)?;
                Some((tree.nodes.len(), RowGroup::Parent(node.uuid, parent.uuid)))
            })
        });
        let consumers = self
            .consumers
            .rows()
            .map(|(uuid, row)| (0, self.consumer_part(uuid, row)));
        let parts = classes
            .chain(traits)
            .chain(providers)
            .chain(older_children)
            .chain(consumers);
        Pieces {
            parts: (parts.map(move |(steps, part)| part.weighed(steps, bytes_max))).peekable(),
            after: Filled::default(),
            bytes,
        }
    }

    fn provider_part(&self, tree: &Tree, place: NodePlace) -> RowGroup {
        let node = self.node(place);
        let inventories = node
            .inventories
            .iter()
            .map(|stock| (self.resource_class_name(stock.class).clone(), stock.row()));
        RowGroup::Provider(FilledProvider {
            uuid: node.uuid,
            name: node.name.clone(),
            generation: node.generation,
            parent: older_parent(tree, place.node).map(|at| tree.nodes[at as usize].uuid),
            created_at: node.created_at,
            updated_at: node.updated_at,
            inventories: inventories.collect(),
            traits: node
                .traits
                .iter()
                .map(|id| self.trait_name(*id).clone())
                .collect(),
            aggregates: node.aggregates.as_ref().clone(),
        })
    }

    fn consumer_part(&self, uuid: &ConsumerUuid, row: &ConsumerRow) -> RowGroup {
        let mut allocations: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for amount in &row.allocations {
            let node = self
                .node_by_id(amount.provider)
                .expect("the provider of an allocation exists");
            let class = self.resource_class_name(amount.class).clone();
            let held = allocations.entry(node.uuid).or_default();
            held.insert(class, amount.units);
        }
        RowGroup::Consumer(FilledConsumer {
            uuid: uuid.clone(),
            generation: row.generation,
            project: row.project.clone(),
            user: row.user.clone(),
            consumer_type: row.consumer_type.clone(),
            allocations,
            updated_at: row.updated_at,
            hold: row.hold.clone(),
        })
    }
}

/// The parent of a node if the parent was created first, so that the node can be created below it.
fn older_parent(tree: &Tree, node: u32) -> Option<u32> {
    let node = &tree.nodes[node as usize];
    (node.parent).filter(|parent| tree.nodes[*parent as usize].id < node.id)
}

/// The part of each tree that the commands so far have created.
#[derive(Default)]
struct Growth {
    /// Number of nodes created so far, and their highest index.
    trees: BTreeMap<TreeNumber, (usize, u32)>,
    last: Option<TreeNumber>,
    /// For each provider, the length of the path to the root that it is created under.
    lines: BTreeMap<NodePlace, usize>,
}

impl Growth {
    /// Upper bound of the steps to create the next node. The nodes on its path to the root change,
    /// and the nodes after it move. If the previous node belongs to another tree, all nodes of the
    /// tree are copied.
    fn steps(&mut self, tree: &Tree, place: NodePlace) -> usize {
        let parent = older_parent(tree, place.node).map(|node| place.tree.node(node));
        let line = 1 + parent.map_or(0, |parent| self.lines[&parent]);
        self.lines.insert(place, line);
        let (nodes, highest) = self.trees.entry(place.tree).or_default();
        let is_copied = self.last.replace(place.tree) == Some(place.tree);
        let is_last = line == 1 || is_copied && *highest < place.node;
        let steps = line + if is_last { 0 } else { *nodes };
        (*nodes, *highest) = (*nodes + 1, place.node.max(*highest));
        steps
    }
}

impl RowGroup {
    fn weighed(self, steps: usize, bytes_max: usize) -> Result<WeighedGroup, UncopyableRow> {
        let written = rmp_serde::to_vec(&self);
        let bytes = written.expect("every row can be serialized").len();
        if bytes > bytes_max {
            return Err(UncopyableRow::TooLong(self.name(), bytes, bytes_max));
        }
        if self.is_shown() {
            Ok((bytes, steps, self))
        } else {
            Err(UncopyableRow::Time(self.name()))
        }
    }

    /// Whether the REST API can represent all times of the row.
    fn is_shown(&self) -> bool {
        match self {
            Self::Class(NameRow { updated_at, .. })
            | Self::Trait(NameRow { updated_at, .. })
            | Self::Consumer(FilledConsumer { updated_at, .. }) => updated_at.is_shown(),
            Self::Provider(row) => {
                let inventories = row.inventories.values().map(|row| row.updated_at);
                let mut times = inventories.chain([row.created_at, row.updated_at]);
                times.all(Timestamp::is_shown)
            }
            Self::Parent(..) => true,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Class(row) => format!("resource class {}", row.name),
            Self::Trait(row) => format!("trait {}", row.name),
            Self::Provider(row) => format!("resource provider {}", row.uuid),
            Self::Parent(child, _) => format!("the parent of resource provider {child}"),
            Self::Consumer(row) => format!("consumer {}", row.uuid),
        }
    }

    fn put_into(self, piece: &mut FillPartition) {
        match self {
            Self::Class(row) => piece.resource_classes.push(row),
            Self::Trait(row) => piece.traits.push(row),
            Self::Provider(row) => piece.providers.push(row),
            Self::Parent(child, parent) => piece.parents.push((child, parent)),
            Self::Consumer(row) => piece.consumers.push(row),
        }
    }
}

/// Combines the groups into commands.
struct Pieces<I: Iterator> {
    parts: Peekable<I>,
    after: Filled,
    bytes: usize,
}

impl<I: Iterator<Item = Result<WeighedGroup, UncopyableRow>>> Iterator for Pieces<I> {
    type Item = Result<FillPartition, UncopyableRow>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut bytes, mut steps, part) = match self.parts.next()? {
            Ok(first) => first,
            Err(misfit) => return Some(Err(misfit)),
        };
        let mut piece = FillPartition {
            after: self.after,
            ..FillPartition::default()
        };
        part.put_into(&mut piece);
        while let Some(Ok((more, further, part))) = self.parts.next_if(|part| {
            matches!(part, Ok((more, further, _)) if bytes + more <= self.bytes && steps + further <= STEPS_MAX)
        }) {
            bytes += more;
            steps += further;
            part.put_into(&mut piece);
        }
        self.after = piece.rows_after();
        Some(Ok(piece))
    }
}
