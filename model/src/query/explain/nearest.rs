//! The trees closest to a candidate, and the consumers of their missing resources.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroU64;

use super::answer::{Bound, Detail, Holder, NearTree, UnmetCondition};
use super::atoms::Test;
use super::detail::SharedClass;
use super::explainer::Explainer;
use crate::query::NamedProvider;
use crate::state::change::ResourceClassId;
use crate::state::tree::{Node, TreeNumber};
use crate::types::ConsumerUuid;

/// Number of consumers shown per missing resource.
const HOLDERS: usize = 3;
/// Number of consumers per provider among which the largest are selected.
const HOLDERS_LOOKED_AT: usize = 1_000;

impl Explainer<'_> {
    /// Describes what a tree lacks; `None` if time has run out.
    pub(super) fn near(&mut self, number: TreeNumber, shared: &[SharedClass]) -> Option<NearTree> {
        let tree = self.state.tree(number)?;
        let looks = self.check_tree(number)?;
        let atoms = self.atoms;
        let found = atoms.lacks(&looks, atoms.first_unmet(&looks));
        let (mut lacks, mut holders, mut more) = (Vec::new(), Vec::new(), 0);
        let mut seen = BTreeSet::new();
        for (index, one) in atoms.list.iter().enumerate() {
            if found.atoms & 1 << index == 0 {
                continue;
            }
            let mut lack = UnmetCondition {
                atom: one.atom.clone(),
                free: None,
                capacity: None,
                detail: Detail::default(),
            };
            let mut best = found.best.iter();
            let look = best.find(|look| look.fails & 1 << index != 0);
            let stock = |class| Some((look?.node, look?.node.stock(class)?));
            match &one.test {
                Test::Room(class, _) => {
                    if let Some((node, stock)) = stock(*class) {
                        lack.free = Some(stock.inventory.free(stock.used));
                        lack.capacity = Some(stock.inventory.free(0));
                        if seen.insert((node.id, *class)) {
                            let (largest, others) = self.holders(node, *class);
                            holders.extend(largest);
                            more += others;
                        }
                    }
                }
                Test::Unit(class, asked) => {
                    let stock = stock(*class);
                    lack.detail.bound =
                        stock.and_then(|(_, stock)| Bound::against(&stock.inventory, *asked));
                }
                Test::Required(_) | Test::Root(_, true) => {
                    lack.detail.elsewhere = atoms.elsewhere(tree, index);
                }
                Test::Together => {
                    let short = |class| atoms.short(class, &looks);
                    lack.detail.short = shared.iter().find_map(short);
                }
                _ => {}
            }
            lacks.push(lack);
        }
        Some(NearTree {
            root: NamedProvider::from_node(tree.root()),
            lacks,
            holders,
            holders_more: NonZeroU64::new(more),
        })
    }

    /// The consumers with the largest allocations of a class on a provider, and the number of
    /// further consumers.
    fn holders(&self, node: &Node, class: ResourceClassId) -> (Vec<Holder>, u64) {
        let consumers = &self.state.consumers;
        let holder = |consumer: &ConsumerUuid| {
            let row = consumers.row(consumer)?;
            let amounts = row.allocations.on_provider(node.id);
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
        let mut holders: Vec<_> = consumers
            .holders(node.id)
            .take(HOLDERS_LOOKED_AT)
            .filter_map(holder)
            .collect();
        holders.sort_by_key(|holder| (Reverse(holder.amount), holder.since));
        let more = holders.len().saturating_sub(HOLDERS);
        holders.truncate(HOLDERS);
        (holders, more as u64)
    }
}
