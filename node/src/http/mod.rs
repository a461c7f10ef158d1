//! The OpenStack Placement REST API, microversions 1.0 to 1.39, over the two doors.
//!
//! `service` is the way of a request, `routes` the page of all routes, and each noun has a file
//! with its handlers. `schema` and `query` turn wire formats into the model's types, `errors` turns
//! refusals into responses. Nothing here knows of Raft or of the disk.

mod accept;
mod aggregates;
mod allocation_candidates;
mod allocations;
mod answer;
mod auth;
mod call;
mod consistency;
mod cors;
mod errors;
mod headers;
mod inventories;
mod json;
mod like;
mod microversion;
mod openapi;
mod outside;
mod policy;
mod pretty;
mod python;
mod query;
mod request_id;
mod reshaper;
mod resource_classes;
mod resource_providers;
mod root;
mod routes;
mod schema;
mod service;
mod settings;
mod traits;
mod unnameable;
mod usages;
mod wire;

use std::sync::Arc;

pub(crate) use openapi::router as openapi;
pub use outside::{Clock, Offload, RealWorld, UuidSource};
pub use policy::{PolicyError, check_policy_file};
pub use service::ServedRoute;
pub use settings::{
    ApiSettings, AuthSettings, AuthStrategy, CandidateSettings, CorsSettings, PolicySettings,
};

use crate::cluster::doors::{ReadDoor, WriteDoor};

/// What the API is made of.
#[derive(Clone)]
pub struct Api {
    /// Where writes go.
    pub write: Arc<dyn WriteDoor>,
    /// Where reads come from.
    pub read: Arc<dyn ReadDoor>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Fresh UUIDs.
    pub ids: Arc<dyn UuidSource>,
    /// Where long searches run.
    pub offload: Arc<dyn Offload>,
    /// What the operator chose.
    pub settings: ApiSettings,
}

/// The whole API as one service, to be mounted at `/` (it answers every path).
pub fn router(api: Api) -> axum::Router {
    let authenticator = match api.settings.auth.strategy {
        AuthStrategy::NoAuth2 => Box::new(auth::NoAuth2),
    };
    let policy = policy::Policy::new(&api.settings.policy);
    let server = Arc::new(call::Server {
        api,
        authenticator,
        policy,
    });
    axum::Router::new().fallback(move |request| service::respond(server.clone(), request))
}
