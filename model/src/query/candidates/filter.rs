//! Which trees are worth opening: bitmaps, and-ed chunk by chunk as trees are asked for.

use std::collections::BTreeSet;

use super::plan::{Kind, Plan, Rule};
use super::sharing::SharingProviders;
use crate::state::change::TraitId;
use crate::state::indexes::Indexes;
use crate::state::tree::TreeNumber;
use crate::state::tree_set::{CHUNK_TREES, Chunk, TreeSet, chunk_trees};
use crate::types::AggregateUuid;

/// Walks over the trees that pass, in rising order, which is that of their roots' creation.
pub(super) struct Filter {
    /// Each must hold: the tree is in one of these sets.
    all: Vec<Vec<TreeSet>>,
    /// None may hold.
    none: Vec<TreeSet>,
    /// What is left of the chunk at hand, last tree first.
    pending: Vec<u32>,
    next_chunk: Option<u32>,
}

impl Filter {
    /// The trees that may be anchors of an answer.
    pub(super) fn anchors(plan: &Plan<'_>, sharing: &SharingProviders<'_>) -> Self {
        let indexes = plan.state.indexes();
        let mut filter = Self::roots(indexes, &plan.root.required, &plan.root.forbidden);
        for (index, kind) in plan.kinds.iter().enumerate() {
            filter.add_kind(plan, kind, &sharing.reach(plan.state, index));
        }
        for any in &plan.trait_sets {
            let mut sets = with_any_trait(indexes, any);
            let unnumbered = (0..plan.kinds.len()).filter(|kind| !plan.kinds[*kind].named);
            sets.extend(unnumbered.map(|kind| sharing.reach(plan.state, kind)));
            filter.all.push(sets);
        }
        filter
    }

    /// Only those of the trees that are in one of these sets.
    pub(super) fn within(mut self, trees: Vec<TreeSet>) -> Self {
        self.all.push(trees);
        self
    }

    /// The trees with these traits and none of those at the root.
    pub(super) fn roots(indexes: &Indexes, required: &[TraitId], forbidden: &[TraitId]) -> Self {
        let sets = |ids: &[TraitId]| -> Vec<TreeSet> {
            ids.iter()
                .map(|id| indexes.with_root_trait(*id).cloned().unwrap_or_default())
                .collect()
        };
        Self {
            all: sets(required).into_iter().map(|set| vec![set]).collect(),
            none: sets(forbidden),
            pending: Vec::new(),
            next_chunk: Some(0),
        }
    }

    /// The trees with a member of some aggregate of each set, though not of all in one provider.
    pub(super) fn members(indexes: &Indexes, member_of: &[BTreeSet<AggregateUuid>]) -> Self {
        let sets = |any: &BTreeSet<AggregateUuid>| with_any_member(indexes, any);
        Self {
            all: member_of.iter().map(sets).collect(),
            none: Vec::new(),
            pending: Vec::new(),
            next_chunk: Some(0),
        }
    }

    /// A provider of the tree must serve the kind, or a sharing one that reaches the tree.
    fn add_kind(&mut self, plan: &Plan<'_>, kind: &Kind, reached: &TreeSet) {
        let indexes = plan.state.indexes();
        let rule: &Rule<'_> = &plan.rules[kind.rule];
        let mut either = |mut sets: Vec<TreeSet>| {
            if !reached.is_empty() {
                sets.push(reached.clone());
            }
            self.all.push(sets);
        };
        for demand in &kind.demands {
            either(
                indexes
                    .offering(demand.id, demand.amount)
                    .cloned()
                    .collect(),
            );
        }
        for any in rule.member_of {
            either(with_any_member(indexes, any));
        }
        if let Some(tree) = rule.in_tree {
            either(vec![TreeSet::from_iter([tree.0])]);
        }
        if rule.named {
            for any in &rule.required {
                either(with_any_trait(indexes, any));
            }
        } else {
            let barred = rule.not_member_of.iter();
            self.none
                .extend(barred.filter_map(|id| indexes.with_root_member(id).cloned()));
        }
    }

    fn first_chunk_from(&self, from: u32) -> Option<u32> {
        let mut first = from;
        for sets in &self.all {
            first = first.max(sets.iter().filter_map(|set| set.next_chunk(from)).min()?);
        }
        Some(first)
    }

    fn chunk(&self, key: u32) -> Option<Chunk> {
        let mut result: Option<Chunk> = None;
        for sets in &self.all {
            let mut any: Chunk = [0; _];
            for chunk in sets.iter().filter_map(|set| set.chunk(key)) {
                merge(&mut any, chunk, |any, word| *any |= word);
            }
            match &mut result {
                Some(result) => merge(result, &any, |result, word| *result &= word),
                None => result = Some(any),
            }
        }
        let mut result = result?;
        for chunk in self.none.iter().filter_map(|set| set.chunk(key)) {
            merge(&mut result, chunk, |result, word| *result &= !word);
        }
        result.iter().any(|word| *word != 0).then_some(result)
    }
}

impl Iterator for Filter {
    type Item = TreeNumber;

    fn next(&mut self) -> Option<TreeNumber> {
        while self.pending.is_empty() {
            let key = self.first_chunk_from(self.next_chunk?)?;
            self.next_chunk = (key < u32::MAX / CHUNK_TREES).then_some(key + 1);
            if let Some(chunk) = self.chunk(key) {
                self.pending.extend(chunk_trees(key, &chunk));
                self.pending.reverse();
            }
        }
        self.pending.pop().map(TreeNumber)
    }
}

fn merge(into: &mut Chunk, from: &Chunk, mut with: impl FnMut(&mut u64, u64)) {
    for (into, from) in into.iter_mut().zip(from) {
        with(into, *from);
    }
}

fn with_any_trait(indexes: &Indexes, any: &[TraitId]) -> Vec<TreeSet> {
    any.iter()
        .filter_map(|id| indexes.with_trait(*id).cloned())
        .collect()
}

fn with_any_member(indexes: &Indexes, any: &BTreeSet<AggregateUuid>) -> Vec<TreeSet> {
    any.iter()
        .filter_map(|id| indexes.with_member(id).cloned())
        .collect()
}
