//! Expected answers of questions.

use std::collections::BTreeMap;

use placement_model::outcome::Provider;
use placement_model::query::usages::TypeUsage;
use placement_model::types::{
    ConsumerTypeName, ConsumerUuid, ProjectId, ProviderUuid, ResourceClassName, UserId,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Expected, Oracle, UNDEFINED};
use crate::operation::{Question, QuestionKind, record};

impl Oracle {
    /// The expected answer to a question.
    ///
    /// # Panics
    /// For candidates: their order and, with a limit, their choice are unspecified.
    pub fn answer(&self, question: &Question) -> Expected {
        let naive = &self.naive;
        let minor = question.minor;
        let missing = Expected::error(404, UNDEFINED, minor);
        let wrong = Expected::error(400, UNDEFINED, minor);
        let ok = |body| Expected::json(200, body);
        let or_missing = |body: Option<Value>| body.map_or(missing.clone(), ok);
        let of = |uuid: &Uuid| ProviderUuid(*uuid);
        match &question.asked {
            QuestionKind::Providers(filter) => match naive.providers(filter) {
                Err(_) => wrong,
                Ok(found) => {
                    let found = found.iter().map(|one| provider_body(one, minor));
                    ok(json!({ "resource_providers": found.collect::<Vec<_>>() }))
                }
            },
            QuestionKind::Provider(uuid) => {
                let found = naive.provider(&of(uuid));
                or_missing(found.map(|one| provider_body(&one, minor)))
            }
            QuestionKind::Inventories(uuid) => {
                or_missing(naive.inventories(&of(uuid)).map(|(generation, rows)| {
                    let records = (rows.iter())
                        .map(|(class, row)| (class.to_string(), record(&row.inventory)));
                    json!({
                        "resource_provider_generation": generation.0,
                        "inventories": Map::from_iter(records),
                    })
                }))
            }
            QuestionKind::Inventory(uuid, class) => {
                or_missing(naive.inventories(&of(uuid)).and_then(|(generation, rows)| {
                    let (_, row) = rows.iter().find(|(name, _)| name.as_str() == class)?;
                    let mut body = record(&row.inventory);
                    // Answers for a single inventory omit generation 0.
                    if generation.0 != 0 {
                        body["resource_provider_generation"] = json!(generation.0);
                    }
                    Some(body)
                }))
            }
            QuestionKind::ProviderUsages(uuid) => or_missing(naive.provider_usages(&of(uuid)).map(
                |(generation, usages)| {
                    json!({
                        "resource_provider_generation": generation.0,
                        "usages": amounts(&usages),
                    })
                },
            )),
            QuestionKind::ProviderAllocations(uuid) => or_missing(
                naive
                    .provider_holdings(&of(uuid))
                    .map(|(generation, held)| {
                        let holdings = held.iter().map(|one| {
                            let mut body =
                                json!({ "resources": amounts(as_pairs(&one.resources)) });
                            if minor >= 28 {
                                body["consumer_generation"] = json!(one.consumer_generation.0);
                            }
                            (one.consumer.to_string(), body)
                        });
                        json!({
                            "resource_provider_generation": generation.0,
                            "allocations": Map::from_iter(holdings),
                        })
                    }),
            ),
            QuestionKind::ProviderTraits(uuid) => or_missing(naive.provider_traits(&of(uuid)).map(
                |(generation, traits)| {
                    let names = traits.iter().map(|(name, _)| name.as_str());
                    json!({
                        "resource_provider_generation": generation.0,
                        "traits": names.collect::<Vec<_>>(),
                    })
                },
            )),
            QuestionKind::ProviderAggregates(uuid) => or_missing(
                naive
                    .provider_aggregates(&of(uuid))
                    .map(|(generation, aggregates)| {
                        let names = aggregates.iter().map(|one| one.as_str());
                        let mut body = json!({ "aggregates": names.collect::<Vec<_>>() });
                        if minor >= 19 {
                            body["resource_provider_generation"] = json!(generation.0);
                        }
                        body
                    }),
            ),
            QuestionKind::Allocations(consumer) => ok(self.consumer_body(consumer, minor)),
            QuestionKind::Usages {
                project,
                user,
                consumer_type,
            } => {
                let user = user.as_deref().map(UserId::from);
                let by_type = naive.usages(&ProjectId::from(project.as_str()), user.as_ref());
                ok(json!({ "usages": usages(&by_type, consumer_type.as_deref(), minor) }))
            }
            QuestionKind::Traits { associated, prefix } => {
                let mut names = naive.traits(*associated);
                if let Some(prefix) = prefix {
                    names.retain(|(name, _)| name.as_str().starts_with(prefix.as_str()));
                }
                let names = names.iter().map(|(name, _)| name.as_str());
                ok(json!({ "traits": names.collect::<Vec<_>>() }))
            }
            QuestionKind::Trait(name) => {
                let known = name.parse().is_ok_and(|name| naive.has_trait_named(&name));
                if known { Expected::empty(204) } else { missing }
            }
            QuestionKind::ResourceClasses => {
                let classes = naive.resource_classes();
                let classes = classes.iter().map(|(name, _)| class_body(name.as_str()));
                ok(json!({ "resource_classes": classes.collect::<Vec<_>>() }))
            }
            QuestionKind::ResourceClass(name) => {
                let known = name
                    .parse()
                    .is_ok_and(|name| naive.has_resource_class(&name));
                or_missing(known.then(|| class_body(name)))
            }
            QuestionKind::Candidates(_) => unreachable!("candidates are compared as sets"),
        }
    }

    /// Project and user are shown from 1.12, the generation from 1.28, the type from 1.38.
    fn consumer_body(&self, uuid: &Uuid, minor: u8) -> Value {
        let consumer = self.naive.consumer(&ConsumerUuid::from(uuid.to_string()));
        let Some(consumer) = consumer.filter(|one| !one.allocations.is_empty()) else {
            return json!({ "allocations": {} });
        };
        let holdings = consumer.allocations.iter().map(|one| {
            let resources = amounts(as_pairs(&one.resources));
            let body = json!({ "generation": one.generation.0, "resources": resources });
            (one.provider.to_string(), body)
        });
        let mut body = json!({ "allocations": Map::from_iter(holdings) });
        if minor >= 12 {
            body["project_id"] = json!(consumer.project.as_str());
            body["user_id"] = json!(consumer.user.as_str());
        }
        if minor >= 28 {
            body["consumer_generation"] = json!(consumer.generation.0);
        }
        if minor >= 38 {
            body["consumer_type"] = json!(type_name(&consumer.consumer_type));
        }
        body
    }
}

fn type_name(name: &Option<ConsumerTypeName>) -> &str {
    name.as_ref().map_or("unknown", ConsumerTypeName::as_str)
}

fn as_pairs(
    resources: &[(ResourceClassName, u64)],
) -> impl Iterator<Item = (&ResourceClassName, &u64)> {
    resources.iter().map(|(class, amount)| (class, amount))
}

fn amounts<'a>(
    amounts: impl IntoIterator<Item = (&'a ResourceClassName, &'a u64)>,
) -> Map<String, Value> {
    let amounts = amounts.into_iter();
    amounts
        .map(|(class, amount)| (class.to_string(), json!(amount)))
        .collect()
}

/// One sum below 1.38; then sums by consumer type, with the number of consumers.
fn usages(
    by_type: &BTreeMap<Option<ConsumerTypeName>, TypeUsage>,
    wanted: Option<&str>,
    minor: u8,
) -> Value {
    let mut total = TypeUsage::default();
    for usage in by_type.values() {
        total.consumer_count += usage.consumer_count;
        for (class, amount) in &usage.usages {
            *total.usages.entry(class.clone()).or_default() += amount;
        }
    }
    if minor < 38 {
        return Value::Object(amounts(&total.usages));
    }
    let body = |usage: &TypeUsage| {
        let mut body = amounts(&usage.usages);
        body.insert("consumer_count".to_owned(), json!(usage.consumer_count));
        Value::Object(body)
    };
    let groups: Map<String, Value> = match wanted {
        Some("all") if total.usages.is_empty() => Map::new(),
        Some("all") => Map::from_iter([("all".to_owned(), body(&total))]),
        wanted => by_type
            .iter()
            .map(|(name, usage)| (type_name(name), usage))
            .filter(|(name, _)| wanted.is_none_or(|wanted| wanted == *name))
            .map(|(name, usage)| (name.to_owned(), body(usage)))
            .collect(),
    };
    Value::Object(groups)
}

/// A provider with its links; with parent and root from 1.14.
pub(super) fn provider_body(provider: &Provider, minor: u8) -> Value {
    let path = format!("/resource_providers/{}", provider.uuid);
    let below = [
        (0, "inventories"),
        (0, "usages"),
        (1, "aggregates"),
        (6, "traits"),
        (11, "allocations"),
    ];
    let mut links = vec![json!({ "rel": "self", "href": path })];
    let known = below.iter().filter(|(since, _)| minor >= *since);
    links.extend(known.map(|(_, rel)| json!({ "rel": rel, "href": format!("{path}/{rel}") })));
    let mut body = json!({
        "uuid": provider.uuid.to_string(),
        "name": provider.name.as_str(),
        "generation": provider.generation.0,
        "links": links,
    });
    if minor >= 14 {
        body["parent_provider_uuid"] = json!(provider.parent.map(|parent| parent.to_string()));
        body["root_provider_uuid"] = json!(provider.root.to_string());
    }
    body
}

pub(super) fn class_body(name: &str) -> Value {
    let href = format!("/resource_classes/{name}");
    json!({ "name": name, "links": [{ "rel": "self", "href": href }] })
}
