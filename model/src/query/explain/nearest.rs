//! Trees that lack little, and who holds it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::answer::{Holder, Lack, Near};
use super::atoms::Test;
use super::explainer::Explainer;
use crate::query::NamedProvider;
use crate::state::change::ResourceClassId;
use crate::state::tree::{Node, TreeNumber};
use crate::types::ConsumerUuid;

/// Consumers that are shown of each of them.
const HOLDERS: usize = 3;
/// Holders that are looked at for the largest of them.
const HOLDERS_LOOKED_AT: usize = 1_000;

impl Explainer<'_> {
    /// What a tree lacks; `None` if the time is up.
    pub(super) fn near(&mut self, number: TreeNumber) -> Option<Near> {
        let tree = self.state.tree(number)?;
        let looks = self.look_over(number)?;
        let (mut bits, best) = self.atoms.lacks(&looks);
        if bits == 0 {
            // Only that all are met at once.
            bits = 1 << (self.atoms.list.len() - 1);
        }
        let (mut lacks, mut holders) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        for (index, one) in self.atoms.list.iter().enumerate() {
            if bits & 1 << index == 0 {
                continue;
            }
            let mut lack = Lack {
                atom: one.atom.clone(),
                free: None,
            };
            let look = best.iter().find(|look| look.fails & 1 << index != 0);
            if let Test::Room(class, _) = one.test
                && let Some(look) = look
                && let Some(stock) = look.node.stock(class)
            {
                lack.free = Some(stock.inventory.free(stock.used));
                if seen.insert((look.node.id, class)) {
                    holders.extend(self.holders(look.node, class));
                }
            }
            lacks.push(lack);
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
