//! What a body or a query string must look like, per microversion.
//!
//! A schema is a value that is made once; [`Schema::check`] names the place of what is wrong and
//! what would be right, in the phrases of JSON Schema validators that clients know.

mod allocations;
mod check;
mod inventories;
mod json_schema;
mod kind;
mod names;
mod pattern;
mod problem;
mod queries;
mod reshaper;
mod resource_providers;

pub(super) use allocations::{post_allocations, put_allocations};
pub(super) use inventories::{post_inventory, put_inventories, put_inventory};
pub(super) use kind::Schema;
pub(super) use names::{aggregates, provider_traits, resource_class};
pub(super) use queries::{candidates_query, providers_query, traits_query, usages_query};
pub(super) use reshaper::reshaper;
pub(super) use resource_providers::{post_provider, put_provider};

use super::errors::ApiError;
use super::json::Json;

/// Reads a body and checks it.
///
/// # Errors
/// 400 for what is not JSON or does not fit the schema.
pub(super) fn read_body(body: &[u8], schema: &Schema) -> Result<Json, ApiError> {
    let json = Json::parse(body)
        .map_err(|error| ApiError::bad_request(format!("Malformed JSON: {error}")))?;
    match schema.check(&json) {
        Some(problem) => Err(ApiError::bad_request(format!(
            "JSON does not validate: {problem}"
        ))),
        None => Ok(json),
    }
}
