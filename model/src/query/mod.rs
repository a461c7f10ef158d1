//! Questions over a [`crate::State`], one file per noun. None of them blocks a writer.

pub mod aggregates;
pub mod allocations;
pub mod candidates;
pub mod explain;
pub mod inventories;
pub mod resource_classes;
pub mod resource_providers;
pub mod traits;
mod tree_filter;
pub mod usages;

use crate::state::State;
use crate::state::tree::Node;
use crate::types::{Generation, Given, ProviderUuid, ResourceClassName, TraitName};

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

impl State {
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
