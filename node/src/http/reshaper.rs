//! `POST /reshaper`, from 1.30: moves inventories and allocations between providers in one step.

use placement_model::Command;
use placement_model::command::ReshapedInventories;
use placement_model::types::GivenUuid;

use super::answer::Answer;
use super::call::Call;
use super::errors::{ApiError, Doing};
use super::json::Json;
use super::{allocations, inventories, schema};

/// `POST /reshaper`.
pub(super) async fn reshape(call: &Call) -> Result<Answer, ApiError> {
    let body = call.body(schema::reshaper(call.version))?;
    let doing = Doing::Reshape;
    let given = body.get("inventories").unwrap_or(&Json::Null);
    let inventories = given
        .members()
        .map(|(provider, set)| {
            let (generation, inventories) = inventories::parse_set(set, doing)?;
            Ok(ReshapedInventories {
                provider: GivenUuid::from(provider),
                generation,
                inventories,
            })
        })
        .collect::<Result<_, ApiError>>()?;
    let consumers = body.get("allocations").unwrap_or(&Json::Null);
    let allocations = allocations::parse_consumers(consumers, call.version, doing)?;
    call.submit(
        Command::Reshape {
            inventories,
            allocations,
        },
        doing,
    )
    .await?;
    Ok(Answer::no_content())
}
