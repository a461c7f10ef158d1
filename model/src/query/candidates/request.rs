//! The parsed request for allocation candidates.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::state::tree::TreeNumber;
use crate::state::tree_set::TreeSet;
use crate::types::{AggregateUuid, Given, ProviderUuid, ResourceClassName, TraitName};

/// A parsed `GET /allocation_candidates`. The syntax is checked, but the classes and traits may not
/// exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CandidateRequest {
    /// The groups in the order of their first appearance in the query string. If several groups are
    /// wrong, the first one is reported.
    pub groups: Vec<RequestGroup>,
    /// The classes in the order of the query string, which explanations follow. Classes that are
    /// not listed come last.
    pub class_order: Vec<Given<ResourceClassName>>,
    /// The policy, which is required if there are at least two named groups.
    pub group_policy: Option<GroupPolicy>,
    /// Traits that the anchor's root must have.
    pub root_required: BTreeSet<Given<TraitName>>,
    /// Traits that the anchor's root must not have.
    pub root_forbidden: BTreeSet<Given<TraitName>>,
    /// Sets of suffixes. The providers of a set must lie in one subtree, with one of them at its
    /// root.
    pub same_subtree: Vec<BTreeSet<String>>,
    /// Maximum number of candidates to return.
    pub limit: Option<usize>,
    /// Maximum number of candidates to search, independent of `limit`.
    pub search_max: Option<usize>,
    /// From microversion 1.29 on: candidates may use several providers of one tree, and summaries
    /// show whole trees.
    pub nested: bool,
    /// From microversion 1.34 on: mappings are shown, and two candidates that differ only in
    /// mappings are distinct. Before 1.34, the answer contains such candidates as duplicates.
    pub mappings: bool,
    /// The order in which candidates are produced.
    pub strategy: GenerationStrategy,
    /// The trees that may be anchors; `None`: all. No query contains this.
    pub only_trees: Option<TreeSet>,
    /// Trees that must not be anchors. No query contains this.
    pub not_trees: TreeSet,
    /// Seed of a randomized search. It selects the first anchor, from which the search proceeds in
    /// the order of creation and wraps around. Each anchor in turn yields one candidate; the seed
    /// also selects the first candidate of an anchor.
    pub seed: Option<u64>,
}

impl CandidateRequest {
    /// Whether a tree may be an anchor.
    pub(crate) fn permits(&self, tree: TreeNumber) -> bool {
        let only = self.only_trees.as_ref();
        only.is_none_or(|only| only.contains(tree.0)) && !self.not_trees.contains(tree.0)
    }

    /// The resources of a group in the order of the query string.
    pub fn in_order<'a>(
        &self,
        group: &'a RequestGroup,
    ) -> Vec<(&'a Given<ResourceClassName>, u64)> {
        let place = |name| self.class_order.iter().position(|one| one == name);
        let resources = group.resources.iter();
        let mut all: Vec<_> = resources.map(|(name, units)| (name, *units)).collect();
        all.sort_by_key(|(name, _)| place(*name).unwrap_or(usize::MAX));
        all
    }
}

/// A request group, numbered or unnumbered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestGroup {
    /// The suffix of the group; empty for the unnumbered group.
    pub suffix: String,
    /// Units per class, at least 1 each; empty for a resourceless group.
    pub resources: BTreeMap<Given<ResourceClassName>, u64>,
    /// Each provider must have a trait of each set. In the unnumbered group, it suffices that for
    /// each set some provider has a trait of it.
    pub required: Vec<BTreeSet<Given<TraitName>>>,
    /// Traits that no provider of the group may have.
    pub forbidden: BTreeSet<Given<TraitName>>,
    /// Providers must be members of at least one aggregate of each set.
    pub member_of: Vec<BTreeSet<AggregateUuid>>,
    /// Aggregates that no provider of the group may be a member of.
    pub not_member_of: BTreeSet<AggregateUuid>,
    /// The providers must belong to the same tree as this provider.
    pub in_tree: Option<Given<ProviderUuid>>,
}

/// Whether two named groups may use the same provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupPolicy {
    /// Groups may share a provider.
    None,
    /// Each named group needs a separate provider.
    Isolate,
}

/// The order in which candidates are produced, which matters with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GenerationStrategy {
    /// All candidates of one root, then all of the next.
    #[default]
    DepthFirst,
    /// One candidate of each root in turn.
    BreadthFirst,
}
