//! The rows of a state as commands that bring them into another partition.

use std::collections::BTreeMap;
use std::iter::Peekable;

use crate::command::{FillPartition, Filled, FilledConsumer, FilledProvider};
use crate::state::State;
use crate::state::change::{ConsumerRow, InventoryRow, NameRow, ProviderId};
use crate::state::tree::{NodePlace, Tree};
use crate::types::{ConsumerUuid, ProviderUuid, ResourceClassName, TraitName};

/// A row that is too long for a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{row} takes {bytes} bytes in the log, and {bytes_max} are the most")]
pub struct TooLong {
    /// Which.
    pub row: String,
    /// How long it is.
    pub bytes: usize,
    /// How long it may be.
    pub bytes_max: usize,
}

/// A row with what refers to it.
enum Part {
    Class(NameRow<ResourceClassName>),
    Trait(NameRow<TraitName>),
    Provider(FilledProvider),
    /// A child that is older than its parent, and the parent.
    Parent(ProviderUuid, ProviderUuid),
    Consumer(FilledConsumer),
}

impl State {
    /// All rows of placement as commands, in order. A command has more than `bytes` in the log only if it is for a single row.
    /// An error stands in place of a row that is longer than `bytes_max`.
    pub fn pieces(
        &self,
        bytes: usize,
        bytes_max: usize,
    ) -> impl Iterator<Item = Result<FillPartition, TooLong>> {
        let classes = self.resource_classes.rows();
        let classes = classes.map(|(_, row)| Part::Class(row.clone()));
        let traits = self.traits.rows();
        let traits = traits.map(|(_, row)| Part::Trait(row.clone()));
        let providers = self.providers.places();
        let providers = providers.flat_map(|(_, place)| self.parts_of(place));
        let consumers = self.consumers.rows();
        let consumers = consumers.map(|(uuid, row)| Part::Consumer(self.consumer_part(uuid, row)));
        let parts = classes.chain(traits).chain(providers).chain(consumers);
        Pieces {
            parts: parts.map(|part| (part.bytes(), part)).peekable(),
            after: Filled::default(),
            bytes,
            bytes_max,
        }
    }

    /// A provider, and its children that are older.
    fn parts_of(&self, place: NodePlace) -> impl Iterator<Item = Part> {
        let tree = self
            .tree(place.tree)
            .expect("a place names a tree that exists");
        let node = self.node(place);
        let inventories = node.inventories.iter().map(|stock| {
            let row = InventoryRow {
                inventory: stock.inventory,
                updated_at: stock.updated_at,
            };
            (self.resource_class_name(stock.class).clone(), row)
        });
        let provider = FilledProvider {
            uuid: node.uuid,
            name: node.name.clone(),
            generation: node.generation,
            parent: (tree.parent(place.node).filter(|parent| parent.id < node.id))
                .map(|parent| parent.uuid),
            created_at: node.created_at,
            updated_at: node.updated_at,
            inventories: inventories.collect(),
            traits: node
                .traits
                .iter()
                .map(|id| self.trait_name(*id).clone())
                .collect(),
            aggregates: node.aggregates.as_ref().clone(),
        };
        let older = children(tree, place.node).take_while(|child| child.1 < node.id);
        let older = older.map(|(uuid, _)| Part::Parent(uuid, node.uuid));
        std::iter::once(Part::Provider(provider)).chain(older)
    }

    fn consumer_part(&self, uuid: &ConsumerUuid, row: &ConsumerRow) -> FilledConsumer {
        let mut allocations: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for amount in &row.allocations {
            let node = self.node_by_id(amount.provider);
            let node = node.expect("a consumer holds of providers that are there");
            let class = self.resource_class_name(amount.class).clone();
            let held = allocations.entry(node.uuid).or_default();
            held.insert(class, amount.units);
        }
        FilledConsumer {
            uuid: uuid.clone(),
            generation: row.generation,
            project: row.project.clone(),
            user: row.user.clone(),
            consumer_type: row.consumer_type.clone(),
            allocations,
            updated_at: row.updated_at,
        }
    }
}

/// The children of a node with their ids, in the order of these.
fn children(tree: &Tree, parent: u32) -> impl Iterator<Item = (ProviderUuid, ProviderId)> {
    let end = tree.nodes[parent as usize].subtree_end;
    let first = Some(parent + 1).filter(|child| *child < end);
    let next =
        move |child: &u32| Some(tree.nodes[*child as usize].subtree_end).filter(|next| *next < end);
    std::iter::successors(first, next).map(|child| {
        let node = &tree.nodes[child as usize];
        (node.uuid, node.id)
    })
}

impl Part {
    /// How long it is in a command.
    fn bytes(&self) -> usize {
        let written = match self {
            Self::Class(row) => rmp_serde::to_vec(row),
            Self::Trait(row) => rmp_serde::to_vec(row),
            Self::Provider(row) => rmp_serde::to_vec(row),
            Self::Parent(child, parent) => rmp_serde::to_vec(&(child, parent)),
            Self::Consumer(row) => rmp_serde::to_vec(row),
        };
        written.expect("every row can be written down").len()
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
    bytes_max: usize,
}

impl<I: Iterator<Item = (usize, Part)>> Iterator for Pieces<I> {
    type Item = Result<FillPartition, TooLong>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut bytes, part) = self.parts.next()?;
        if bytes > self.bytes_max {
            return Some(Err(TooLong {
                row: part.name(),
                bytes,
                bytes_max: self.bytes_max,
            }));
        }
        let mut piece = FillPartition {
            after: self.after,
            ..FillPartition::default()
        };
        part.put_into(&mut piece);
        while let Some((more, part)) = self.parts.next_if(|(more, _)| bytes + more <= self.bytes) {
            bytes += more;
            part.put_into(&mut piece);
        }
        self.after = piece.then();
        Some(Ok(piece))
    }
}
