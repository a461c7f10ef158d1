//! Details of the conditions that trees fail.

use std::collections::BTreeMap;

use super::answer::{ClassShortage, TraitElsewhere};
use super::atoms::{Atoms, Bits, Test, TreeCheck, bits};
use crate::query::NamedProvider;
use crate::state::change::ResourceClassId;
use crate::state::indexes::offer;
use crate::state::tree::{Node, Tree};
use crate::types::{Given, ResourceClassName};

/// A class that several groups request.
pub(super) struct SharedClass {
    class: ResourceClassId,
    name: Given<ResourceClassName>,
    /// The suffix of each group and the units that it requests.
    amounts: Vec<(String, u64)>,
    /// The parts that request the class.
    parts: Bits,
}

impl SharedClass {
    /// The shortage of the class if all groups together request more than the tree can give. A
    /// request without a shortage may still be impossible.
    pub(super) fn short(&self, looks: &TreeCheck<'_>) -> Option<ClassShortage> {
        let amounts = self.amounts.iter().map(|(_, asked)| *asked);
        let asked = amounts.fold(0, u64::saturating_add);
        let most = self.most_together(looks);
        let groups = self.amounts.iter().map(|(group, _)| group.clone());
        (most < asked).then(|| ClassShortage {
            class: self.name.clone(),
            asked,
            most,
            groups: groups.collect(),
        })
    }

    /// The amount of each group if all groups request the same amount, otherwise 1: a provider
    /// serves whole amounts only.
    fn piece(&self) -> u64 {
        let mut amounts = self.amounts.iter().map(|(_, asked)| *asked);
        let first = amounts.next().unwrap_or(1);
        if amounts.all(|asked| asked == first) {
            first.max(1)
        } else {
            1
        }
    }

    /// Upper bound of the units of the class that all groups together can take from a tree. It
    /// ignores isolation, whose effect a relaxation shows.
    fn most_together(&self, looks: &TreeCheck<'_>) -> u64 {
        let able: BTreeMap<_, _> = looks
            .list
            .iter()
            .filter(|look| look.fails == 0 && self.parts & 1 << look.part != 0)
            .map(|look| (look.node.id, look.node))
            .collect();
        let piece = self.piece();
        let stocks = able.values().filter_map(|node| node.stock(self.class));
        let offers = stocks.map(|stock| offer(stock) - offer(stock) % piece);
        offers.fold(0, u64::saturating_add)
    }
}

impl Atoms<'_> {
    /// The classes that several groups request.
    pub(super) fn shared_classes(&self) -> Vec<SharedClass> {
        let mut shared = Vec::<SharedClass>::new();
        for (index, one) in self.list.iter().enumerate() {
            if let (Test::Room(class, asked), Some(name)) = (&one.test, &one.atom.class) {
                let known = shared.iter_mut().find(|other| other.class == *class);
                let amount = (one.atom.group.clone(), *asked);
                let asks = self.parts.iter().map(|part| part.atoms.contains(&index));
                let parts = bits(asks);
                match known {
                    Some(known) => {
                        known.amounts.push(amount);
                        known.parts |= parts;
                    }
                    None => shared.push(SharedClass {
                        class: *class,
                        name: name.clone(),
                        amounts: vec![amount],
                        parts,
                    }),
                }
            }
        }
        shared.retain(|one| one.amounts.len() > 1);
        shared
    }

    /// A provider of the tree with the trait that the serving providers lack.
    pub(super) fn elsewhere(&self, tree: &Tree, atom: usize) -> Option<TraitElsewhere> {
        let has_it = |node: &&Node| match &self.list[atom].test {
            Test::Required(any) => any.iter().any(|id| node.traits.contains(id)),
            Test::Root(id, true) => node.traits.contains(id),
            _ => false,
        };
        let found = tree.nodes.iter().map(AsRef::as_ref).find(has_it)?;
        Some(TraitElsewhere {
            root: NamedProvider::from_node(tree.root()),
            provider: NamedProvider::from_node(found),
        })
    }
}
