//! `POST /reshaper`, from 1.30: moves inventories and allocations between providers in one step.

use placement_model::Command;
use placement_model::command::ReshapedInventories;
use placement_model::types::GivenUuid;

use super::{allocations, inventories};
use crate::http::edge::answer::Answer;
use crate::http::edge::call::Call;
use crate::http::errors::{ApiError, Doing};
use crate::http::unnameable::Unnameable;
use crate::http::wire::json::Json;
use crate::http::wire::schema;

/// `POST /reshaper`.
pub(in crate::http) async fn reshape(call: &Call) -> Result<Answer, ApiError> {
    let body = call.body(schema::reshaper(call.version))?;
    let mut names = Unnameable::default();
    let given = body.get("inventories").unwrap_or(&Json::Null);
    let inventories = given
        .members()
        .map(|(provider, set)| {
            let (generation, inventories) = inventories::parse_set(set, &mut names)?;
            Ok(ReshapedInventories {
                provider: GivenUuid::from(provider),
                generation,
                inventories,
            })
        })
        .collect::<Result<_, ApiError>>()?;
    let consumers = body.get("allocations").unwrap_or(&Json::Null);
    let allocations = allocations::parse_consumers(consumers, call.version, &mut names)?;
    let command = Command::Reshape {
        inventories,
        allocations,
    };
    call.submit_naming(command, Doing::Reshape, &names).await?;
    Ok(Answer::no_content())
}
