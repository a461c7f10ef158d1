//! The handlers, a file per noun of the API.

use std::fmt::Display;

use placement_model::types::Generation;

use serde::Serialize;

use super::errors::ApiError;
use super::wire::json::Json;

pub(crate) mod aggregates;
pub(crate) mod allocation_candidates;
pub(crate) mod allocations;
pub(crate) mod inventories;
pub(crate) mod reshaper;
pub(crate) mod resource_classes;
pub(crate) mod resource_providers;
pub(crate) mod root;
pub(crate) mod traits;
pub(crate) mod usages;

/// The generation of a provider that the client last saw, if the body gives one.
fn given_generation(body: &Json) -> Option<Generation> {
    let given = body.get("resource_provider_generation");
    given.and_then(Json::integer).map(Generation)
}

/// A link in an answer.
#[derive(Serialize)]
struct Link {
    rel: &'static str,
    href: String,
}

/// 400 of a body that has the right shape and a name in it that has not.
fn invalid_json(error: impl Display) -> ApiError {
    ApiError::bad_request(format!("JSON does not validate: {error}"))
}
