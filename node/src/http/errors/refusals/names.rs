//! Refusals about resource classes and traits.

use placement_model::types::{Given, ResourceClassName, TraitName};

use crate::http::errors::error::{ApiError, joined};
use crate::http::errors::write_kind::WriteKind;
use crate::http::errors::{code, not_found};

/// What is said depends on where the class was named.
pub(super) fn class_not_found(write: WriteKind<'_>, name: &str) -> ApiError {
    let missing = format!("No such resource class {name}.");
    match write {
        WriteKind::ReplaceInventories { provider } => ApiError::bad_request(format!(
            "Unknown resource class in inventory for resource provider {provider}: {missing}"
        )),
        WriteKind::CreateInventory { provider } => ApiError::bad_request(format!(
            "Unable to create inventory for resource provider {provider}: {missing}"
        )),
        WriteKind::DeleteInventory => not_found::inventory_to_delete(name, &missing),
        WriteKind::Allocate { consumer } => ApiError::bad_request(format!(
            "Unable to allocate inventory for consumer {consumer}: {missing}"
        )),
        WriteKind::AllocateMany => {
            ApiError::bad_request(format!("Unable to allocate inventory {missing}"))
        }
        WriteKind::Reshape => ApiError::bad_request(format!("malformed reshaper data: {missing}")),
        _ => not_found::resource_class(name),
    }
}

pub(super) fn class_exists(write: WriteKind<'_>, name: &ResourceClassName) -> ApiError {
    let message = match write {
        WriteKind::RenameResourceClass => format!("Resource class already exists: {name}"),
        _ => format!("Conflicting resource class already exists: {name}"),
    };
    ApiError::conflict(code::UNDEFINED, message)
}

pub(super) fn class_in_use(name: &ResourceClassName) -> ApiError {
    ApiError::conflict(
        code::UNDEFINED,
        format!(
            "Error in delete resource class: Cannot delete resource class {name}. Class is in use \
             in inventory."
        ),
    )
}

pub(super) fn class_is_standard(name: &ResourceClassName) -> ApiError {
    ApiError::bad_request(format!(
        "Error in delete resource class: Cannot delete standard resource class {name}."
    ))
}

pub(super) fn class_keeps_its_name(name: &ResourceClassName) -> ApiError {
    ApiError::bad_request(format!("Cannot update standard resource class {name}"))
}

pub(super) fn traits_not_found(write: WriteKind<'_>, names: &[Given<TraitName>]) -> ApiError {
    match write {
        WriteKind::ChangeProvider => {
            ApiError::bad_request(format!("No such trait {}", joined(names)))
        }
        _ => not_found::traits(names),
    }
}

pub(super) fn trait_in_use(name: &TraitName) -> ApiError {
    ApiError::conflict(
        code::UNDEFINED,
        format!("The trait {name} is in use by a resource provider."),
    )
}

pub(super) fn trait_is_standard(name: &TraitName) -> ApiError {
    ApiError::bad_request(format!("Cannot delete standard trait {name}."))
}
