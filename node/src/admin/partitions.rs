//! Routes for the partitions of the cluster.

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use placement_model::command::{CreatePartition, DeletePartition, RoutePartition};
use placement_model::types::{InvalidName, PartitionId, PartitionName, PathPrefix, Route, Routes};
use placement_model::{Command, Outcome, Refusal, State as Model};
use placement_wire::{NewPartition, Partition, PartitionRoutes};

use super::{Admin, Failed, Forced, HandlerResult, User, detailed, done, failed, read};
use crate::partitions::PartitionSection;
use placement_base::backend::Unavailable;
use placement_cluster::Refused;

/// A partition as operators see it: its name, its state, its routes and its table in the settings
/// of this node.
pub(crate) fn described(
    name: &str,
    state: Option<&Model>,
    routes: &Routes,
    section: Option<&PartitionSection>,
) -> Partition {
    let sizes = state.map(Model::sizes);
    let routes = routes.iter().map(|route| match route {
        Route::Prefix(prefix) => format!("those below {prefix}"),
        Route::Host(host) => format!("those for host {host}"),
    });
    let listen = section
        .filter(|section| !section.listen.is_empty())
        .map(|section| format!("those to {}", section.listen));
    Partition {
        name: name.to_owned(),
        id: None,
        created_at: None,
        providers: sizes.map_or(0, |sizes| sizes.providers as u64),
        consumers: sizes.map_or(0, |sizes| sizes.consumers as u64),
        region: section.map_or_else(String::new, |section| section.region.clone()),
        ways: routes.chain(listen).collect(),
    }
}

/// # Errors
/// A route is malformed, there are too many, or a route covers the default partition's requests.
/// The default partition's prefix is not in the replicated state, so this node checks its own
/// setting.
fn parsed(routes: &PartitionRoutes, admin: &Admin) -> Result<Routes, Failed> {
    let PartitionRoutes { hosts, prefixes } = routes;
    let prefixes = prefixes.iter().map(|text| text.parse().map(Route::Prefix));
    let hosts = hosts.iter().map(|text| text.parse().map(Route::Host));
    let routes: Result<Vec<_>, _> = prefixes.chain(hosts).collect();
    let routes: Routes = routes.and_then(TryInto::try_into).map_err(malformed)?;
    let prefix = &admin.prefix;
    if let Some(route) = routes.iter().find(|route| covers(route, prefix)) {
        let detail = format!(
            "{route} would match the default partition's requests below {prefix} ([api] prefix)"
        );
        return Err(failed(StatusCode::CONFLICT, detail));
    }
    Ok(routes)
}

fn malformed(wrong: InvalidName) -> Failed {
    failed(StatusCode::BAD_REQUEST, wrong)
}

/// Whether requests below `prefix` match this route.
pub(super) fn covers(route: &Route, prefix: &PathPrefix) -> bool {
    matches!(route, Route::Prefix(own) if own.path().covers(prefix))
}

/// All partitions of the cluster, and configured partitions that the cluster lacks; for a user,
/// only those whose pages the user may see.
pub(super) async fn list(
    State(admin): State<Admin>,
    user: Option<Extension<User>>,
) -> HandlerResult {
    let current = admin.up_to_date().await?.replica.views.current();
    let sections = &admin.sections;
    let section = |name: &str| sections.iter().find(|section| section.name == name);
    let default = current.cluster.default_partition();
    let of_default = current.cluster.routing(PartitionId::DEFAULT).routes;
    let mut all = vec![Partition {
        id: Some(0),
        ..described(PartitionName::DEFAULT, Some(default), &of_default, None)
    }];
    for (id, row, state) in current.cluster.partitions() {
        let name = row.name.as_str();
        all.push(Partition {
            id: Some(id.0),
            created_at: Some(row.created_at.0),
            ..described(name, Some(state), &row.routing.routes, section(name))
        });
    }
    for section in sections.iter() {
        if current.cluster.partition_named(&section.name).is_none() {
            let none = Routes::default();
            all.push(described(&section.name, None, &none, Some(section)));
        }
    }
    all.retain(|one| admin.shows(user.as_deref(), &one.name));
    Ok(Json(all).into_response())
}

/// Creates a partition with its routes.
pub(super) async fn create(State(admin): State<Admin>, body: Bytes) -> HandlerResult {
    let NewPartition {
        name,
        hosts,
        prefixes,
    } = read(&body)?;
    let asked = format!("create partition {name:?}");
    let name = name.parse().map_err(malformed);
    let routes = PartitionRoutes { hosts, prefixes };
    let command = |name, routes| Command::CreatePartition(CreatePartition { name, routes });
    change(&admin, asked, name, &routes, command).await
}

/// Replaces the routes of a partition.
pub(super) async fn route(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    body: Bytes,
) -> HandlerResult {
    let routes = read(&body)?;
    let asked = format!("route partition {name:?}");
    let name = name.parse().map_err(|_| no_partition(&name));
    let command = |name, routes| Command::RoutePartition(RoutePartition { name, routes });
    change(&admin, asked, name, &routes, command).await
}

async fn change(
    admin: &Admin,
    asked: String,
    name: Result<PartitionName, Failed>,
    routes: &PartitionRoutes,
    command: fn(PartitionName, Routes) -> Command,
) -> HandlerResult {
    let PartitionRoutes { hosts, prefixes } = routes;
    let changed = async { carry_out(admin, command(name?, parsed(routes, admin)?)).await };
    let asked = format!("{asked}: hosts {hosts:?}, prefixes {prefixes:?}");
    detailed(asked, changed.await)
}

/// Deletes a partition with its content.
pub(super) async fn delete(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Query(Forced { force }): Query<Forced>,
) -> HandlerResult {
    let name = name.parse().map_err(|_| no_partition(&name))?;
    let command = Command::DeletePartition(DeletePartition { name, force });
    carry_out(&admin, command).await
}

pub(super) fn no_partition(name: &str) -> Failed {
    let detail =
        format!("there is no partition {name}: `placementctl partitions` lists the partitions");
    failed(StatusCode::NOT_FOUND, detail)
}

async fn carry_out(admin: &Admin, command: Command) -> HandlerResult {
    let request_id = format!("partitions: {}", command.name());
    let submitted = admin.write.submit(command, request_id).await;
    let written = submitted.map_err(|unavailable| match unavailable {
        Unavailable::NoSpace { .. } => failed(StatusCode::INSUFFICIENT_STORAGE, unavailable),
        _ => Refused::from(unavailable).into(),
    })?;
    let refusal = match written.outcome {
        Outcome::Done(_) => return done(),
        Outcome::Refused(refusal) => refusal,
        Outcome::AnsweredBefore => {
            let detail = "it was answered before; check the list of partitions";
            return Err(failed(StatusCode::SERVICE_UNAVAILABLE, detail));
        }
    };
    let (status, advice) = match &refusal {
        Refusal::PartitionNotFound(_) => (StatusCode::NOT_FOUND, ""),
        Refusal::DefaultWithoutHost => (
            StatusCode::CONFLICT,
            "; first route the hosts of its clients to it: `placementctl partitions route \
            default --host HOST`",
        ),
        Refusal::PartitionInUse(_) => (StatusCode::CONFLICT, "; --force deletes them with it"),
        _ => (StatusCode::CONFLICT, ""),
    };
    Err(failed(status, format!("{refusal}{advice}")))
}
