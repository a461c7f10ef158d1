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
mod public_address;
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

use arc_swap::ArcSwap;

pub(crate) use openapi::router as openapi;
pub use outside::{Clock, Offload, RealWorld, UuidSource};
pub use policy::{PolicyError, check_policy_file};
pub use public_address::{PathPrefix, PublicAddress, PublicUrl};
pub use service::ServedRoute;
pub use settings::{
    ApiSettings, AuthSettings, AuthStrategy, CandidateSettings, CorsSettings, PolicySettings,
};

use crate::cluster::doors::{ReadDoor, Readiness, WriteDoor};

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
    /// Whether this node can serve what it promises.
    pub readiness: Arc<dyn Readiness>,
    /// What the operator chose.
    pub settings: ApiSettings,
}

/// The whole API as one service, to be mounted at `/` (it answers every path).
pub fn router(api: Api) -> axum::Router {
    service(api).0
}

/// The same, with what can be changed while it serves.
pub fn service(api: Api) -> (axum::Router, Changeable) {
    let authenticator = match api.settings.auth.strategy {
        AuthStrategy::NoAuth2 => Box::new(auth::NoAuth2),
    };
    let policy = ArcSwap::from_pointee(policy::Policy::new(&api.settings.policy));
    let server = Arc::new(call::Server {
        api,
        authenticator,
        policy,
    });
    let changeable = Changeable(server.clone());
    let router =
        axum::Router::new().fallback(move |request| service::respond(server.clone(), request));
    (router, changeable)
}

/// What of the API can be changed while it serves.
pub struct Changeable(Arc<call::Server>);

impl Changeable {
    /// Reads the rules again and judges by them from now on, under other settings too.
    ///
    /// # Errors
    /// A file that cannot be understood; then the rules from before stay in force.
    pub fn policy(&self, settings: &PolicySettings) -> Result<(), PolicyError> {
        self.0
            .policy
            .store(Arc::new(policy::Policy::read(settings)?));
        Ok(())
    }
}
