//! The partitions of the cluster: which there are, and how they come and go.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use placement_model::command::{CreatePartition, DeletePartition, RoutePartition};
use placement_model::types::{InvalidName, PartitionId, PartitionName, Route, Routes};
use placement_model::{Command, Outcome, Refusal, State as Model};
use placement_wire::Partition;
use serde::Deserialize;

use super::{Admin, Answer, Failed, Forced, detailed, failed, nothing_committed, read};
use crate::partitions::PartitionSection;
use placement_api::doors::{Consistency, Unavailable};

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
pub(super) async fn list(State(admin): State<Admin>) -> Answer {
    let running = admin.running()?;
    // What others have just made is listed, if a leader can say so; else what this node knows.
    let _ = admin.read.view(Consistency::Linearizable).await;
    let current = running.replica.views.current();
    let sections = &admin.sections;
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
    for section in sections.iter() {
        if current.cluster.partition_named(&section.name).is_none() {
            let none = Routes::default();
            all.push(described(&section.name, None, &none, Some(section)));
        }
    }
    Ok(Json(all).into_response())
}

/// Makes one.
pub(super) async fn create(State(admin): State<Admin>, body: Bytes) -> Answer {
    let New {
        name,
        hosts,
        prefixes,
    } = read(&body)?;
    let routes = NewRoutes { hosts, prefixes };
    let said = format!("create partition {name:?}: {}", routes.describe());
    let made = async {
        let name = name.parse().map_err(malformed)?;
        let routes = routes.parse().map_err(malformed)?;
        admin.may_route(&routes)?;
        let command = Command::CreatePartition(CreatePartition { name, routes });
        carry_out(&admin, command).await
    };
    detailed(said, made.await)
}

/// Gives one these routes in place of those that it has.
pub(super) async fn route(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    body: Bytes,
) -> Answer {
    let routes: NewRoutes = read(&body)?;
    let said = format!("route partition {name:?}: {}", routes.describe());
    let routed = async {
        let name = name.parse().map_err(|_| no_partition(&name))?;
        let routes = routes.parse().map_err(malformed)?;
        admin.may_route(&routes)?;
        let command = Command::RoutePartition(RoutePartition { name, routes });
        carry_out(&admin, command).await
    };
    detailed(said, routed.await)
}

fn malformed(wrong: InvalidName) -> Failed {
    failed(StatusCode::BAD_REQUEST, &wrong.to_string())
}

impl Admin {
    /// The path of the default partition is not in the state: this node looks at its own.
    fn may_route(&self, routes: &Routes) -> Result<(), Failed> {
        let covers = |route: &&Route| match route {
            Route::Prefix(prefix) => prefix.path().covers(&self.prefix),
            Route::Host(_) => false,
        };
        match routes.iter().find(covers) {
            None => Ok(()),
            Some(route) => Err(failed(
                StatusCode::CONFLICT,
                &format!(
                    "{route} would take the default partition's requests, which are below {} ([api] prefix)",
                    self.prefix
                ),
            )),
        }
    }
}

/// Deletes one with all that is in it.
pub(super) async fn delete(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Query(Forced { force }): Query<Forced>,
) -> Answer {
    let name = name.parse().map_err(|_| no_partition(&name))?;
    let command = Command::DeletePartition(DeletePartition { name, force });
    carry_out(&admin, command).await
}

fn no_partition(name: &str) -> Failed {
    let words = format!("there is no partition {name}");
    failed(StatusCode::NOT_FOUND, &words)
}

async fn carry_out(admin: &Admin, command: Command) -> Answer {
    let request_id = format!("partitions: {}", command.name());
    let submitted = admin.write.submit(command, request_id).await;
    let written = submitted.map_err(|unavailable| {
        let words = unavailable.to_string();
        match (&unavailable, unavailable.reason_of_nothing()) {
            (Unavailable::NoSpace { .. }, _) => failed(StatusCode::INSUFFICIENT_STORAGE, &words),
            (_, Some(reason)) => nothing_committed(&reason),
            (_, None) => failed(StatusCode::SERVICE_UNAVAILABLE, &words),
        }
    })?;
    let refusal = match written.outcome {
        Outcome::Done(_) => return Ok(StatusCode::NO_CONTENT.into_response()),
        Outcome::Refused(refusal) => refusal,
        Outcome::AnsweredBefore => {
            let words = "it was answered before; look at the list of partitions";
            return Err(failed(StatusCode::SERVICE_UNAVAILABLE, words));
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
    Err(failed(status, &format!("{refusal}{advice}")))
}
