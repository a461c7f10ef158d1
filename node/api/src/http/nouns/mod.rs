//! The handlers: a file per noun of the API.

use std::fmt::Display;
use std::str::FromStr;

use placement_model::query::UnknownName;
use placement_model::types::{ConsumerTypeName, Generation, ResourceClassName, Timestamp};
use placement_model::{Reply, State};

use serde::Serialize;

use super::edge::answer::Answer;
use super::edge::request_context::RequestContext;
use super::errors::{ApiError, code, joined};
use super::wire::json::Json;
use super::wire::query::Query;
use super::wire::spelling;
use placement_base::world::micros;

pub(crate) mod aggregates;
pub(crate) mod allocation_candidates;
pub(crate) mod allocations;
pub(crate) mod capacity;
pub(crate) mod claims;
pub(crate) mod consumers;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod fits;
pub(crate) mod history;
pub(crate) mod holds;
pub(crate) mod inventories;
pub(crate) mod limits;
pub(crate) mod placementd;
pub(crate) mod refuge;
pub(crate) mod reshaper;
pub(crate) mod resource_classes;
pub(crate) mod resource_providers;
pub(crate) mod root;
pub(crate) mod searches;
pub(crate) mod traits;
pub(crate) mod trees;
pub(crate) mod usages;
pub(crate) mod what_if;

/// The provider's generation that the client last saw, if the body has one.
fn given_generation(body: &Json) -> Option<Generation> {
    let given = body.member("resource_provider_generation").integer();
    given.map(Generation)
}

/// Parses the name in a body.
fn name_in<N: FromStr<Err: Display>>(body: &Json) -> Result<N, ApiError> {
    let name = body.member("name").text().unwrap_or_default();
    name.parse().map_err(invalid_json)
}

/// Number of rows up to which a list is built on the thread of its request.
const ROWS_AT_ONCE_MAX: usize = 500;

/// Builds a list with `make`, which returns `None` if the list has more rows than its argument. A
/// list of more than [`ROWS_AT_ONCE_MAX`] rows is built on another thread.
async fn listed<T: Send + 'static>(
    context: &RequestContext,
    make: impl Fn(usize) -> Result<Option<T>, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let made = match make(ROWS_AT_ONCE_MAX)? {
        Some(made) => Some(made),
        None => context.listed(move || make(usize::MAX)).await?,
    };
    made.ok_or_else(ApiError::internal)
}

/// Maximum number of rows examined for an operator's query.
const CONTENT_ROWS_MAX: usize = 100_000;

/// The class that a query names.
///
/// # Errors
/// 400 if there is no such class.
fn class_in(query: &Query, state: &State) -> Result<Option<ResourceClassName>, ApiError> {
    let Some(text) = query.last("class") else {
        return Ok(None);
    };
    let class = text.parse().ok();
    let known = class.filter(|class| state.resource_class_id(class).is_some());
    let right = "give a class that GET /resource_classes lists";
    known.map_or_else(
        || Err(bad_value("class", text, right)),
        |class| Ok(Some(class)),
    )
}

/// Maximum number of rows of one answer, for queries with a limit.
const LIMIT_MAX: usize = 1_000;

fn parse_limit(text: &str) -> Result<usize, ApiError> {
    let limit = text.parse().ok().filter(|limit| *limit <= LIMIT_MAX);
    let right = format!("give an integer from 1 to {LIMIT_MAX}");
    limit.ok_or_else(|| bad_value("limit", text, &right))
}

/// The time `seconds` ago. The schema of the query has validated the number.
fn ago(context: &RequestContext, seconds: &str) -> Timestamp {
    let Timestamp(now) = micros(context.api().clock.now());
    let seconds = spelling::integer(seconds).unwrap_or(0);
    let ago = i128::from(now) - seconds.saturating_mul(1_000_000);
    Timestamp(i64::try_from(ago).unwrap_or(i64::MIN))
}

/// 400 for a parameter that is well-formed but has an invalid value.
fn bad_value(name: &str, text: &str, right: &str) -> ApiError {
    let message = format!("Invalid query string parameters: {name} is '{text}'; {right}");
    ApiError::bad_request(message).with_code(code::BAD_VALUE)
}

/// 400 for a query with an unknown name; `traits` is the text before the names of traits.
fn unknown_name(error: &UnknownName, traits: &str) -> ApiError {
    ApiError::bad_request(match error {
        UnknownName::ResourceClass(name) => {
            format!("Invalid resource class in resources parameter: No such resource class {name}.")
        }
        UnknownName::Traits(names) => format!("{traits}No such trait(s): {}.", joined(names)),
    })
}

/// A link in an answer.
#[derive(Serialize)]
struct Link {
    rel: &'static str,
    href: String,
}

/// 400 for a body that matches the schema but has a malformed name.
fn invalid_json(error: impl Display) -> ApiError {
    ApiError::bad_request(format!("JSON does not validate: {error}"))
}

/// A consumer type in a body; `None` for consumers without a type.
fn consumer_type(name: &Json) -> Result<Option<ConsumerTypeName>, ApiError> {
    let name = name.text().map(|name| name.parse().map_err(invalid_json));
    name.transpose()
}

/// 400 if `count` exceeds `most`; `what` names the counted items.
fn at_most(what: &str, count: usize, most: usize) -> Result<(), ApiError> {
    if count > most {
        return Err(ApiError::over_limit(what, most));
    }
    Ok(())
}

/// The provider's generation after a write, and the time of the write.
fn written(reply: &Reply) -> Result<(Generation, Timestamp), ApiError> {
    match *reply {
        Reply::ProviderWritten { generation, at } => Ok((generation, at)),
        _ => Err(ApiError::internal()),
    }
}

/// The answer to a write that ensures that a name exists, and the time at which it was created.
fn ensured(reply: &Reply, location: String) -> (Answer, Option<Timestamp>) {
    let (answer, at) = match *reply {
        Reply::Named { created, modified } if created => (Answer::created(), Some(modified)),
        Reply::Named { modified, .. } => (Answer::no_content(), Some(modified)),
        _ => (Answer::no_content(), None),
    };
    (answer.location(location), at)
}
