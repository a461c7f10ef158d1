//! `/placementd/v1/capacity`: totals and usage of resources.

use std::borrow::Cow;

use placement_model::query::capacity::{CapacityBy, CapacityReport, ClassCapacity};
use placement_wire::capacity as wire;

use super::{CONTENT_ROWS_MAX, class_in};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, code, to_json};
use crate::http::wire::own;

/// `GET /placementd/v1/capacity`, per class, or with `by` per aggregate, trait, provider or tree
/// too.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let query = context.query()?;
    query.check_once(context.head.route, context.head.version)?;
    let by = match query.last("by") {
        Some("aggregate") => CapacityBy::Aggregate,
        Some("trait") => CapacityBy::Trait,
        Some("provider") => CapacityBy::Provider,
        Some("tree") => CapacityBy::Tree,
        _ => CapacityBy::Class,
    };
    let view = context.view().await?;
    let class = class_in(query, &view.state)?;
    let made = context.listed(move || {
        let report = view.state.capacity(class.as_ref(), by, CONTENT_ROWS_MAX);
        let report = report.as_ref().ok_or_else(too_long)?;
        Ok(to_json(&shown(report)))
    });
    Ok(context.modified_now(Answer::chunks(vec![made.await?])))
}

/// The JSON form of a report.
pub(super) fn shown(report: &CapacityReport) -> wire::CapacityReport<'_> {
    wire::CapacityReport {
        by: match report.by {
            CapacityBy::Class => wire::CapacityBy::Class,
            CapacityBy::Aggregate => wire::CapacityBy::Aggregate,
            CapacityBy::Trait => wire::CapacityBy::Trait,
            CapacityBy::Provider => wire::CapacityBy::Provider,
            CapacityBy::Tree => wire::CapacityBy::Tree,
        },
        capacity: report.capacity.iter().map(row).collect(),
    }
}

fn row(row: &ClassCapacity) -> wire::ClassCapacity<'_> {
    let ClassCapacity {
        class,
        aggregate,
        trait_name,
        provider,
        sums,
    } = row;
    wire::ClassCapacity {
        class: class.as_str().into(),
        aggregate: aggregate.as_ref().map(|uuid| uuid.as_str().into()),
        r#trait: trait_name.as_ref().map(|name| name.as_str().into()),
        provider: provider.as_ref().map(own::named),
        providers: sums.providers,
        total: sums.total,
        reserved: sums.reserved,
        capacity: own::capacity(sums.capacity),
        used: sums.used,
        free: sums.free,
        largest_free: sums.largest_free,
        free_ranges: Cow::from(&sums.free_ranges),
    }
}

fn too_long() -> ApiError {
    let message = format!(
        "The answer would have more than {CONTENT_ROWS_MAX} rows. Request one class, such as class=VCPU, or omit the parameter by."
    );
    ApiError::bad_request(message).with_code(code::LIMIT_EXCEEDED)
}
