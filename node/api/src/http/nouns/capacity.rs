//! `/placementd/v1/capacity`: totals and usage of resources.

use placement_model::query::capacity::CapacityBy;

use super::{CONTENT_ROWS_MAX, class_in};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, code, to_json};

/// `GET /placementd/v1/capacity`, per class, or with `by` per aggregate or trait too.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let query = context.query()?;
    query.check_once(context.route, context.version)?;
    let by = match query.last("by") {
        Some("aggregate") => CapacityBy::Aggregate,
        Some("trait") => CapacityBy::Trait,
        _ => CapacityBy::Class,
    };
    let view = context.view().await?;
    let class = class_in(query, &view.state)?;
    let made = context.listed(move || {
        let report = view.state.capacity(class.as_ref(), by, CONTENT_ROWS_MAX);
        report.as_ref().map(to_json).ok_or_else(too_long)
    });
    Ok(context.modified_now(Answer::chunks(vec![made.await?])))
}

fn too_long() -> ApiError {
    let message = format!(
        "The answer would have more than {CONTENT_ROWS_MAX} rows. Request one class, as class=VCPU, or omit by."
    );
    ApiError::bad_request(message).with_code(code::LIMIT_EXCEEDED)
}
