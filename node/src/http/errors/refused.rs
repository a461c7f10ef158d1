//! What a client hears when the model refuses: the one table that makes errors of refusals.

use http::StatusCode;
use placement_model::Refusal;
use placement_model::types::{ProviderUuid, ResourceClassName};

use super::{ApiError, code};
use crate::http::unnameable::Unnameable;

/// What a write was about to do, as far as its errors speak of it.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) enum Doing<'a> {
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

/// What a client hears when the model refuses: the whole table.
pub(in crate::http) fn refused(doing: Doing<'_>, refusal: Refusal, names: &Unnameable) -> ApiError {
    match refusal {
        Refusal::ProviderNotFound(uuid) => provider_not_found(doing, uuid),
        Refusal::AllocationProviderNotFound(provider) => ApiError::bad_request(format!(
            "Allocation for resource provider '{provider}' that does not exist."
        )),
        Refusal::ReshapeProviderNotFound(provider) => ApiError::bad_request(format!(
            "Resource provider {provider} in inventories not found: No resource provider with \
             uuid {provider} found"
        ))
        .with_code(code::PROVIDER_NOT_FOUND),
        Refusal::DuplicateProviderUuid(uuid) => ApiError::conflict(
            code::DUPLICATE_NAME,
            format!("Conflicting resource provider uuid: {uuid} already exists."),
        ),
        Refusal::DuplicateProviderName(name) => ApiError::conflict(
            code::DUPLICATE_NAME,
            match doing {
                Doing::UpdateProvider { .. } => {
                    format!("Conflicting resource provider {name} already exists.")
                }
                _ => format!("Conflicting resource provider name: {name} already exists."),
            },
        ),
        Refusal::ParentNotFound(_) => {
            bad_provider(doing, "create", "parent provider UUID does not exist.")
        }
        Refusal::ParentLoop(_) => match doing {
            Doing::CreateProvider { .. } => bad_provider(
                doing,
                "create",
                "parent provider UUID cannot be same as UUID. Please set parent provider UUID to \
                 None if there is no parent.",
            ),
            _ => bad_provider(
                doing,
                "update",
                "creating loop in the provider tree is not allowed.",
            ),
        },
        Refusal::ReparentForbidden(_) => match doing {
            Doing::UpdateProvider {
                clears_parent: true,
                ..
            } => bad_provider(
                doing,
                "update",
                "un-parenting a provider is not currently allowed. Microversion 1.37 allows it.",
            ),
            _ => bad_provider(
                doing,
                "update",
                "re-parenting a provider is not currently allowed. Microversion 1.37 allows it.",
            ),
        },
        Refusal::ProviderHasChildren(uuid) => ApiError::conflict(
            code::PROVIDER_HAS_CHILDREN,
            format!(
                "Unable to delete parent resource provider {uuid}: It has child resource \
                 providers. Delete those first."
            ),
        ),
        Refusal::ProviderInUse(uuid) => ApiError::conflict(
            code::PROVIDER_IN_USE,
            format!(
                "Unable to delete resource provider {uuid}: Resource provider has allocations."
            ),
        ),
        Refusal::ProviderGenerationConflict {
            provider,
            given,
            actual,
        } => {
            let detail = match doing {
                Doing::ChangeProvider => format!(
                    "Resource provider's generation already changed. Please update the \
                     generation and try again. (actual: {actual}, given: {given})"
                ),
                _ => format!(
                    "resource provider generation conflict for provider {provider}: actual: \
                     {actual}, given: {given}. Read the provider again, then try again."
                ),
            };
            ApiError::conflict(code::CONCURRENT_UPDATE, detail)
        }
        Refusal::ResourceClassNotFound(name) => {
            class_not_found(doing, names.spelled(name.as_str()))
        }
        Refusal::ResourceClassExists(name) => ApiError::conflict(
            code::UNDEFINED,
            match doing {
                Doing::RenameResourceClass => format!("Resource class already exists: {name}"),
                _ => format!("Conflicting resource class already exists: {name}"),
            },
        ),
        Refusal::ResourceClassInUse(name) => ApiError::conflict(
            code::UNDEFINED,
            format!(
                "Error in delete resource class: Cannot delete resource class {name}. Class is \
                 in use in inventory."
            ),
        ),
        Refusal::ResourceClassStandardDelete(name) => ApiError::bad_request(format!(
            "Error in delete resource class: Cannot delete standard resource class {name}."
        )),
        Refusal::ResourceClassStandardUpdate(name) => {
            ApiError::bad_request(format!("Cannot update standard resource class {name}"))
        }
        Refusal::TraitsNotFound(traits) => {
            let traits = traits.iter().map(|name| names.spelled(name.as_str()));
            traits_not_found(doing, &traits.collect::<Vec<_>>())
        }
        Refusal::TraitInUse(name) => ApiError::conflict(
            code::UNDEFINED,
            format!("The trait {name} is in use by a resource provider."),
        ),
        Refusal::TraitStandard(name) => {
            ApiError::bad_request(format!("Cannot delete standard trait {name}."))
        }
        Refusal::InventoryExists {
            provider,
            resource_class,
        } => ApiError::conflict(
            code::CONCURRENT_UPDATE,
            format!(
                "Update conflict: resource provider {provider} has an inventory of \
                 {resource_class} already. Use PUT to change it."
            ),
        ),
        Refusal::InventoryNotFound {
            provider,
            resource_class,
        } => match doing {
            Doing::DeleteInventory => ApiError::not_found(format!(
                "No inventory of class {resource_class} found for delete: resource provider \
                 {provider} has none"
            )),
            _ => ApiError::bad_request(format!(
                "No inventory record with resource class for resource provider {provider}: No \
                 inventory of class {resource_class} found. Use POST to create it."
            )),
        },
        Refusal::InventoryInUse {
            provider,
            resource_classes,
        } => inventory_in_use(doing, provider, &resource_classes),
        Refusal::InventoryCapacity {
            provider,
            resource_class,
            may_reserve_all,
        } => inventory_capacity(doing, provider, &resource_class, may_reserve_all),
        Refusal::ConsumerGenerationConflict {
            consumer,
            given,
            actual,
        } => {
            let shown = |generation: Option<_>, none: &str| {
                generation.map_or(
                    none.to_owned(),
                    |generation: placement_model::types::Generation| generation.to_string(),
                )
            };
            ApiError::conflict(
                code::CONCURRENT_UPDATE,
                format!(
                    "consumer generation conflict - expected {} but got {} (consumer {consumer}). \
                     Read the consumer's allocations again, then try again.",
                    shown(actual, "null"),
                    shown(given, "None"),
                ),
            )
        }
        Refusal::ConsumerHasNoAllocations(consumer) => {
            ApiError::not_found(format!("No allocations for consumer '{consumer}'"))
        }
        Refusal::AllocationWithoutInventory {
            resource_classes,
            providers,
        } => {
            let providers: Vec<String> = providers.iter().map(ToString::to_string).collect();
            unable_to_allocate(format!(
                "Inventory for '{}' on resource provider '{}' invalid. There is none.",
                join(&resource_classes),
                providers.join(", "),
            ))
        }
        Refusal::AllocationConstraints {
            provider,
            resource_class,
        } => unable_to_allocate(format!(
            "Unable to create allocation for '{resource_class}' on resource provider \
                 '{provider}'. The requested amount would violate inventory constraints."
        )),
        Refusal::AllocationCapacity {
            provider,
            resource_class,
        } => unable_to_allocate(format!(
            "Unable to create allocation for '{resource_class}' on resource provider \
             '{provider}'. The requested amount would exceed the capacity."
        )),
        Refusal::IdsExhausted => ApiError {
            retry_after_s: Some(3600),
            ..ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                code::UNDEFINED,
                refusal.to_string(),
            )
        },
    }
}

fn provider_not_found(doing: Doing<'_>, uuid: ProviderUuid) -> ApiError {
    match doing {
        Doing::DeleteProvider => no_provider_to_delete(&uuid.to_string()),
        _ => ApiError::nothing_here(format!("No resource provider with uuid {uuid} found")),
    }
}

/// 404 of a provider that was to be deleted.
pub(in crate::http) fn no_provider_to_delete(uuid: &str) -> ApiError {
    ApiError::not_found(format!(
        "No resource provider with uuid {uuid} found for delete"
    ))
}

/// 400 of a provider that cannot be as it was asked for. `action` is the reference's word for what
/// failed.
fn bad_provider(doing: Doing<'_>, action: &str, reason: &str) -> ApiError {
    let reason = format!("Object action {action} failed because: {reason}");
    ApiError::bad_request(match doing {
        Doing::CreateProvider { name, uuid } => {
            format!("Unable to create resource provider \"{name}\", {uuid}: {reason}")
        }
        Doing::UpdateProvider { uuid, .. } => {
            format!("Unable to save resource provider {uuid}: {reason}")
        }
        _ => reason,
    })
}

/// 400 of a provider with an empty name.
pub(in crate::http) fn provider_without_name(uuid: ProviderUuid) -> ApiError {
    bad_provider(
        Doing::CreateProvider { name: "", uuid },
        "create",
        "name is required",
    )
}

/// What is said of a resource class that does not exist, depending on where it was named.
pub(in crate::http) fn class_not_found(doing: Doing<'_>, name: &str) -> ApiError {
    let missing = format!("No such resource class {name}.");
    match doing {
        Doing::ReplaceInventories { provider } => ApiError::bad_request(format!(
            "Unknown resource class in inventory for resource provider {provider}: {missing}"
        )),
        Doing::CreateInventory { provider } => ApiError::bad_request(format!(
            "Unable to create inventory for resource provider {provider}: {missing}"
        )),
        Doing::DeleteInventory => ApiError::not_found(format!(
            "No inventory of class {name} found for delete: {missing}"
        )),
        Doing::Allocate { consumer } => ApiError::bad_request(format!(
            "Unable to allocate inventory for consumer {consumer}: {missing}"
        )),
        Doing::AllocateMany => {
            ApiError::bad_request(format!("Unable to allocate inventory {missing}"))
        }
        Doing::Reshape => ApiError::bad_request(format!("malformed reshaper data: {missing}")),
        _ => ApiError::nothing_here(missing),
    }
}

/// What is said of traits that do not exist.
pub(in crate::http) fn traits_not_found(doing: Doing<'_>, names: &[&str]) -> ApiError {
    let names = names.join(", ");
    match doing {
        Doing::ChangeProvider => ApiError::bad_request(format!("No such trait {names}")),
        _ => ApiError::not_found(format!("No such trait(s): {names}.")),
    }
}

fn join(names: &[ResourceClassName]) -> String {
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    names.join(", ")
}

fn inventory_in_use(
    doing: Doing<'_>,
    provider: ProviderUuid,
    classes: &[ResourceClassName],
) -> ApiError {
    let classes = join(classes);
    let fact = format!("Inventory for '{classes}' on resource provider '{provider}' in use.");
    match doing {
        Doing::DeleteInventory => ApiError::conflict(
            code::CONCURRENT_UPDATE,
            format!("Unable to delete inventory of class {classes}: {fact}"),
        ),
        Doing::DeleteInventories => ApiError::conflict(code::INVENTORY_IN_USE, fact),
        _ => ApiError::conflict(code::INVENTORY_IN_USE, format!("update conflict: {fact}")),
    }
}

fn inventory_capacity(
    doing: Doing<'_>,
    provider: ProviderUuid,
    class: &ResourceClassName,
    may_reserve_all: bool,
) -> ApiError {
    let verb = match doing {
        Doing::CreateInventory { .. } => "create",
        _ => "update",
    };
    let limit = if may_reserve_all {
        "greater than"
    } else {
        "greater than or equal to"
    };
    ApiError::bad_request(format!(
        "Unable to {verb} inventory for resource provider {provider}: Invalid inventory for \
         '{class}' on resource provider '{provider}'. The reserved value is {limit} total."
    ))
}

fn unable_to_allocate(fact: String) -> ApiError {
    ApiError::conflict(
        code::UNDEFINED,
        format!("Unable to allocate inventory: {fact}"),
    )
}
