//! `/resource_providers/{uuid}/inventories` and `…/inventories/{resource_class}`.

use std::collections::BTreeMap;

use http::StatusCode;
use placement_model::Command;
use placement_model::command::{
    CapacityRule, CreateInventory, DeleteInventories, DeleteInventory, ReplaceInventories,
    UpdateInventory,
};
use placement_model::types::{Generation, Given, Inventory, ResourceClassName};
use serde::Serialize;

use super::{given_generation, written};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, Varies, WriteKind, not_found};
use crate::http::wire::json::Json;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::values::Members;

/// The default of `max_unit`.
const MAX_UNIT: i64 = 2_147_483_647;

/// A single inventory: a stored inventory, or the result of [`echo`].
#[derive(Serialize)]
struct InventoryBody<T: Serialize> {
    #[serde(flatten)]
    inventory: T,
    /// Omitted if 0.
    #[serde(skip_serializing_if = "is_zero")]
    resource_provider_generation: Generation,
}

fn is_zero(generation: &Generation) -> bool {
    generation.0 == 0
}

/// The inventory as the client has just written it, with numbers as they were spelled.
fn echo(record: &Json) -> impl Serialize + Clone {
    const ZERO: &Json = &Json::Int(0);
    const ONE: &Json = &Json::Int(1);
    let defaults = [
        ("total", ONE),
        ("reserved", ZERO),
        ("min_unit", ONE),
        ("max_unit", &Json::Int(MAX_UNIT)),
        ("step_size", ONE),
        ("allocation_ratio", &Json::Float(1.0)),
    ];
    Members(defaults.map(|(name, default)| (name, record.get(name).unwrap_or(default))))
}

#[derive(Serialize)]
struct ListBody<T: Serialize> {
    resource_provider_generation: Generation,
    inventories: T,
}

/// `GET …/inventories`: all inventories of a provider.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let found = context.find_provider(Varies::Yes, |uuid| view.state.inventories(uuid))?;
    let (resource_provider_generation, records) = found;
    let records = records.iter();
    let modified = records.clone().map(|(_, row)| row.updated_at).max();
    let answer = Answer::json(&ListBody {
        resource_provider_generation,
        inventories: Members(records.map(|(class, row)| (class.as_str(), row.inventory))),
    });
    Ok(context.modified_if_ever(answer, modified))
}

/// `GET …/inventories/{resource_class}`: one inventory of a provider.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let found = context.find_provider(Varies::Yes, |uuid| view.state.inventories(uuid))?;
    let (resource_provider_generation, records) = found;
    let class = context.param(1);
    let (_, row) = (records.iter().find(|(name, _)| name.as_str() == class))
        .ok_or_else(|| not_found::inventory(class, context.param(0)))?;
    let answer = Answer::json(&InventoryBody {
        inventory: row.inventory,
        resource_provider_generation,
    });
    Ok(context.modified(answer, Some(row.updated_at)))
}

/// `POST …/inventories`: adds one inventory.
pub(crate) async fn create(context: &RequestContext) -> Result<Answer, ApiError> {
    let provider = context.provider_or_404()?;
    let body = context.body_below(provider).await?;
    let class = body.member("resource_class").text().unwrap_or_default();
    let resource_class = Given::from(class);
    let inventory = parse_record(class, &body);
    let inventory = context.found_below(provider, inventory).await?;
    let location = format!("/resource_providers/{provider}/inventories/{resource_class}");
    let command = Command::CreateInventory(CreateInventory {
        provider,
        resource_class,
        inventory,
        capacity_rule: capacity_rule(context.head.version),
    });
    let write = WriteKind::CreateInventory { provider };
    let answer = write_one(context, &body, command, write).await?;
    Ok(answer.status(StatusCode::CREATED).location(location))
}

/// `PUT …/inventories/{resource_class}`: changes one inventory.
pub(crate) async fn update(context: &RequestContext) -> Result<Answer, ApiError> {
    let provider = context.provider_or_404()?;
    let body = context.body_below(provider).await?;
    let inventory = parse_record(context.param(1), &body);
    let command = Command::UpdateInventory(UpdateInventory {
        provider,
        generation: given_generation(&body).unwrap_or_default(),
        resource_class: Given::from(context.param(1)),
        inventory: context.found_below(provider, inventory).await?,
        capacity_rule: capacity_rule(context.head.version),
    });
    write_one(context, &body, command, WriteKind::UpdateInventory).await
}

async fn write_one(
    context: &RequestContext,
    body: &Json,
    command: Command,
    write: WriteKind<'_>,
) -> Result<Answer, ApiError> {
    let (reply, _) = context.submit(command, write).await?;
    let (generation, at) = written(&reply)?;
    let answer = Answer::json(&InventoryBody {
        inventory: echo(body),
        resource_provider_generation: generation,
    });
    Ok(context.modified(answer, Some(at)))
}

/// `PUT …/inventories`: replaces the whole set of a provider.
pub(crate) async fn replace(context: &RequestContext) -> Result<Answer, ApiError> {
    let provider = context.provider_or_404()?;
    let body = context.body_below(provider).await?;
    let parsed = parse_set(&body);
    let (generation, inventories) = context.found_below(provider, parsed).await?;
    context.admit("inventories", inventories.len(), |limits| {
        limits.inventories
    })?;
    let command = Command::ReplaceInventories(ReplaceInventories {
        provider,
        generation,
        inventories,
        capacity_rule: capacity_rule(context.head.version),
    });
    let write = WriteKind::ReplaceInventories { provider };
    let (reply, _) = context.submit(command, write).await?;
    let (generation, at) = written(&reply)?;
    let given = body.member("inventories").members();
    let modified = given.clone().next().map(|_| at);
    let answer = Answer::json(&ListBody {
        resource_provider_generation: generation,
        inventories: Members(given.map(|(class, record)| (class, echo(record)))),
    });
    Ok(context.modified_if_ever(answer, modified))
}

/// `DELETE …/inventories/{resource_class}`: removes one inventory.
pub(crate) async fn delete(context: &RequestContext) -> Result<Answer, ApiError> {
    let command = Command::DeleteInventory(DeleteInventory {
        provider: context.provider_or_404()?,
        resource_class: Given::from(context.param(1)),
    });
    context.carry_out(command, WriteKind::DeleteInventory).await
}

/// `DELETE …/inventories`, from 1.5: removes all inventories of a provider.
pub(crate) async fn delete_all(context: &RequestContext) -> Result<Answer, ApiError> {
    let provider = context.provider_or_404()?;
    let command = Command::DeleteInventories(DeleteInventories { provider });
    let write = WriteKind::DeleteInventories;
    context.carry_out(command, write).await
}

/// From 1.26 the whole total may be reserved.
fn capacity_rule(version: Microversion) -> CapacityRule {
    if version.from(26) {
        CapacityRule::NotNegative
    } else {
        CapacityRule::Positive
    }
}

/// Parses a provider's whole set, as in `PUT …/inventories` and in the reshaper.
pub(crate) fn parse_set(
    body: &Json,
) -> Result<(Generation, BTreeMap<Given<ResourceClassName>, Inventory>), ApiError> {
    let records = body
        .member("inventories")
        .members()
        .map(|(class, record)| Ok((Given::from(class), parse_record(class, record)?)));
    let inventories = records.collect::<Result<_, ApiError>>()?;
    Ok((given_generation(body).unwrap_or_default(), inventories))
}

/// Parses a record. It matches the schema unless its class name is invalid: the schema checks only
/// the members with valid class names.
fn parse_record(class: &str, record: &Json) -> Result<Inventory, ApiError> {
    let whole = |key: &str, default: i64| {
        u32::try_from(record.member(key).integer().unwrap_or(default)).unwrap_or_default()
    };
    // Negative zero becomes zero.
    let ratio = record.member("allocation_ratio").number().unwrap_or(1.0) + 0.0;
    if ratio < 0.0 || !ratio.is_finite() {
        return Err(ApiError::bad_request(format!(
            "Bad inventory {class}: allocation_ratio is {ratio}; give a finite number that is \
             not negative"
        )));
    }
    Ok(Inventory {
        total: whole("total", 1),
        reserved: whole("reserved", 0),
        min_unit: whole("min_unit", 1),
        max_unit: whole("max_unit", MAX_UNIT),
        step_size: whole("step_size", 1).max(1),
        allocation_ratio: ratio,
    })
}
