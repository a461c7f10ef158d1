//! The writes that errors distinguish.

use placement_model::types::ProviderUuid;

/// The kind of a refused write, on which the error depends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WriteKind<'a> {
    /// A `POST` of `/resource_providers`.
    CreateProvider { name: &'a str, uuid: ProviderUuid },
    /// A `PUT` of `/resource_providers/{uuid}`.
    UpdateProvider {
        uuid: ProviderUuid,
        /// Whether the request removes the parent rather than replacing it.
        clears_parent: bool,
    },
    /// A `DELETE` of `/resource_providers/{uuid}`.
    DeleteProvider,
    /// A `PUT` of `…/inventories`.
    ReplaceInventories { provider: ProviderUuid },
    /// A `POST` of `…/inventories`.
    CreateInventory { provider: ProviderUuid },
    /// A `PUT` of `…/inventories/{class}`.
    UpdateInventory,
    /// A `DELETE` of `…/inventories/{class}`.
    DeleteInventory,
    /// A `DELETE` of `…/inventories`.
    DeleteInventories,
    /// Writes to a provider's traits or aggregates.
    ChangeProvider,
    /// Writes to a trait.
    ChangeTrait,
    /// Writes to a resource class.
    ChangeResourceClass,
    /// A `PUT` of `/resource_classes/{name}` below 1.7.
    RenameResourceClass,
    /// A `PUT` of `/allocations/{consumer}`.
    Allocate { consumer: &'a str },
    /// A `POST` of `/allocations`.
    AllocateMany,
    /// A `DELETE` of `/allocations/{consumer}`.
    Deallocate,
    /// A `POST` of `/reshaper`.
    Reshape,
    /// A `POST` of `/placementd/v1/claims`.
    Claim,
    /// A `PUT` of `/placementd/v1/holds/{consumer}`.
    RenewHold,
    /// A `PUT` of `/placementd/v1/limits`.
    ReplaceLimits,
}
