//! The REST API for operators. The listener authorizes them, so it works without Keystone. Only
//! operators can use it, and the pages, which call it as the logged-in user. A request passes the
//! whole edge of its partition's API, policy and audit included.

use axum::extract::{Request, State};
use percent_encoding::percent_decode_str;
use placement_model::types::PartitionName;

use super::pages::User;
use super::partitions::no_partition;
use super::trail::operator;
use super::{Admin, Failed, HandlerResult};
use crate::partitions::FOR_OPERATORS;
use placement_api::http::Identity;
use placement_audit::Listener;
use placement_base::backend::{Consistency, View};
use placement_cluster::Refused;

/// Calls the API of the partition in the path.
pub(super) async fn ask(State(admin): State<Admin>, request: Request) -> HandlerResult {
    let path = percent_decode_str(request.uri().path()).decode_utf8_lossy();
    let below = path.strip_prefix(FOR_OPERATORS).unwrap_or_default();
    let name = below.split('/').next().unwrap_or_default();
    let user: Option<&User> = request.extensions().get();
    if !admin.shows(user, name) {
        // Answer like for a missing partition. That answer needs a leader, so this one does, too.
        let latest = admin.read.view(Consistency::Linearizable).await;
        latest.map_err(Refused::from)?;
        return Err(no_partition(name));
    }
    let (name, view) = existing(&admin, name).await?;
    let peer = request.extensions().get().copied();
    let (listener, caller) = match user {
        Some(User { token, .. }) => (Listener::Web, token.identity.clone()),
        None => {
            let operator = operator(&request);
            (Listener::Admin, Identity::operator(operator.as_deref()))
        }
    };
    let api = (admin.partitions).for_operators(view.destination().partition, &name);
    // Do not keep the state while the request is served.
    drop(view);
    let answer = api.respond_to_authorized(request, peer, listener, caller);
    Ok(answer.await)
}

/// The partition of this name, with a view of its state, if it exists. Checked first, because an
/// API object is created and kept for each requested partition.
pub(super) async fn existing(admin: &Admin, name: &str) -> Result<(PartitionName, View), Failed> {
    let name: PartitionName = name.parse().map_err(|_| no_partition(name))?;
    // This node may lag behind the node that created the partition.
    for consistency in [Consistency::Local, Consistency::Linearizable] {
        let view = admin.read.view(consistency).await;
        if let Ok(view) = view.map_err(Refused::from)?.in_named_partition(&name) {
            return Ok((name, view));
        }
    }
    Err(no_partition(name.as_str()))
}
