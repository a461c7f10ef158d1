//! `GET /placementd/v1/searches`: what this node was lately asked.

use std::time::Duration;

use serde::Serialize;

use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::edge::searches::Which;
use crate::http::errors::ApiError;
use crate::world::micros;

/// `GET /placementd/v1/searches`, with `since` in seconds, `empty` and `request_id`.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let mut which = Which::default();
    for (name, value) in context.query()?.iter() {
        match (name, value) {
            ("since", seconds) => {
                let seconds = seconds.parse().map_err(|_| {
                    ApiError::bad_request(format!(
                        "since is '{seconds}'; give seconds, such as 3600"
                    ))
                })?;
                which.since = Some(Duration::from_secs(seconds));
            }
            ("empty", "true" | "false") => which.empty = value == "true",
            ("empty", other) => {
                let message = format!("empty is '{other}'; give true or false");
                return Err(ApiError::bad_request(message));
            }
            ("request_id", id) => which.request_id = Some(id.to_owned()),
            (other, _) => {
                return Err(ApiError::bad_request(format!(
                    "There is no parameter '{other}' here; there are since, empty and request_id."
                )));
            }
        }
    }
    let server = &context.server;
    let searches = server.searches.of(&which, micros(server.api.clock.now()));
    Ok(Answer::json(&List { searches }))
}

#[derive(Serialize)]
struct List<T: Serialize> {
    searches: Vec<T>,
}
