//! `GET /v1/topology`: combines the measurements of all members.

use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use futures::future::join_all;
use placement_wire::{NodeStatus, Topology};

use super::pages::User;
use super::status::node_status;
use super::{Admin, HandlerResult, relay};
use placement_cluster::replica::Replica;
use placement_cluster::topology::{MemberStatus, RoundTrips, topology_of};
use placement_peer::raft::messages::Order;

/// A member that does not answer within this counts as lost.
const PROBE: Duration = Duration::from_secs(3);

/// Omits partitions whose pages the user may not see.
pub(super) async fn topology(
    State(admin): State<Admin>,
    user: Option<Extension<User>>,
) -> HandlerResult {
    let running = admin.running()?;
    let user = user.as_deref();
    let located = admin
        .sections
        .iter()
        .filter(|one| !one.region.is_empty() && admin.shows(user, &one.name));
    let clouds: Vec<_> = located
        .map(|section| (section.name.clone(), section.region.clone()))
        .collect();
    Ok(Json(collect_topology(&admin, &running.replica, &clouds).await).into_response())
}

async fn collect_topology(
    admin: &Admin,
    replica: &Replica,
    clouds: &[(String, String)],
) -> Topology {
    let me = replica.me;
    let members = replica.members();
    let order = &Order {
        method: "GET".to_owned(),
        path: "/v1/status".to_owned(),
        ..Order::default()
    };
    let asked = members
        .iter()
        .filter(|(id, _)| **id != me)
        .map(|(id, member)| async move {
            let answered = relay::order(*id, &member.peer, admin, order, PROBE).await;
            let status: NodeStatus = serde_json::from_slice(&answered.ok()?.body.0).ok()?;
            Some((*id, status.round_trips))
        });
    let mut answers: Vec<_> = join_all(asked).await.into_iter().flatten().collect();
    answers.push((me, node_status(&admin.bootstrap).round_trips));

    let mut trips = RoundTrips::default();
    for (from, measured) in &answers {
        for way in measured {
            if let Ok(took) = Duration::try_from_secs_f64(way.ms / 1e3) {
                trips.note(*from, way.node, took);
            }
        }
    }
    let voters = replica.voters();
    let standings: Vec<MemberStatus> = members
        .into_iter()
        .map(|(node, member)| MemberStatus {
            node,
            site: *member.site,
            is_voter: voters.contains(&node),
            is_reachable: answers.iter().any(|(id, _)| *id == node),
        })
        .collect();
    // Without a quorum, a node still remembers who led.
    let leader = replica.leader().map(|leader| leader.id);
    let leader = leader.filter(|leader| answers.iter().any(|(id, _)| id == leader));
    let survive = admin
        .bootstrap
        .config
        .cluster
        .survive
        .map(|extent| extent.to_string())
        .unwrap_or_default();
    topology_of(&standings, &trips, leader, &survive, clouds)
}
