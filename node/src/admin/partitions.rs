//! The partitions of the cluster: which there are, and how they come and go.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use placement_model::command::{CreatePartition, DeletePartition};
use placement_model::types::PartitionName;
use placement_model::{Command, Outcome, Refusal, State as Model};
use serde::{Deserialize, Serialize};

use super::{Admin, Forced, detailed, error, read};
use crate::config::PartitionSection;
use crate::doors::{Consistency, Unavailable};

/// A partition, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionReport {
    /// Its name.
    pub name: String,
    /// What stands for it in the log; `None`: the cluster does not have it, although this node serves it.
    pub id: Option<u16>,
    /// When it was made, in microseconds since 1970; `None` for the default one, which was always there.
    pub created_at: Option<i64>,
    /// Resource providers.
    pub providers: usize,
    /// Consumer records.
    pub consumers: usize,
    /// The region in which its cloud is, as this node is configured.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// The ways that lead to it on this node.
    pub ways: Vec<String>,
}

impl PartitionReport {
    fn of(name: &str, state: Option<&Model>, section: Option<&PartitionSection>) -> Self {
        let sizes = state.map(Model::sizes);
        let ways = section.and_then(|section| section.ways().ok());
        Self {
            name: name.to_owned(),
            id: None,
            created_at: None,
            providers: sizes.map_or(0, |sizes| sizes.providers),
            consumers: sizes.map_or(0, |sizes| sizes.consumers),
            region: section.map_or_else(String::new, |section| section.region.clone()),
            ways: (ways.iter().flatten()).map(ToString::to_string).collect(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    name: String,
}

/// All partitions of the cluster, and those that this node serves and the cluster does not have.
pub(super) async fn list(State(admin): State<Admin>) -> Response {
    let running = match admin.running() {
        Ok(running) => running,
        Err(response) => return *response,
    };
    // What others have just made is listed, if a leader can say so; else what this node knows.
    let _ = admin.read.view(Consistency::Linearizable).await;
    let current = running.replica.views.current();
    let sections = &admin.bootstrap.config.partitions;
    let section = |name: &str| sections.iter().find(|section| section.name == name);
    let default = current.cluster.default_partition();
    let mut all = vec![PartitionReport {
        id: Some(0),
        ..PartitionReport::of(PartitionName::DEFAULT, Some(default), None)
    }];
    for (id, row, state) in current.cluster.partitions() {
        let name = row.name.as_str();
        all.push(PartitionReport {
            id: Some(id.0),
            created_at: Some(row.created_at.0),
            ..PartitionReport::of(name, Some(state), section(name))
        });
    }
    for section in sections {
        if current.cluster.partition_named(&section.name).is_none() {
            all.push(PartitionReport::of(&section.name, None, Some(section)));
        }
    }
    Json(all).into_response()
}

/// Makes one.
pub(super) async fn create(State(admin): State<Admin>, body: Bytes) -> Response {
    let name = match read::<New>(&body) {
        Ok(New { name }) => name,
        Err(response) => return *response,
    };
    let said = format!("create partition {name:?}");
    let response = match name.parse() {
        Ok(name) => {
            let command = Command::CreatePartition(CreatePartition { name });
            carry_out(&admin, command).await
        }
        Err(wrong) => error(StatusCode::BAD_REQUEST, &format!("{wrong}")),
    };
    detailed(said, response)
}

/// Deletes one with all that is in it.
pub(super) async fn delete(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Query(Forced { force }): Query<Forced>,
) -> Response {
    match name.parse() {
        Ok(name) => {
            let command = Command::DeletePartition(DeletePartition { name, force });
            carry_out(&admin, command).await
        }
        Err(_) => error(
            StatusCode::NOT_FOUND,
            &format!("there is no partition {name}"),
        ),
    }
}

async fn carry_out(admin: &Admin, command: Command) -> Response {
    let request_id = format!("partitions: {}", command.name());
    let refusal = match admin.write.submit(command, request_id).await {
        Ok(written) => match written.outcome {
            Outcome::Done(_) => return StatusCode::NO_CONTENT.into_response(),
            Outcome::Refused(refusal) => refusal,
            Outcome::AnsweredBefore => {
                return error(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "it was answered before; look at the list of partitions",
                );
            }
        },
        Err(unavailable @ Unavailable::NoSpace { .. }) => {
            return error(StatusCode::INSUFFICIENT_STORAGE, &unavailable.to_string());
        }
        Err(unavailable) => {
            return error(StatusCode::SERVICE_UNAVAILABLE, &unavailable.to_string());
        }
    };
    let (status, advice) = match &refusal {
        Refusal::PartitionNotFound(_) => (StatusCode::NOT_FOUND, ""),
        Refusal::PartitionInUse(_) => (StatusCode::CONFLICT, "; --force deletes them with it"),
        _ => (StatusCode::CONFLICT, ""),
    };
    error(status, &format!("{refusal}{advice}"))
}
