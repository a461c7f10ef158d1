//! `/resource_providers/{uuid}/usages` and `/usages` (from 1.9).

use std::collections::BTreeMap;

use placement_model::query::usages::TypeUsage;
use placement_model::types::{ConsumerTypeName, Generation, ProjectId, ResourceClassName, UserId};
use serde::Serialize;

use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, Varies};
use crate::http::wire::values::Members;

#[derive(Serialize)]
struct UsagesBody<T: Serialize> {
    /// Only for a provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_provider_generation: Option<Generation>,
    usages: T,
}

/// The usage of consumers of one type; their number is listed next to the classes.
#[derive(Serialize)]
struct TypeBody<'a> {
    #[serde(flatten)]
    usages: &'a BTreeMap<ResourceClassName, u64>,
    consumer_count: u64,
}

fn answer(
    context: &RequestContext,
    resource_provider_generation: Option<Generation>,
    usages: impl Serialize,
) -> Answer {
    context.modified_now(Answer::json(&UsagesBody {
        resource_provider_generation,
        usages,
    }))
}

/// `GET /resource_providers/{uuid}/usages`: the usage of a provider by class.
pub(crate) async fn for_provider(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let (generation, usages) =
        context.find_provider(Varies::Yes, |uuid| view.state.provider_usages(uuid))?;
    Ok(answer(context, Some(generation), &usages))
}

/// `GET /usages`: the usage of a project by class and, from 1.38, by consumer type.
pub(crate) async fn for_project(context: &RequestContext) -> Result<Answer, ApiError> {
    let query = context.query()?;
    query.check(context.head.route, context.head.version)?;
    let project = ProjectId::from(query.last("project_id").unwrap_or_default());
    let user = query.last("user_id").map(UserId::from);
    let view = context.view().await?;
    let by_type = view.state.usages(&project, user.as_ref());
    if !context.head.version.from(38) {
        return Ok(answer(context, None, sum(by_type.into_values()).usages));
    }
    let groups: Vec<_> = match query.last("consumer_type") {
        Some("all") => vec![("all".to_owned(), sum(by_type.into_values()))],
        asked => {
            let name = |name: ConsumerTypeName| name.as_str().to_owned();
            let named = by_type
                .into_iter()
                .map(|(key, usage)| (key.map_or("unknown".to_owned(), name), usage));
            let asked = |key: &str| asked.is_none_or(|asked| asked == key);
            named.filter(|(key, _)| asked(key)).collect()
        }
    };
    let taken = groups.iter().filter(|(_, usage)| !usage.usages.is_empty());
    let bodies = taken.map(|(key, usage)| {
        let body = TypeBody {
            usages: &usage.usages,
            consumer_count: usage.consumer_count,
        };
        (key, body)
    });
    Ok(answer(context, None, Members(bodies)))
}

fn sum(usages: impl Iterator<Item = TypeUsage>) -> TypeUsage {
    let mut total = TypeUsage::default();
    for usage in usages {
        total.consumer_count += usage.consumer_count;
        for (class, amount) in usage.usages {
            *total.usages.entry(class).or_default() += amount;
        }
    }
    total
}
