//! The handlers, a file per noun of the API.

use placement_model::types::Generation;

use super::wire::json::Json;

pub(in crate::http) mod aggregates;
pub(in crate::http) mod allocation_candidates;
pub(in crate::http) mod allocations;
pub(in crate::http) mod inventories;
pub(in crate::http) mod reshaper;
pub(in crate::http) mod resource_classes;
pub(in crate::http) mod resource_providers;
pub(in crate::http) mod root;
pub(in crate::http) mod traits;
pub(in crate::http) mod usages;

/// The generation of a provider that the client last saw, if the body gives one.
fn given_generation(body: &Json) -> Option<Generation> {
    let given = body.get("resource_provider_generation");
    given.and_then(Json::integer).map(Generation)
}
