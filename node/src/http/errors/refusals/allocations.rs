//! Refusals about allocations and their consumers.

use placement_model::types::{ConsumerUuid, Generation, Given, ProviderUuid, ResourceClassName};

use crate::http::errors::error::{ApiError, joined};
use crate::http::errors::{code, not_found};

pub(super) fn provider_not_found(provider: &Given<ProviderUuid>) -> ApiError {
    ApiError::bad_request(format!(
        "Allocation for resource provider '{provider}' that does not exist."
    ))
}

pub(super) fn reshaped_provider_not_found(provider: &Given<ProviderUuid>) -> ApiError {
    ApiError::bad_request(format!(
        "Resource provider {provider} in inventories not found: No resource provider with uuid \
         {provider} found"
    ))
    .with_code(code::PROVIDER_NOT_FOUND)
}

pub(super) fn consumer_generation_conflict(
    consumer: &ConsumerUuid,
    given: Option<Generation>,
    actual: Option<Generation>,
) -> ApiError {
    let shown = |generation: Option<Generation>, none: &str| {
        generation.map_or(none.to_owned(), |generation| generation.to_string())
    };
    let (expected, got) = (shown(actual, "null"), shown(given, "None"));
    ApiError::conflict(
        code::CONCURRENT_UPDATE,
        format!(
            "consumer generation conflict - expected {expected} but got {got} (consumer \
             {consumer}). Read the consumer's allocations again, then try again."
        ),
    )
}

pub(super) fn none_to_delete(consumer: &ConsumerUuid) -> ApiError {
    not_found::allocations(consumer)
}

pub(super) fn without_inventory(
    classes: &[ResourceClassName],
    providers: &[ProviderUuid],
) -> ApiError {
    unable_to_allocate(&format!(
        "Inventory for '{}' on resource provider '{}' invalid. There is none.",
        joined(classes),
        joined(providers),
    ))
}

pub(super) fn violates_constraints(provider: ProviderUuid, class: &ResourceClassName) -> ApiError {
    unable_to_allocate(&format!(
        "Unable to create allocation for '{class}' on resource provider '{provider}'. The \
         requested amount would violate inventory constraints."
    ))
}

pub(super) fn exceeds_capacity(provider: ProviderUuid, class: &ResourceClassName) -> ApiError {
    unable_to_allocate(&format!(
        "Unable to create allocation for '{class}' on resource provider '{provider}'. The \
         requested amount would exceed the capacity."
    ))
}

fn unable_to_allocate(fact: &str) -> ApiError {
    ApiError::conflict(
        code::UNDEFINED,
        format!("Unable to allocate inventory: {fact}"),
    )
}
