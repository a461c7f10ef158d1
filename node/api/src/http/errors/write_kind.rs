//! The writes that errors tell apart.

use placement_model::types::ProviderUuid;

/// Which write was refused, as far as its errors depend on it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WriteKind<'a> {
    /// `POST /resource_providers`.
    CreateProvider { name: &'a str, uuid: ProviderUuid },
    /// `PUT /resource_providers/{uuid}`.
    UpdateProvider {
        uuid: ProviderUuid,
        /// Whether the parent was to be removed rather than replaced.
        clears_parent: bool,
    },
    /// `DELETE /resource_providers/{uuid}`.
    DeleteProvider,
    /// `PUT …/inventories`.
    ReplaceInventories { provider: ProviderUuid },
    /// `POST …/inventories`.
    CreateInventory { provider: ProviderUuid },
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
    Allocate { consumer: &'a str },
    /// `POST /allocations`.
    AllocateMany,
    /// `DELETE /allocations/{consumer}`.
    Deallocate,
    /// `POST /reshaper`.
    Reshape,
}
