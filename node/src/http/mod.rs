//! The OpenStack Placement REST API, microversions 1.0 to 1.39, over the two doors.
//!
//! A request comes in through `edge`, which checks all that does not depend on what is asked, and
//! finds its operation on the page of all `routes`. Each noun has a file with its handlers in
//! `nouns`. `wire` turns what clients write into the model's types, `errors` turns refusals into
//! responses. Nothing here knows of Raft or of the disk.

mod edge;
mod errors;
mod nouns;
mod openapi;
mod routes;
mod service;
mod wire;

pub(crate) use edge::auth::{CallingService, Identity};
pub(crate) use edge::callers::Callers;
pub use edge::policy::{Mistake, Policy, PolicyError};
pub(crate) use edge::policy::{Target, default_rules};
pub use edge::public_address::{PathPrefix, PublicAddress, PublicUrl};
pub use edge::service::Served;
pub(crate) use edge::settings::BODY_COST;
pub use edge::settings::{
    ApiSettings, AuthSettings, AuthStrategy, CallerLimits, CandidateSettings, CorsSettings,
    KeystoneSettings, PolicySettings, ReadSettings, RequestLimits,
};
pub use edge::state::Api;
pub(crate) use errors::Misdirected;
pub(crate) use errors::code::NOTHING_COMMITTED;
pub use openapi::document as description;
pub(crate) use openapi::{PATH as OPENAPI, guarded, router as openapi};
pub use service::Service;
