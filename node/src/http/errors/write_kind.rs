//! The writes, as errors tell them apart.

use placement_model::types::ProviderUuid;

/// Which write was refused, as far as its errors depend on it.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) enum WriteKind<'a> {
    /// `POST /resource_providers`.
    CreateProvider {
        /// Its name.
        name: &'a str,
        /// Its UUID.
        uuid: ProviderUuid,
    },
    /// `PUT /resource_providers/{uuid}`.
    UpdateProvider {
        /// The provider.
        uuid: ProviderUuid,
        /// Whether the parent was to be taken away, rather than another one given.
        clears_parent: bool,
    },
    /// `DELETE /resource_providers/{uuid}`.
    DeleteProvider,
    /// `PUT …/inventories`.
    ReplaceInventories {
        /// Whose.
        provider: ProviderUuid,
    },
    /// `POST …/inventories`.
    CreateInventory {
        /// Whose.
        provider: ProviderUuid,
    },
    /// `PUT …/inventories/{class}`.
    UpdateInventory,
    /// `DELETE …/inventories/{class}`.
    DeleteInventory,
    /// `DELETE …/inventories`.
    DeleteInventories,
    /// Writes of a provider's traits or aggregates.
    ChangeProvider,
    /// Writes of traits.
    ChangeTrait,
    /// Writes of resource classes.
    ChangeResourceClass,
    /// `PUT /resource_classes/{name}` below 1.7.
    RenameResourceClass,
    /// `PUT /allocations/{consumer}`.
    Allocate {
        /// The consumer as the path spells it.
        consumer: &'a str,
    },
    /// `POST /allocations`.
    AllocateMany,
    /// `DELETE /allocations/{consumer}`.
    Deallocate,
    /// `POST /reshaper`.
    Reshape,
}
