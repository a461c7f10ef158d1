//! Maps the model's refusals to errors. Some refusals whose text depends on the request have a
//! function of their own.

use std::fmt::Display;

use http::StatusCode;
use placement_model::Refusal;
use placement_model::types::{LimitExcess, ProviderUuid};

use super::error::{ApiError, Varies, joined};
use super::write_kind::WriteKind;
use super::{claims, code, not_found};

/// Maps a refusal of a write to an error.
pub(crate) fn refused(write: WriteKind<'_>, refusal: Refusal) -> ApiError {
    let conflict = |message: String| ApiError::conflict(message);
    let unable = |fact: String| conflict(format!("Unable to allocate inventory: {fact}"));
    let bad = |message: String| ApiError::bad_request(message);
    match refusal {
        Refusal::ProviderNotFound(uuid) => match write {
            WriteKind::DeleteProvider => not_found::provider_to_delete(uuid),
            _ => not_found::provider(uuid, Varies::No),
        },
        Refusal::DuplicateProviderUuid(uuid) => conflict(format!(
            "Conflicting resource provider uuid: {uuid} already exists."
        ))
        .with_code(code::DUPLICATE_NAME),
        Refusal::DuplicateProviderName(name) => conflict(match write {
            WriteKind::UpdateProvider { .. } => {
                format!("Conflicting resource provider {name} already exists.")
            }
            _ => format!("Conflicting resource provider name: {name} already exists."),
        })
        .with_code(code::DUPLICATE_NAME),
        Refusal::ParentNotFound(_) => {
            action_failed(write, "create", "parent provider UUID does not exist.")
        }
        Refusal::ParentLoop(_) => parent_loop(write),
        Refusal::ReparentForbidden(_) => {
            let verb = match write {
                WriteKind::UpdateProvider { clears_parent, .. } if clears_parent => "un-parenting",
                _ => "re-parenting",
            };
            let reason = "a provider is not currently allowed. Microversion 1.37 allows it.";
            action_failed(write, "update", &format!("{verb} {reason}"))
        }
        Refusal::ProviderHasChildren(uuid) => conflict(format!(
            "Unable to delete parent resource provider {uuid}: It has child resource providers. \
             Delete those first."
        ))
        .with_code(code::PROVIDER_HAS_CHILDREN),
        Refusal::ProviderInUse(uuid) => conflict(format!(
            "Unable to delete resource provider {uuid}: Resource provider has allocations."
        ))
        .with_code(code::PROVIDER_IN_USE),
        Refusal::ProviderGenerationConflict {
            provider,
            given,
            actual,
        } => conflict(match write {
            WriteKind::ChangeProvider => format!(
                "Resource provider's generation already changed. Please update the generation and try \
                 again. (actual: {actual}, given: {given})"
            ),
            _ => format!(
                "resource provider generation conflict for provider {provider}: actual: {actual}, \
                 given: {given}. Read the provider again, then try again."
            ),
        })
        .with_code(code::CONCURRENT_UPDATE),

        Refusal::ResourceClassNotFound(name) => class_not_found(write, name),
        Refusal::ResourceClassExists(name) => conflict(match write {
            WriteKind::RenameResourceClass => format!("Resource class already exists: {name}"),
            _ => format!("Conflicting resource class already exists: {name}"),
        }),
        Refusal::ResourceClassInUse(name) => conflict(format!(
            "Error in delete resource class: Cannot delete resource class {name}. Class is in use in inventory."
        )),
        Refusal::ResourceClassStandardDelete(name) => bad(format!(
            "Error in delete resource class: Cannot delete standard resource class {name}."
        )),
        Refusal::ResourceClassStandardUpdate(name) => {
            bad(format!("Cannot update standard resource class {name}"))
        }
        Refusal::TraitsNotFound(names) => match write {
            WriteKind::ChangeProvider => bad(format!("No such trait {}", joined(&names))),
            _ => not_found::traits(&names),
        },
        Refusal::TraitInUse(name) => conflict(format!(
            "The trait {name} is in use by a resource provider."
        )),
        Refusal::TraitStandard(name) => {
            bad(format!("Cannot delete standard trait {name}."))
        }

        Refusal::InventoryExists(provider, resource_class) => conflict(format!(
            "Update conflict: resource provider {provider} has an inventory of {resource_class} already. Use PUT to \
             change it."
        ))
        .with_code(code::CONCURRENT_UPDATE),
        Refusal::InventoryNotFound(provider, resource_class) => match write {
            WriteKind::DeleteInventory => {
                let reason = format!("resource provider {provider} has none");
                not_found::inventory_to_delete(resource_class, &reason)
            }
            _ => bad(format!(
                "No inventory record with resource class for resource provider {provider}: No \
                 inventory of class {resource_class} found. Use POST to create it."
            )),
        },
        Refusal::InventoryInUse(provider, resource_classes) => {
            let classes = joined(&resource_classes);
            let fact = format!("Inventory for '{classes}' on resource provider '{provider}' in use.");
            let (code, message) = match write {
                WriteKind::DeleteInventory => (
                    code::CONCURRENT_UPDATE,
                    format!("Unable to delete inventory of class {classes}: {fact}"),
                ),
                WriteKind::DeleteInventories => (code::INVENTORY_IN_USE, fact),
                _ => (code::INVENTORY_IN_USE, format!("update conflict: {fact}")),
            };
            conflict(message).with_code(code)
        }
        Refusal::InventoryCapacity {
            provider,
            resource_class,
            may_reserve_all,
        } => {
            let verb = match write {
                WriteKind::CreateInventory { .. } => "create",
                _ => "update",
            };
            let limit = if may_reserve_all { "greater than" } else { "greater than or equal to" };
            bad(format!(
                "Unable to {verb} inventory for resource provider {provider}: Invalid inventory for \
                 '{resource_class}' on resource provider '{provider}'. The reserved value is {limit} total."
            ))
        }

        Refusal::AllocationProviderNotFound(provider) => bad(format!(
            "Allocation for resource provider '{provider}' that does not exist."
        )),
        Refusal::ReshapeProviderNotFound(provider) => bad(format!(
            "Resource provider {provider} in inventories not found: No resource provider with uuid \
             {provider} found"
        ))
        .with_code(code::PROVIDER_NOT_FOUND),
        Refusal::ConsumerGenerationConflict {
            consumer,
            given,
            actual,
        } => {
            let expected = actual.map_or("null".to_owned(), |actual| actual.to_string());
            let got = given.map_or("None".to_owned(), |given| given.to_string());
            conflict(format!(
                "consumer generation conflict - expected {expected} but got {got} (consumer {consumer}). Read the \
                 consumer's allocations again, then try again."
            ))
            .with_code(code::CONCURRENT_UPDATE)
        }
        Refusal::ConsumerHasNoAllocations(consumer) => not_found::allocations(consumer),
        Refusal::AllocationWithoutInventory(resource_classes, providers) => unable(format!(
            "Inventory for '{}' on resource provider '{}' invalid. It does not exist.",
            joined(&resource_classes),
            joined(&providers),
        )),
        Refusal::AllocationConstraints(provider, resource_class) => unable(format!(
            "Unable to create allocation for '{resource_class}' on resource provider '{provider}'. The \
             requested amount would violate inventory constraints."
        )),
        Refusal::AllocationCapacity(provider, resource_class) => unable(format!(
            "Unable to create allocation for '{resource_class}' on resource provider '{provider}'. The \
             requested amount would exceed the capacity."
        )),

        Refusal::IdsExhausted => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            ApiError::new(status, code::UNDEFINED, refusal.to_string())
        }
        // On a retry, the name refers to the current partition, or to no partition.
        Refusal::PartitionGone(_) => {
            let message = format!("The partition was deleted: {refusal}. Nothing was committed.");
            ApiError::unavailable(code::NO_PARTITION, message)
        }
        // On a retry the request is routed again.
        Refusal::RoutesChanged(_) => placement_base::backend::Unavailable::Rerouted.into(),
        // Refusals of operators' commands, which no request of the API causes.
        Refusal::PartitionNotFound(_)
        | Refusal::PartitionExists(_)
        | Refusal::PartitionInUse(_)
        | Refusal::PartitionDefault
        | Refusal::RouteTaken { .. }
        | Refusal::DefaultWithoutHost
        | Refusal::DefaultPrefix
        | Refusal::PartitionsExhausted
        | Refusal::PartitionRouted(_)
        | Refusal::PartitionNotEmpty { .. }
        | Refusal::ProviderUnfit(..)
        | Refusal::ConsumerUnfit(..) => conflict(refusal.to_string()),

        Refusal::ClaimRefused(choices) => claims::no_room(&choices),
        Refusal::OverCeiling {
            ceiling,
            used,
            requested,
            limit,
        } => claims::over_ceiling(ceiling, used, requested, limit),
        Refusal::GroupBroken {
            group,
            root,
            members,
        } => claims::group(group, root, members),
        Refusal::HoldNotFound(consumer) => not_found::hold(&consumer),
        Refusal::HoldIsDue(consumer) => conflict(format!(
            "The hold of consumer {consumer} has a due time. Give another due time, or delete its \
             allocations."
        ))
        .with_code(code::HOLD_IS_DUE),
        Refusal::TooManyHolds(consumer) => conflict(format!(
            "More than 100 holds would be kept for consumer {consumer}. Delete the allocations of \
             holds that are no longer needed."
        ))
        .with_code(code::TOO_MANY_HOLDS),
        Refusal::OverLimit(excess) => project_over_limit(&excess),
        Refusal::LimitsGenerationConflict { given, actual } => conflict(format!(
            "limits generation conflict: actual: {actual}, given: {given}. Read the limits again, \
             then try again."
        ))
        .with_code(code::CONCURRENT_UPDATE),
    }
}

fn project_over_limit(excess: &LimitExcess) -> ApiError {
    let LimitExcess {
        project,
        resource,
        used,
        requested,
        limit,
    } = excess;
    ApiError::conflict(format!(
        "Project {project} is at its limit of {resource}: {used} used, {requested} after this \
         write, limit {limit}."
    ))
    .with_code(code::PROJECT_OVER_LIMIT)
}

fn parent_loop(write: WriteKind<'_>) -> ApiError {
    let (action, reason) = match write {
        WriteKind::CreateProvider { .. } => (
            "create",
            "parent provider UUID cannot be same as UUID. Please set parent provider UUID to None \
             if there is no parent.",
        ),
        _ => (
            "update",
            "creating loop in the provider tree is not allowed.",
        ),
    };
    action_failed(write, action, reason)
}

/// The error for a new provider with an empty name.
pub(crate) fn provider_without_name(uuid: ProviderUuid) -> ApiError {
    let write = WriteKind::CreateProvider { name: "", uuid };
    action_failed(write, "create", "name is required")
}

/// 400. `action` is the reference's term for the failed action.
fn action_failed(write: WriteKind<'_>, action: &str, reason: &str) -> ApiError {
    let reason = format!("Object action {action} failed because: {reason}");
    ApiError::bad_request(match write {
        WriteKind::CreateProvider { name, uuid } => {
            format!("Unable to create resource provider \"{name}\", {uuid}: {reason}")
        }
        WriteKind::UpdateProvider { uuid, .. } => {
            format!("Unable to save resource provider {uuid}: {reason}")
        }
        _ => reason,
    })
}

fn class_not_found(write: WriteKind<'_>, name: impl Display) -> ApiError {
    let missing = format!("No such resource class {name}.");
    ApiError::bad_request(match write {
        WriteKind::ReplaceInventories { provider } => format!(
            "Unknown resource class in inventory for resource provider {provider}: {missing}"
        ),
        WriteKind::CreateInventory { provider } => {
            format!("Unable to create inventory for resource provider {provider}: {missing}")
        }
        WriteKind::Allocate { consumer } => {
            format!("Unable to allocate inventory for consumer {consumer}: {missing}")
        }
        WriteKind::AllocateMany => format!("Unable to allocate inventory {missing}"),
        WriteKind::Reshape => format!("malformed reshaper data: {missing}"),
        WriteKind::DeleteInventory => return not_found::inventory_to_delete(name, &missing),
        _ => return not_found::resource_class(name),
    })
}
