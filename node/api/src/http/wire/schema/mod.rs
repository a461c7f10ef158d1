//! What a body or a query string must look like, per microversion.
//!
//! A schema is a value that is made once; [`Schema::check`] names the place of what is wrong and
//! what would be right, in the phrases of JSON Schema validators that clients know.

mod bodies;
mod pattern;
mod problem;
mod queries;
mod types;
mod validate;

pub(crate) use bodies::{DOCUMENT, body_of};
pub(crate) use queries::{group_keys, query_of};
pub(crate) use types::Schema;

use super::json::Json;
use crate::http::errors::ApiError;

/// Reads a body of so many values at most, and checks it.
///
/// # Errors
/// 400 for what is not JSON, is too much or does not fit the schema.
pub(crate) fn read_body(values_max: usize, body: &[u8], schema: &Schema) -> Result<Json, ApiError> {
    let json = Json::parse(values_max, body).map_err(|error| {
        if error.is_data() {
            return ApiError::over_limit("JSON values", values_max);
        }
        ApiError::bad_request(format!("Malformed JSON: {error}"))
    })?;
    schema
        .check(&json)
        .map_err(|problem| ApiError::bad_request(format!("JSON does not validate: {problem}")))?;
    Ok(json)
}
