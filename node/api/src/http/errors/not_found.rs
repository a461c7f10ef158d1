//! Every 404, a function for each thing that may be missing.

use std::fmt::Display;

use http::StatusCode;

use super::code;
use super::error::{ApiError, Varies, joined};

fn not_found(message: String) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, code::UNDEFINED, message)
}

/// A path that does not exist at all, or not at this version (which varies).
pub(crate) fn path(varies: Varies) -> ApiError {
    not_found(String::new()).varying(varies)
}

/// A resource provider. Whether the answer varies depends on the route, as in the reference.
pub(crate) fn provider(uuid: impl Display, varies: Varies) -> ApiError {
    not_found(format!("No resource provider with uuid {uuid} found")).varying(varies)
}

/// A resource provider that was to be deleted.
pub(crate) fn provider_to_delete(uuid: impl Display) -> ApiError {
    not_found(format!(
        "No resource provider with uuid {uuid} found for delete"
    ))
}

/// A resource provider whose allocations were to be listed.
pub(crate) fn provider_with_allocations(uuid: &str) -> ApiError {
    not_found(format!(
        "Resource provider '{uuid}' not found: No resource provider with uuid {uuid} found"
    ))
}

/// A provider's inventory of a class.
pub(crate) fn inventory(class: &str, provider: &str) -> ApiError {
    not_found(format!("No inventory of class {class} for {provider}"))
}

/// An inventory that was to be deleted.
pub(super) fn inventory_to_delete(class: impl Display, reason: &str) -> ApiError {
    not_found(format!(
        "No inventory of class {class} found for delete: {reason}"
    ))
}

/// A resource class.
pub(crate) fn resource_class(name: impl Display) -> ApiError {
    not_found(format!("No such resource class {name}.")).varying(Varies::No)
}

/// Traits.
pub(crate) fn traits(names: &[impl Display]) -> ApiError {
    not_found(format!("No such trait(s): {}.", joined(names)))
}

/// Allocations of a consumer, which were to be deleted.
pub(super) fn allocations(consumer: impl Display) -> ApiError {
    not_found(format!("No allocations for consumer '{consumer}'"))
}
