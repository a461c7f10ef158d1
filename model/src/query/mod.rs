//! Questions over a [`crate::State`], one file per noun. None of them blocks a writer.

pub mod aggregates;
pub mod allocations;
pub mod candidates;
pub mod capacity;
pub mod consumers;
pub mod explain;
pub mod inventories;
pub mod pieces;
pub mod resource_classes;
pub mod resource_providers;
pub mod traits;
mod tree_filter;
pub mod trees;
pub mod usages;
pub mod what_if;

use serde::Serialize;

use crate::state::State;
use crate::state::change::TraitId;
use crate::state::tree::Node;
use crate::types::{Generation, Given, ProviderName, ProviderUuid, ResourceClassName, TraitName};

/// The trait of providers that serve other trees.
const SHARING_TRAIT: &str = "MISC_SHARES_VIA_AGGREGATE";

/// A request names what does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownName {
    /// No such resource class.
    #[error("no such resource class {0}")]
    ResourceClass(Given<ResourceClassName>),
    /// No such traits.
    #[error("no such traits {0:?}")]
    Traits(Vec<Given<TraitName>>),
}

/// How operators refer to a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedProvider {
    /// Its UUID.
    pub uuid: ProviderUuid,
    /// Its name.
    pub name: ProviderName,
}

impl NamedProvider {
    pub(crate) fn of(node: &Node) -> Self {
        Self {
            uuid: node.uuid,
            name: node.name.clone(),
        }
    }
}

impl State {
    /// The id of the trait of sharing providers; `None`: it does not exist.
    pub(crate) fn sharing_trait(&self) -> Option<TraitId> {
        self.trait_id(&SHARING_TRAIT.parse().ok()?)
    }

    /// A provider's generation and something else of it; `None` if there is no such provider.
    fn of_provider<T>(
        &self,
        provider: &ProviderUuid,
        of: impl FnOnce(&Node) -> T,
    ) -> Option<(Generation, T)> {
        let node = self.node(self.place(provider)?);
        Some((node.generation, of(node)))
    }
}
