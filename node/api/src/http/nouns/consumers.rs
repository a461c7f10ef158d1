//! `/placementd/v1/consumers`: consumers with their allocations.

use placement_model::State;
use placement_model::query::consumers::{
    ConsumerFilter, ConsumerPage, ListedAllocation, ListedConsumer,
};
use placement_model::types::{ConsumerUuid, ProjectId, ProviderUuid, UserId};
use placement_wire::consumers as wire;

use super::{CONTENT_ROWS_MAX, LIMIT_MAX, ago, bad_value, class_in, parse_limit};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, to_json};
use crate::http::wire::own;
use crate::http::wire::query::Query;

/// `GET /placementd/v1/consumers`: a page of the matching consumers after `marker`.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let query = context.query()?;
    query.check_once(context.head.route, context.head.version)?;
    let limit = query.last("limit").map_or(Ok(LIMIT_MAX), parse_limit)?;
    let marker = query.last("marker").map(ConsumerUuid::from);
    let view = context.view().await?;
    let filter = ConsumerFilter {
        updated_until: query.last("older_than").map(|age| ago(context, age)),
        ..parse_filter(query, &view.state)?
    };
    let made = context.listed(move || {
        let page = view
            .state
            .consumers(&filter, marker.as_ref(), limit, CONTENT_ROWS_MAX);
        Ok(to_json(&shown(&page)))
    });
    Ok(context.modified_now(Answer::chunks(vec![made.await?])))
}

fn parse_filter(query: &Query, state: &State) -> Result<ConsumerFilter, ApiError> {
    let provider = query.last("provider").map(|text| {
        let uuid = ProviderUuid::from_canonical(text);
        let known = uuid.filter(|uuid| state.place(uuid).is_some());
        let right = "give the UUID of a resource provider, in lower case with hyphens";
        known.ok_or_else(|| bad_value("provider", text, right))
    });
    let consumer_type = query.last("type");
    Ok(ConsumerFilter {
        provider: provider.transpose()?,
        project: query.last("project").map(ProjectId::from),
        user: query.last("user").map(UserId::from),
        // `unknown`, which is not a valid type name, selects consumers without a type.
        consumer_type: consumer_type.map(|name| name.parse().ok()),
        class: class_in(query, state)?,
        updated_until: None,
        several_trees: query.last("several_trees") == Some("true"),
        held: query.last("held") == Some("true"),
    })
}

fn shown(page: &ConsumerPage) -> wire::ConsumerPage<'_> {
    wire::ConsumerPage {
        consumers: page.consumers.iter().map(consumer).collect(),
        next: page.next.as_ref().map(|uuid| uuid.to_string().into()),
    }
}

pub(super) fn consumer(listed: &ListedConsumer) -> wire::Consumer<'_> {
    let consumer_type = listed.consumer_type.as_ref();
    wire::Consumer {
        uuid: listed.uuid.to_string().into(),
        r#type: consumer_type.map(|name| name.as_str().into()),
        project_id: listed.project_id.as_str().into(),
        user_id: listed.user_id.as_str().into(),
        generation: listed.generation.0,
        updated_at: listed.updated_at.rfc3339_seconds().map(Into::into),
        trees: listed.trees as u64,
        allocations: listed.allocations.iter().map(allocation).collect(),
        hold: listed.hold.as_ref().map(own::hold),
    }
}

pub(super) fn allocation(held: &ListedAllocation) -> wire::ConsumerAllocation<'_> {
    let resources = held.resources.iter();
    wire::ConsumerAllocation {
        provider: own::named(&held.provider),
        root: own::named(&held.root),
        resources: resources
            .map(|(class, units)| (class.as_str().into(), *units))
            .collect(),
    }
}
