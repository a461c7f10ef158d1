//! Every 404: one function per kind of missing object.

use std::fmt::Display;

use http::StatusCode;
use placement_model::types::ConsumerUuid;

use super::code;
use super::error::{ApiError, Varies, joined};

fn not_found(message: String) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, code::UNDEFINED, message)
}

/// An unknown path, or a path that this microversion does not have (then `varies` is `Yes`).
pub(crate) fn path(varies: Varies) -> ApiError {
    not_found(String::new()).varying(varies)
}

/// A missing resource provider. Whether the answer varies depends on the route, as in the
/// reference.
pub(crate) fn provider(uuid: impl Display, varies: Varies) -> ApiError {
    not_found(format!("No resource provider with uuid {uuid} found")).varying(varies)
}

/// A missing resource provider in a deletion.
pub(crate) fn provider_to_delete(uuid: impl Display) -> ApiError {
    not_found(format!(
        "No resource provider with uuid {uuid} found for delete"
    ))
}

/// A missing resource provider in a listing of its allocations.
pub(crate) fn provider_with_allocations(uuid: &str) -> ApiError {
    not_found(format!(
        "Resource provider '{uuid}' not found: No resource provider with uuid {uuid} found"
    ))
}

/// A missing inventory of a provider.
pub(crate) fn inventory(class: &str, provider: &str) -> ApiError {
    not_found(format!("No inventory of class {class} for {provider}"))
}

/// A missing inventory in a deletion.
pub(super) fn inventory_to_delete(class: impl Display, reason: &str) -> ApiError {
    not_found(format!(
        "No inventory of class {class} found for delete: {reason}"
    ))
}

/// A missing resource class.
pub(crate) fn resource_class(name: impl Display) -> ApiError {
    not_found(format!("No such resource class {name}.")).varying(Varies::No)
}

/// Missing traits, listed in the message.
pub(crate) fn traits(names: &[impl Display]) -> ApiError {
    not_found(format!("No such trait(s): {}.", joined(names)))
}

/// A consumer without allocations in a deletion.
pub(super) fn allocations(consumer: impl Display) -> ApiError {
    not_found(format!("No allocations for consumer '{consumer}'"))
}

/// A consumer that has no hold, or no longer.
pub(crate) fn hold(consumer: &ConsumerUuid) -> ApiError {
    not_found(format!(
        "Consumer {consumer} has no hold. If it had one, its lease or a write has ended it."
    ))
    .with_code(code::NO_HOLD)
}
