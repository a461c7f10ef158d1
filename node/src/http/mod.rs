//! The OpenStack Placement REST API, microversions 1.0 to 1.39, over the two doors.

mod outside;
mod settings;

use std::sync::Arc;

pub use outside::{Clock, Offload, RealWorld, UuidSource};
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
    let _ = api;
    axum::Router::new()
}
