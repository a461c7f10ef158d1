//! `/resource_providers/{uuid}/inventories` and `…/inventories/{resource_class}`.

use std::collections::BTreeMap;

use http::StatusCode;
use placement_model::command::{
    CapacityRule, CreateInventory, DeleteInventories, DeleteInventory, ReplaceInventories,
    UpdateInventory,
};
use placement_model::types::{Generation, Given, Inventory, ResourceClassName};
use placement_model::{Command, Reply};
use serde::Serialize;

use super::given_generation;
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::{Done, RequestContext};
use crate::http::edge::settings::Carried;
use crate::http::errors::{ApiError, Varies, WriteKind, not_found};
use crate::http::wire::json::Json;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::values::Members;

/// The largest unit, when a client gives none.
const MAX_UNIT: i64 = 2_147_483_647;

/// An inventory on the wire.
#[derive(Serialize)]
struct InventoryBody {
    total: u32,
    reserved: u32,
    min_unit: u32,
    max_unit: u32,
    step_size: u32,
    allocation_ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_provider_generation: Option<i64>,
}

impl InventoryBody {
    fn new(inventory: &Inventory, generation: Option<Generation>) -> Self {
        Self {
            total: inventory.total,
            reserved: inventory.reserved,
            min_unit: inventory.min_unit,
            max_unit: inventory.max_unit,
            step_size: inventory.step_size,
            allocation_ratio: inventory.allocation_ratio,
            resource_provider_generation: generation.map(|generation| generation.0),
        }
    }
}

/// An inventory as the client has just written it: numbers are echoed as they were given.
#[derive(Serialize)]
struct EchoBody<'a> {
    total: &'a Json,
    reserved: &'a Json,
    min_unit: &'a Json,
    max_unit: &'a Json,
    step_size: &'a Json,
    allocation_ratio: &'a Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_provider_generation: Option<i64>,
}

impl<'a> EchoBody<'a> {
    fn new(record: &'a Json, generation: Option<Generation>) -> Self {
        const ZERO: &Json = &Json::Int(0);
        const ONE: &Json = &Json::Int(1);
        Self {
            total: record.get("total").unwrap_or(ONE),
            reserved: record.get("reserved").unwrap_or(ZERO),
            min_unit: record.get("min_unit").unwrap_or(ONE),
            max_unit: record.get("max_unit").unwrap_or(&Json::Int(MAX_UNIT)),
            step_size: record.get("step_size").unwrap_or(ONE),
            allocation_ratio: record.get("allocation_ratio").unwrap_or(&Json::Float(1.0)),
            resource_provider_generation: generation.map(|generation| generation.0),
        }
    }
}

#[derive(Serialize)]
struct ListBody<T: Serialize> {
    resource_provider_generation: i64,
    inventories: T,
}

/// `GET …/inventories`.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let found = context.of_provider(Varies::Yes, |uuid| view.state.inventories(uuid))?;
    let modified = found
        .inventories
        .iter()
        .map(|(_, row)| row.updated_at)
        .max();
    let records = found.inventories.iter();
    let answer = Answer::json(&ListBody {
        resource_provider_generation: found.generation.0,
        inventories: Members(
            records.map(|(class, row)| (class.as_str(), InventoryBody::new(&row.inventory, None))),
        ),
    });
    Ok(context.modified_if_ever(answer, modified))
}

/// `GET …/inventories/{resource_class}`.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let found = context.of_provider(Varies::Yes, |uuid| view.state.inventories(uuid))?;
    let record = found
        .inventories
        .iter()
        .find(|(class, _)| class.as_str() == context.param(1));
    let Some((_, row)) = record else {
        return Err(not_found::inventory(context.param(1), context.param(0)));
    };
    let answer = Answer::json(&InventoryBody::new(&row.inventory, shown(found.generation)));
    Ok(context.modified(answer, Some(row.updated_at)))
}

/// Generation 0 is left out of single inventories.
fn shown(generation: Generation) -> Option<Generation> {
    Some(generation).filter(|generation| generation.0 != 0)
}

/// `POST …/inventories`.
pub(crate) async fn create(context: &RequestContext) -> Result<Answer, ApiError> {
    let provider = context.provider_or_404()?;
    let body = context.body_below(provider).await?;
    let class = body
        .get("resource_class")
        .and_then(Json::text)
        .unwrap_or_default();
    let resource_class = Given::from(class);
    let inventory = parse_record(class, &body);
    let inventory = context.found_below(provider, inventory).await?;
    let location = format!("/resource_providers/{provider}/inventories/{resource_class}");
    let command = Command::CreateInventory(CreateInventory {
        provider,
        resource_class,
        inventory,
        capacity_rule: capacity_rule(context.version),
    });
    let done = context
        .submit(command, WriteKind::CreateInventory { provider })
        .await?;
    let (answer, at) = echo(&body, &done);
    Ok(context.modified(answer.status(StatusCode::CREATED).location(location), at))
}

/// `PUT …/inventories/{resource_class}`.
pub(crate) async fn update(context: &RequestContext) -> Result<Answer, ApiError> {
    let provider = context.provider_or_404()?;
    let body = context.body_below(provider).await?;
    let inventory = parse_record(context.param(1), &body);
    let command = Command::UpdateInventory(UpdateInventory {
        provider,
        generation: given_generation(&body).unwrap_or_default(),
        resource_class: Given::from(context.param(1)),
        inventory: context.found_below(provider, inventory).await?,
        capacity_rule: capacity_rule(context.version),
    });
    let done = context.submit(command, WriteKind::UpdateInventory).await?;
    let (answer, at) = echo(&body, &done);
    Ok(context.modified(answer, at))
}

fn echo(body: &Json, done: &Done) -> (Answer, Option<placement_model::types::Timestamp>) {
    match done.reply {
        Reply::ProviderWritten { generation, at } => (
            Answer::json(&EchoBody::new(body, shown(generation))),
            Some(at),
        ),
        _ => (Answer::json(&EchoBody::new(body, None)), None),
    }
}

/// `PUT …/inventories`.
pub(crate) async fn replace(context: &RequestContext) -> Result<Answer, ApiError> {
    let provider = context.provider_or_404()?;
    let body = context.body_below(provider).await?;
    let parsed = parse_set(&body);
    let (generation, inventories) = context.found_below(provider, parsed).await?;
    context.admit(Carried::Inventories, inventories.len())?;
    let command = Command::ReplaceInventories(ReplaceInventories {
        provider,
        generation,
        inventories,
        capacity_rule: capacity_rule(context.version),
    });
    let done = context
        .submit(command, WriteKind::ReplaceInventories { provider })
        .await?;
    let Reply::ProviderWritten { generation, at } = done.reply else {
        return Err(ApiError::internal());
    };
    let given = body.get("inventories").unwrap_or(&Json::Null);
    let records: Vec<_> = given
        .members()
        .map(|(class, record)| (class, EchoBody::new(record, None)))
        .collect();
    let answer = Answer::json(&ListBody {
        resource_provider_generation: generation.0,
        inventories: Members(records.iter().map(|(class, record)| (class, record))),
    });
    let modified = Some(at).filter(|_| !records.is_empty());
    Ok(context.modified_if_ever(answer, modified))
}

/// `DELETE …/inventories/{resource_class}`.
pub(crate) async fn delete(context: &RequestContext) -> Result<Answer, ApiError> {
    let provider = context.provider_or_404()?;
    let resource_class = Given::from(context.param(1));
    let command = Command::DeleteInventory(DeleteInventory {
        provider,
        resource_class,
    });
    context.carry_out(command, WriteKind::DeleteInventory).await
}

/// `DELETE …/inventories`, from 1.5.
pub(crate) async fn delete_all(context: &RequestContext) -> Result<Answer, ApiError> {
    let provider = context.provider_or_404()?;
    let command = Command::DeleteInventories(DeleteInventories { provider });
    context
        .carry_out(command, WriteKind::DeleteInventories)
        .await
}

/// From 1.26 everything may be reserved.
fn capacity_rule(version: Microversion) -> CapacityRule {
    if version.from(26) {
        CapacityRule::NotNegative
    } else {
        CapacityRule::Positive
    }
}

/// A provider's whole set, as in `PUT …/inventories` and in the reshaper.
pub(crate) fn parse_set(
    body: &Json,
) -> Result<(Generation, BTreeMap<Given<ResourceClassName>, Inventory>), ApiError> {
    let records = body.get("inventories").unwrap_or(&Json::Null);
    let inventories = records
        .members()
        .map(|(class, record)| Ok((Given::from(class), parse_record(class, record)?)))
        .collect::<Result<_, ApiError>>()?;
    Ok((given_generation(body).unwrap_or_default(), inventories))
}

/// A record that fits the schema, or stands under a name that no class can have.
fn parse_record(class: &str, record: &Json) -> Result<Inventory, ApiError> {
    let whole = |key: &str, default: i64| {
        let given = record.get(key).and_then(Json::integer).unwrap_or(default);
        u32::try_from(given).unwrap_or_default()
    };
    let ratio = record
        .get("allocation_ratio")
        .and_then(Json::number)
        .unwrap_or(1.0);
    // Negative zero becomes zero.
    let ratio = if ratio == 0.0 { 0.0 } else { ratio };
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
