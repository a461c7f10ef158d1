//! The partitions of the cluster: which there are, and how they come and go.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use placement_model::command::{CreatePartition, DeletePartition, RoutePartition};
use placement_model::types::{InvalidName, PartitionId, PartitionName, Route, Routes};
use placement_model::{Command, Outcome, Refusal, State as Model};
use placement_wire::Partition;
use serde::Deserialize;

use super::{Admin, Forced, detailed, error, nothing_committed, read};
use crate::config::PartitionSection;
use crate::doors::{Consistency, Unavailable};

/// What is said of a partition by its name, its state, its routes and the asked node's table of it.
fn described(
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
    let listen = section.filter(|section| !section.listen.is_empty());
    let listen = listen.map(|section| format!("those to {}", section.listen));
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    name: String,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    prefixes: Vec<String>,
}

/// What requests are recognised by.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewRoutes {
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    prefixes: Vec<String>,
}

impl NewRoutes {
    fn describe(&self) -> String {
        format!("hosts {:?}, prefixes {:?}", self.hosts, self.prefixes)
    }

    /// # Errors
    /// One that has no such form, or too many.
    fn parse(&self) -> Result<Routes, InvalidName> {
        let prefixes = self
            .prefixes
            .iter()
            .map(|text| text.parse().map(Route::Prefix));
        let hosts = self.hosts.iter().map(|text| text.parse().map(Route::Host));
        prefixes
            .chain(hosts)
            .collect::<Result<Vec<_>, _>>()?
            .try_into()
    }
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
    let routes = |id| current.cluster.routing(id).routes;
    let of_default = routes(PartitionId::DEFAULT);
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
    for section in sections {
        if current.cluster.partition_named(&section.name).is_none() {
            let none = Routes::default();
            all.push(described(&section.name, None, &none, Some(section)));
        }
    }
    Json(all).into_response()
}

/// Makes one.
pub(super) async fn create(State(admin): State<Admin>, body: Bytes) -> Response {
    let (name, routes) = match read(&body) {
        Ok(New {
            name,
            hosts,
            prefixes,
        }) => (name, NewRoutes { hosts, prefixes }),
        Err(response) => return *response,
    };
    let said = format!("create partition {name:?}: {}", routes.describe());
    let parsed = name.parse().and_then(|name| Ok((name, routes.parse()?)));
    let response = match parsed {
        Ok((name, routes)) => match admin.may_route(&routes) {
            Ok(()) => {
                let command = Command::CreatePartition(CreatePartition { name, routes });
                carry_out(&admin, command).await
            }
            Err(response) => *response,
        },
        Err(wrong) => error(StatusCode::BAD_REQUEST, &format!("{wrong}")),
    };
    detailed(said, response)
}

/// Gives one these routes in place of those that it has.
pub(super) async fn route(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    body: Bytes,
) -> Response {
    let routes = match read::<NewRoutes>(&body) {
        Ok(routes) => routes,
        Err(response) => return *response,
    };
    let said = format!("route partition {name:?}: {}", routes.describe());
    let response = match (name.parse(), routes.parse()) {
        (Ok(name), Ok(routes)) => match admin.may_route(&routes) {
            Ok(()) => {
                let command = Command::RoutePartition(RoutePartition { name, routes });
                carry_out(&admin, command).await
            }
            Err(response) => *response,
        },
        (Err(_), _) => no_partition(&name),
        (_, Err(wrong)) => error(StatusCode::BAD_REQUEST, &format!("{wrong}")),
    };
    detailed(said, response)
}

impl Admin {
    /// The path of the default partition is not in the state: this node looks at its own.
    fn may_route(&self, routes: &Routes) -> Result<(), Box<Response>> {
        let Ok(api) = self.bootstrap.config.public_address() else {
            return Ok(());
        };
        let covers = |route: &&Route| match route {
            Route::Prefix(prefix) => prefix.path().covers(&api.prefix),
            Route::Host(_) => false,
        };
        match routes.iter().find(covers) {
            None => Ok(()),
            Some(route) => Err(Box::new(error(
                StatusCode::CONFLICT,
                &format!(
                    "{route} would take the default partition's requests, which are below {} ([api] prefix)",
                    api.prefix
                ),
            ))),
        }
    }
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
        Err(_) => no_partition(&name),
    }
}

fn no_partition(name: &str) -> Response {
    let words = format!("there is no partition {name}");
    error(StatusCode::NOT_FOUND, &words)
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
            return match unavailable.reason_of_nothing() {
                Some(reason) => nothing_committed(&reason),
                None => error(StatusCode::SERVICE_UNAVAILABLE, &unavailable.to_string()),
            };
        }
    };
    let (status, advice) = match &refusal {
        Refusal::PartitionNotFound(_) => (StatusCode::NOT_FOUND, ""),
        Refusal::DefaultWithoutHost => (
            StatusCode::CONFLICT,
            "; give it the hosts that its clients ask for first: `placementctl partitions route default --host HOST`",
        ),
        Refusal::PartitionInUse(_) => (StatusCode::CONFLICT, "; --force deletes them with it"),
        _ => (StatusCode::CONFLICT, ""),
    };
    error(status, &format!("{refusal}{advice}"))
}
