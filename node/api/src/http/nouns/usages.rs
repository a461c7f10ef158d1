//! `/resource_providers/{uuid}/usages` and `/usages` (from 1.9).

use std::collections::BTreeMap;

use placement_model::query::usages::TypeUsage;
use placement_model::types::{ConsumerTypeName, ProjectId, ResourceClassName, UserId};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, Varies};
use crate::http::wire::schema;
use crate::http::wire::values::Members;

#[derive(Serialize)]
struct ProviderBody<T: Serialize> {
    resource_provider_generation: i64,
    usages: T,
}

#[derive(Serialize)]
struct UsagesBody<T: Serialize> {
    usages: T,
}

/// `GET /resource_providers/{uuid}/usages`.
pub(crate) async fn of_provider(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let found = context.of_provider(Varies::Yes, |uuid| view.state.provider_usages(uuid))?;
    let body = ProviderBody {
        resource_provider_generation: found.generation.0,
        usages: Members(&found.usages),
    };
    Ok(context.modified_now(Answer::json(&body)))
}

/// What consumers of one type take, with their number among the classes.
struct TypeBody<'a>(&'a TypeUsage);

impl Serialize for TypeBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.usages.len() + 1))?;
        for (class, amount) in &self.0.usages {
            map.serialize_entry(class.as_str(), amount)?;
        }
        map.serialize_entry("consumer_count", &self.0.consumer_count)?;
        map.end()
    }
}

/// `GET /usages`.
pub(crate) async fn of_project(context: &RequestContext) -> Result<Answer, ApiError> {
    let query = context.query()?;
    query.check(schema::usages_query(context.version))?;
    let project = ProjectId::from(query.last("project_id").unwrap_or_default());
    let user = query.last("user_id").map(UserId::from);
    let view = context.view().await?;
    let by_type = view.state.usages(&project, user.as_ref());
    let answer = if context.version.from(38) {
        let groups = group(&by_type, query.last("consumer_type"));
        let groups = groups.iter().map(|(name, usage)| (*name, TypeBody(usage)));
        Answer::json(&UsagesBody {
            usages: Members(groups),
        })
    } else {
        let total = sum(by_type.values());
        Answer::json(&UsagesBody {
            usages: Members(&total.usages),
        })
    };
    Ok(context.modified_now(answer))
}

type ByType = BTreeMap<Option<ConsumerTypeName>, TypeUsage>;

/// The usages under the keys that the client wants: `all` is everything under one key.
fn group<'a>(by_type: &'a ByType, wanted: Option<&str>) -> Vec<(&'a str, TypeUsage)> {
    if wanted == Some("all") {
        let total = sum(by_type.values());
        return if total.usages.is_empty() {
            Vec::new()
        } else {
            vec![("all", total)]
        };
    }
    let name = |name: &'a Option<ConsumerTypeName>| {
        name.as_ref().map_or("unknown", ConsumerTypeName::as_str)
    };
    by_type
        .iter()
        .map(|(key, usage)| (name(key), usage))
        .filter(|(key, usage)| {
            wanted.is_none_or(|wanted| wanted == *key) && !usage.usages.is_empty()
        })
        .map(|(key, usage)| (key, usage.clone()))
        .collect()
}

fn sum<'a>(usages: impl Iterator<Item = &'a TypeUsage>) -> TypeUsage {
    let mut total = TypeUsage::default();
    for usage in usages {
        total.consumer_count += usage.consumer_count;
        for (class, amount) in &usage.usages {
            let class: ResourceClassName = class.clone();
            *total.usages.entry(class).or_default() += amount;
        }
    }
    total
}
