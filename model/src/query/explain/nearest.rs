//! Trees that lack little, and who holds it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::answer::{Holder, Lack, Near};
use super::atoms::{AtomKind, Atoms, Looks};
use super::explainer::Explainer;
use crate::query::NamedProvider;
use crate::state::change::ResourceClassId;
use crate::state::tree::{Node, TreeNumber};
use crate::types::ConsumerUuid;

/// Consumers that are shown of each of them.
const HOLDERS: usize = 3;
/// Holders that are looked at for the largest of them.
const HOLDERS_LOOKED_AT: usize = 1_000;

impl<'a> Explainer<'a> {
    /// What a tree lacks; `None` if the time is up.
    pub(super) fn near(&mut self, atoms: &Atoms<'a>, number: TreeNumber) -> Option<Near> {
        let mut looks = Looks::default();
        let tree = self.state.tree(number)?;
        if !self.look_over(atoms, number, &mut looks) {
            return None;
        }
        let (bits, best) = atoms.lacks(&looks);
        let (mut lacks, mut holders) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        for (index, atom) in atoms.list.iter().enumerate() {
            let is_last = index == atoms.list.len() - 1;
            if bits & 1 << index == 0 && !(is_last && bits == 0) {
                continue;
            }
            let class = atom.class.as_ref().filter(|_| atom.kind == AtomKind::Room);
            let class = class.and_then(|class| self.state.class_given(class));
            let node = best.iter().find(|look| look.fails & 1 << index != 0);
            let at = class.zip(node).and_then(|(class, look)| {
                let stock = look.node.stock(class)?;
                Some((look.node, class, stock.inventory.free(stock.used)))
            });
            if let Some((node, class, _)) = at
                && seen.insert((node.id, class))
            {
                holders.extend(self.holders(node, class));
            }
            lacks.push(Lack {
                atom: atom.clone(),
                free: at.map(|(.., free)| free),
            });
        }
        Some(Near {
            root: NamedProvider::of(tree.root()),
            lacks,
            holders,
        })
    }

    /// The consumers with most of a class of a provider.
    fn holders(&self, node: &Node, class: ResourceClassId) -> Vec<Holder> {
        let consumers = &self.state.consumers;
        let holder = |consumer: &ConsumerUuid| {
            let row = consumers.row(consumer)?;
            let amounts = row.allocations.of(node.id);
            let amount = amounts.iter().find(|amount| amount.class == class)?;
            Some(Holder {
                consumer: consumer.clone(),
                consumer_type: row.consumer_type.clone(),
                project: row.project.clone(),
                class: self.state.resource_class_name(class).clone(),
                amount: amount.units,
                since: row.updated_at,
            })
        };
        let holders = consumers.holders(node.id).take(HOLDERS_LOOKED_AT);
        let mut holders: Vec<_> = holders.filter_map(holder).collect();
        holders.sort_by_key(|holder| (Reverse(holder.amount), holder.since));
        holders.truncate(HOLDERS);
        holders
    }
}
