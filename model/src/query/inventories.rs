//! A provider's inventories.

use crate::state::State;
use crate::state::change::InventoryRow;
use crate::types::{Generation, ProviderUuid, ResourceClassName};

/// A provider's inventories, sorted by class, with the provider's generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderInventories {
    /// The provider's generation.
    pub generation: Generation,
    /// The records.
    pub inventories: Vec<(ResourceClassName, InventoryRow)>,
}

impl State {
    /// The inventories of a provider, or `None` if there is no such provider.
    pub fn inventories(&self, provider: &ProviderUuid) -> Option<ProviderInventories> {
        let _ = provider;
        None
    }
}
