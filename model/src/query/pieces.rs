//! The rows of a state as commands that bring them into another partition.

use std::collections::BTreeMap;
use std::iter::Peekable;

use serde::Serialize;

use crate::command::{FillPartition, Filled, FilledConsumer, FilledProvider};
use crate::state::State;
use crate::state::change::{ConsumerRow, NameRow};
use crate::state::tree::{NodePlace, Tree, TreeNumber};
use crate::types::{ConsumerUuid, ProviderUuid, ResourceClassName, Timestamp, TraitName};

/// Most steps of a command, each of which moves a provider in its tree: the writes of others wait
/// for them.
const STEPS_MAX: usize = 100_000;

/// A row that no command brings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// This one has so many bytes, and may have so many.
    #[error("{0} takes {1} bytes in the log, and {2} are the most")]
    TooLong(String, usize, usize),
    /// This one has a time that clients cannot be shown.
    #[error("{0} has a time that is not of the years 1970 to 9999")]
    Time(String),
}

/// A row with what refers to it.
#[derive(Serialize)]
enum Part {
    Class(NameRow<ResourceClassName>),
    Trait(NameRow<TraitName>),
    Provider(FilledProvider),
    /// A child that is older than its parent, and the parent.
    Parent(ProviderUuid, ProviderUuid),
    Consumer(FilledConsumer),
}

/// A part, the most bytes that it has in a command, and the steps to carry it out.
type Weighed = (usize, usize, Part);

impl State {
    /// All rows of placement as commands, in order. A command has more than `bytes` in the log, or
    /// takes more than 100,000 steps, only if it is for a single row. An error stands in place of a
    /// row that does not fit, as one that is longer than `bytes_max`.
    pub fn pieces(
        &self,
        bytes: usize,
        bytes_max: usize,
    ) -> impl Iterator<Item = Result<FillPartition, Misfit>> {
        let classes = self.resource_classes.rows();
        let classes = classes.map(|(_, row)| (0, Part::Class(row.clone())));
        let traits = self.traits.rows();
        let traits = traits.map(|(_, row)| (0, Part::Trait(row.clone())));
        let mut growth = Growth::default();
        let providers = self.providers.places().map(move |(_, place)| {
            let tree = self.tree(place.tree);
            let tree = tree.expect("a place names a tree that exists");
            let steps = growth.steps(tree, place);
            (steps, self.provider_part(tree, place))
        });
        // When all are there. All of a tree may move for each.
        let older_children = self.trees().flat_map(|(_, tree)| {
            (0..).zip(&tree.nodes).filter_map(move |(index, node)| {
                let parent = tree.parent(index).filter(|parent| parent.id > node.id)?;
                Some((tree.nodes.len(), Part::Parent(node.uuid, parent.uuid)))
            })
        });
        let consumers = self.consumers.rows();
        let consumers = consumers.map(|(uuid, row)| (0, self.consumer_part(uuid, row)));
        let parts = classes.chain(traits).chain(providers);
        let parts = parts.chain(older_children).chain(consumers);
        Pieces {
            parts: (parts.map(move |(steps, part)| part.weighed(steps, bytes_max))).peekable(),
            after: Filled::default(),
            bytes,
        }
    }

    fn provider_part(&self, tree: &Tree, place: NodePlace) -> Part {
        let node = self.node(place);
        let inventories = node.inventories.iter();
        let inventories =
            inventories.map(|stock| (self.resource_class_name(stock.class).clone(), stock.row()));
        Part::Provider(FilledProvider {
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

    fn consumer_part(&self, uuid: &ConsumerUuid, row: &ConsumerRow) -> Part {
        let mut allocations: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for amount in &row.allocations {
            let node = self.node_by_id(amount.provider);
            let node = node.expect("a consumer holds of providers that are there");
            let class = self.resource_class_name(amount.class).clone();
            let held = allocations.entry(node.uuid).or_default();
            held.insert(class, amount.units);
        }
        Part::Consumer(FilledConsumer {
            uuid: uuid.clone(),
            generation: row.generation,
            project: row.project.clone(),
            user: row.user.clone(),
            consumer_type: row.consumer_type.clone(),
            allocations,
            updated_at: row.updated_at,
        })
    }
}

/// The parent of a node, if it comes below it.
fn older_parent(tree: &Tree, node: u32) -> Option<u32> {
    let node = &tree.nodes[node as usize];
    (node.parent).filter(|parent| tree.nodes[*parent as usize].id < node.id)
}

/// What has come of each tree before a provider.
#[derive(Default)]
struct Growth {
    /// How many nodes, and the highest of their indexes.
    trees: BTreeMap<TreeNumber, (usize, u32)>,
    last: Option<TreeNumber>,
    /// How long the line up to a root is that each provider comes below.
    lines: BTreeMap<NodePlace, usize>,
}

impl Growth {
    /// The steps in which the next node comes, at most: its line up to a root changes, and those
    /// behind it move; all are copied if the one before was of another tree.
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

impl Part {
    fn weighed(self, steps: usize, bytes_max: usize) -> Result<Weighed, Misfit> {
        let written = rmp_serde::to_vec(&self);
        let bytes = written.expect("every row can be written down").len();
        if bytes > bytes_max {
            return Err(Misfit::TooLong(self.name(), bytes, bytes_max));
        }
        match self.is_shown() {
            true => Ok((bytes, steps, self)),
            false => Err(Misfit::Time(self.name())),
        }
    }

    /// Whether clients can be shown all of its times.
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

/// Puts parts together.
struct Pieces<I: Iterator> {
    parts: Peekable<I>,
    after: Filled,
    bytes: usize,
}

impl<I: Iterator<Item = Result<Weighed, Misfit>>> Iterator for Pieces<I> {
    type Item = Result<FillPartition, Misfit>;

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
        self.after = piece.then();
        Some(Ok(piece))
    }
}
