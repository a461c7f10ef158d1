//! The trees closest to a candidate, and the consumers of their missing resources.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroU64;

use super::answer::{Bound, Detail, Holder, NearTree, ReducedCapacity, UnmetCondition};
use super::atoms::Test;
use super::detail::SharedClass;
use super::explainer::Explainer;
use crate::query::NamedProvider;
use crate::state::State;
use crate::state::change::{ConsumerRow, ResourceClassId};
use crate::state::tree::{Node, TreeNumber};
use crate::types::ConsumerUuid;

/// Number of consumers shown per missing resource.
const HOLDERS: usize = 3;

impl<'a> Explainer<'a> {
    /// Describes what a tree lacks; `None` if time has run out.
    pub(super) fn near(&mut self, number: TreeNumber, shared: &[SharedClass]) -> Option<NearTree> {
        let tree = self.state.tree(number)?;
        let looks = self.check_tree(number)?;
        let atoms = self.atoms;
        let found = atoms.lacks(&looks, atoms.first_unmet(&looks));
        let (mut lacks, mut holders, mut others) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut seen = BTreeSet::new();
        for (index, one) in atoms.list.iter().enumerate() {
            if found.atoms & 1 << index == 0 {
                continue;
            }
            let mut lack = UnmetCondition {
                atom: one.atom.clone(),
                free: None,
                capacity: None,
                reduced: None,
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
                        lack.reduced = ReducedCapacity::of(&stock.inventory);
                        if seen.insert((node.id, *class)) {
                            holders.extend(self.largest_holders(node, *class, &mut others));
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
                    let short = |class: &SharedClass| class.short(&looks);
                    lack.detail.short = shared.iter().find_map(short);
                }
                _ => {}
            }
            lacks.push(lack);
        }
        for holder in &holders {
            others.remove(&holder.consumer);
        }
        Some(NearTree {
            root: NamedProvider::from_node(tree.root()),
            lacks,
            holders,
            holders_more: NonZeroU64::new(others.len() as u64),
        })
    }

    /// The consumers with the largest allocations of a class on a provider. The others go to
    /// `others`.
    fn largest_holders(
        &self,
        node: &Node,
        class: ResourceClassId,
        others: &mut BTreeSet<&'a ConsumerUuid>,
    ) -> Vec<Holder> {
        let state: &'a State = self.state;
        let amount = |(consumer, row): (&'a ConsumerUuid, &'a ConsumerRow)| {
            let amounts = row.allocations.on_provider(node.id);
            let amount = amounts.iter().find(|amount| amount.class == class)?;
            Some((amount.units, consumer, row))
        };
        let rows = state.consumers.rows_after(Some(node.id), None);
        let mut holders: Vec<_> = rows.filter_map(amount).collect();
        holders.sort_by_key(|(units, _, row)| (Reverse(*units), row.updated_at));
        let largest = holders.len().min(HOLDERS);
        others.extend(holders.drain(largest..).map(|(_, consumer, _)| consumer));
        let holder = |(units, consumer, row): (u64, &ConsumerUuid, &ConsumerRow)| Holder {
            consumer: consumer.clone(),
            consumer_type: row.consumer_type.clone(),
            project: row.project.clone(),
            class: state.resource_class_name(class).clone(),
            amount: units,
            since: row.updated_at,
            hold: row.hold.as_deref().cloned(),
        };
        holders.into_iter().map(holder).collect()
    }
}
