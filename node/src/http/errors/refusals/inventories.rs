//! Refusals about inventories.

use placement_model::types::{Given, ProviderUuid, ResourceClassName};

use crate::http::errors::error::{ApiError, joined};
use crate::http::errors::write_kind::WriteKind;
use crate::http::errors::{code, not_found as missing};

pub(super) fn exists(provider: ProviderUuid, class: &ResourceClassName) -> ApiError {
    ApiError::conflict(
        code::CONCURRENT_UPDATE,
        format!(
            "Update conflict: resource provider {provider} has an inventory of {class} already. \
             Use PUT to change it."
        ),
    )
}

pub(super) fn not_found(
    write: WriteKind<'_>,
    provider: ProviderUuid,
    class: &ResourceClassName,
) -> ApiError {
    match write {
        WriteKind::DeleteInventory => {
            let reason = format!("resource provider {provider} has none");
            missing::inventory_to_delete(class.as_str(), &reason)
        }
        _ => ApiError::bad_request(format!(
            "No inventory record with resource class for resource provider {provider}: No \
             inventory of class {class} found. Use POST to create it."
        )),
    }
}

pub(super) fn in_use(
    write: WriteKind<'_>,
    provider: ProviderUuid,
    classes: &[ResourceClassName],
) -> ApiError {
    let classes = joined(classes);
    let fact = format!("Inventory for '{classes}' on resource provider '{provider}' in use.");
    match write {
        WriteKind::DeleteInventory => ApiError::conflict(
            code::CONCURRENT_UPDATE,
            format!("Unable to delete inventory of class {classes}: {fact}"),
        ),
        WriteKind::DeleteInventories => ApiError::conflict(code::INVENTORY_IN_USE, fact),
        _ => ApiError::conflict(code::INVENTORY_IN_USE, format!("update conflict: {fact}")),
    }
}

pub(super) fn capacity(
    write: WriteKind<'_>,
    provider: ProviderUuid,
    class: &Given<ResourceClassName>,
    may_reserve_all: bool,
) -> ApiError {
    let verb = match write {
        WriteKind::CreateInventory { .. } => "create",
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
