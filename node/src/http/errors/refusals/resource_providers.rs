//! Refusals about resource providers.

use placement_model::types::{Generation, ProviderName, ProviderUuid};

use crate::http::errors::error::{ApiError, Varies};
use crate::http::errors::write_kind::WriteKind;
use crate::http::errors::{code, not_found as missing};

pub(super) fn not_found(write: WriteKind<'_>, uuid: ProviderUuid) -> ApiError {
    match write {
        WriteKind::DeleteProvider => missing::provider_to_delete(&uuid.to_string()),
        _ => missing::provider(uuid, Varies::No),
    }
}

pub(super) fn duplicate_uuid(uuid: ProviderUuid) -> ApiError {
    ApiError::conflict(
        code::DUPLICATE_NAME,
        format!("Conflicting resource provider uuid: {uuid} already exists."),
    )
}

pub(super) fn duplicate_name(write: WriteKind<'_>, name: &ProviderName) -> ApiError {
    let message = match write {
        WriteKind::UpdateProvider { .. } => {
            format!("Conflicting resource provider {name} already exists.")
        }
        _ => format!("Conflicting resource provider name: {name} already exists."),
    };
    ApiError::conflict(code::DUPLICATE_NAME, message)
}

pub(super) fn parent_not_found(write: WriteKind<'_>) -> ApiError {
    action_failed(write, "create", "parent provider UUID does not exist.")
}

pub(super) fn parent_loop(write: WriteKind<'_>) -> ApiError {
    match write {
        WriteKind::CreateProvider { .. } => action_failed(
            write,
            "create",
            "parent provider UUID cannot be same as UUID. Please set parent provider UUID to None \
             if there is no parent.",
        ),
        _ => action_failed(
            write,
            "update",
            "creating loop in the provider tree is not allowed.",
        ),
    }
}

pub(super) fn reparent_forbidden(write: WriteKind<'_>) -> ApiError {
    let reason = match write {
        WriteKind::UpdateProvider {
            clears_parent: true,
            ..
        } => "un-parenting a provider is not currently allowed. Microversion 1.37 allows it.",
        _ => "re-parenting a provider is not currently allowed. Microversion 1.37 allows it.",
    };
    action_failed(write, "update", reason)
}

pub(super) fn has_children(uuid: ProviderUuid) -> ApiError {
    ApiError::conflict(
        code::PROVIDER_HAS_CHILDREN,
        format!(
            "Unable to delete parent resource provider {uuid}: It has child resource providers. \
             Delete those first."
        ),
    )
}

pub(super) fn in_use(uuid: ProviderUuid) -> ApiError {
    ApiError::conflict(
        code::PROVIDER_IN_USE,
        format!("Unable to delete resource provider {uuid}: Resource provider has allocations."),
    )
}

pub(super) fn generation_conflict(
    write: WriteKind<'_>,
    provider: ProviderUuid,
    given: Generation,
    actual: Generation,
) -> ApiError {
    let message = match write {
        WriteKind::ChangeProvider => format!(
            "Resource provider's generation already changed. Please update the generation and try \
             again. (actual: {actual}, given: {given})"
        ),
        _ => format!(
            "resource provider generation conflict for provider {provider}: actual: {actual}, \
             given: {given}. Read the provider again, then try again."
        ),
    };
    ApiError::conflict(code::CONCURRENT_UPDATE, message)
}

/// A new provider with an empty name.
pub(in crate::http) fn without_name(uuid: ProviderUuid) -> ApiError {
    let write = WriteKind::CreateProvider { name: "", uuid };
    action_failed(write, "create", "name is required")
}

/// 400. `action` is the reference's word for what failed.
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
