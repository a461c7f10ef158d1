//! What is asked, and what is answered.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::types::{AggregateUuid, Given, ProviderUuid, ResourceClassName, TraitName};

/// `GET /allocation_candidates`, parsed. Form is checked; facts (unknown classes, traits) are not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CandidateRequest {
    /// In the order of their first appearance in the query string, which decides which of two
    /// wrong groups is reported.
    pub groups: Vec<RequestGroup>,
    /// The classes in the order in which the query names them, which explanations follow; others
    /// come behind.
    pub class_order: Vec<Given<ResourceClassName>>,
    /// Required from two named groups on.
    pub group_policy: Option<GroupPolicy>,
    /// Traits that the anchor's root must have.
    pub root_required: BTreeSet<Given<TraitName>>,
    /// Traits that the anchor's root must not have.
    pub root_forbidden: BTreeSet<Given<TraitName>>,
    /// Each a set of suffixes whose providers must lie in one subtree that one of them heads.
    pub same_subtree: Vec<BTreeSet<String>>,
    /// At most this many allocation requests.
    pub limit: Option<usize>,
    /// At most this many are looked for, whatever the limit.
    pub search_max: Option<usize>,
    /// From 1.29: requests may use several providers of one tree, summaries show whole trees.
    pub nested: bool,
    /// From 1.34: mappings are shown, and so part of what makes two requests identical. Below,
    /// requests that differ in mappings alone stay as visible duplicates.
    pub mappings: bool,
    /// In which order candidates are made.
    pub strategy: GenerationStrategy,
    /// With a number, the search begins at an anchor that follows from it, goes on in the order of
    /// their creation and round, and gives one candidate of each in turn; which one comes first of
    /// an anchor follows from the number too.
    pub seed: Option<u64>,
}

impl CandidateRequest {
    /// What a group asks for, in the order of the query.
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

/// One request group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestGroup {
    /// Empty for the unnumbered group.
    pub suffix: String,
    /// Units per class, at least 1 each; empty for a resourceless group.
    pub resources: BTreeMap<Given<ResourceClassName>, u64>,
    /// At least one trait of each set.
    pub required: Vec<BTreeSet<Given<TraitName>>>,
    /// None of these.
    pub forbidden: BTreeSet<Given<TraitName>>,
    /// Member of at least one aggregate of each set.
    pub member_of: Vec<BTreeSet<AggregateUuid>>,
    /// Member of none of these.
    pub not_member_of: BTreeSet<AggregateUuid>,
    /// Only providers of the tree that this provider is in.
    pub in_tree: Option<Given<ProviderUuid>>,
}

/// May two named groups have the same provider?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupPolicy {
    /// Yes.
    None,
    /// No.
    Isolate,
}

/// In which order candidates are made, which matters with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GenerationStrategy {
    /// All candidates of one root, then of the next.
    #[default]
    DepthFirst,
    /// One candidate of each root in turn.
    BreadthFirst,
}
