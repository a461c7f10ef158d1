//! The writes that errors distinguish.

use placement_model::types::ProviderUuid;

/// The write that was refused, as far as errors depend on it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WriteKind<'a> {
    /// `POST /resource_providers`.
    CreateProvider { name: &'a str, uuid: ProviderUuid },
    /// `PUT /resource_providers/{uuid}`.
    UpdateProvider {
        uuid: ProviderUuid,
        /// Whether the request removes the parent rather than replacing it.
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
    /// Writes to a provider's traits or aggregates.
    ChangeProvider,
    /// Writes to a trait.
    ChangeTrait,
    /// Writes to a resource class.
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
