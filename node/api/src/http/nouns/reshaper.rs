//! `POST /reshaper`, from 1.30: moves inventories and allocations between providers in one step.

use placement_model::Command;
use placement_model::command::{Reshape, ReshapedInventories};
use placement_model::types::Given;

use super::{allocations, inventories};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, WriteKind};

pub(crate) async fn reshape(context: &RequestContext) -> Result<Answer, ApiError> {
    let body = context.body().await?;
    let inventories = body
        .member("inventories")
        .members()
        .map(|(provider, set)| {
            let (generation, inventories) = inventories::parse_set(set)?;
            Ok(ReshapedInventories {
                provider: Given::from(provider),
                generation,
                inventories,
            })
        })
        .collect::<Result<Vec<_>, ApiError>>()?;
    context.admit("providers", inventories.len(), |limits| limits.providers)?;
    let sets = inventories.iter().map(|set| set.inventories.len());
    context.admit("inventories", sets.sum(), |limits| limits.inventories)?;
    let allocations = allocations::parse_consumers(context, body.member("allocations"))?;
    let command = Command::Reshape(Reshape {
        inventories,
        allocations,
    });
    context.carry_out(command, WriteKind::Reshape).await
}
