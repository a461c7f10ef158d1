//! Every 404, a function for each thing that may be missing.

use std::fmt::Display;

use http::StatusCode;

use super::code;
use super::error::{ApiError, Varies, joined};

fn not_found(message: impl Into<String>, varies: Varies) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, code::UNDEFINED, message).varying(varies)
}

/// A path that does not exist at all, or not at this version (which varies).
pub(crate) fn path(varies: Varies) -> ApiError {
    not_found("", varies)
}

/// A resource provider. Whether the answer varies depends on the route, as in the reference.
pub(crate) fn provider(uuid: impl Display, varies: Varies) -> ApiError {
    not_found(
        format!("No resource provider with uuid {uuid} found"),
        varies,
    )
}

/// A resource provider that was to be deleted.
pub(crate) fn provider_to_delete(uuid: &str) -> ApiError {
    let message = format!("No resource provider with uuid {uuid} found for delete");
    not_found(message, Varies::Yes)
}

/// A resource provider whose allocations were to be listed.
pub(crate) fn provider_with_allocations(uuid: &str) -> ApiError {
    let message = format!(
        "Resource provider '{uuid}' not found: No resource provider with uuid {uuid} found"
    );
    not_found(message, Varies::Yes)
}

/// A provider's inventory of a class.
pub(crate) fn inventory(class: &str, provider: &str) -> ApiError {
    let message = format!("No inventory of class {class} for {provider}");
    not_found(message, Varies::Yes)
}

/// An inventory that was to be deleted.
pub(super) fn inventory_to_delete(class: &str, reason: &str) -> ApiError {
    let message = format!("No inventory of class {class} found for delete: {reason}");
    not_found(message, Varies::Yes)
}

/// A resource class.
pub(crate) fn resource_class(name: &str) -> ApiError {
    not_found(format!("No such resource class {name}."), Varies::No)
}

/// Traits.
pub(crate) fn traits(names: &[impl Display]) -> ApiError {
    let message = format!("No such trait(s): {}.", joined(names));
    not_found(message, Varies::Yes)
}

/// Allocations of a consumer, which were to be deleted.
pub(super) fn allocations(consumer: impl Display) -> ApiError {
    let message = format!("No allocations for consumer '{consumer}'");
    not_found(message, Varies::Yes)
}
