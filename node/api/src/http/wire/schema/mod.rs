//! The schemas of bodies and query strings per microversion.
//!
//! A schema is built once; [`Schema::check`] reports the place of an error and the valid form, in
//! the phrases of JSON Schema validators that clients know.

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

/// Parses a body of at most `values_max` values and checks it against the schema.
///
/// # Errors
/// 400 for malformed JSON, too many values, or a mismatch with the schema.
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
