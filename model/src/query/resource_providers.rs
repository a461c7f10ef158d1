//! One provider, and lists of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::outcome::Provider;
use crate::state::State;
use crate::types::{AggregateUuid, ProviderUuid, ResourceClassName, TraitName};

/// Which providers to list; everything given must hold of a provider at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderFilter {
    /// Exactly this name.
    pub name: Option<String>,
    /// This provider.
    pub uuid: Option<ProviderUuid>,
    /// The whole tree that this provider is in.
    pub in_tree: Option<ProviderUuid>,
    /// Member of at least one aggregate of each set.
    pub member_of: Vec<BTreeSet<AggregateUuid>>,
    /// Member of none of these.
    pub not_member_of: BTreeSet<AggregateUuid>,
    /// At least one trait of each set.
    pub required: Vec<BTreeSet<TraitName>>,
    /// None of these traits.
    pub forbidden: BTreeSet<TraitName>,
    /// Room for each of these amounts, min_unit, max_unit and step_size included.
    pub resources: BTreeMap<ResourceClassName, u64>,
}

/// A filter that names what does not exist. Resource classes are reported before traits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// No such resource class.
    #[error("no such resource class {0}")]
    UnknownResourceClass(ResourceClassName),
    /// No such traits.
    #[error("no such traits {0:?}")]
    UnknownTraits(Vec<TraitName>),
}

impl State {
    /// The provider with this UUID.
    pub fn provider(&self, uuid: &ProviderUuid) -> Option<Provider> {
        let _ = uuid;
        None
    }

    /// All providers that pass the filter, in the order of their creation.
    ///
    /// # Errors
    /// A filter that names an unknown resource class or trait.
    pub fn providers(&self, filter: &ProviderFilter) -> Result<Vec<Provider>, FilterError> {
        let _ = filter;
        Ok(Vec::new())
    }
}
