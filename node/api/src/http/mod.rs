//! The OpenStack Placement REST API, microversions from 1.0 on, over the traits of `backend.rs`.
//!
//! A request passes `edge`, which makes all checks that do not depend on its content and looks up
//! its operation in the table of `routes`. Each noun has a file with its handlers in `nouns`.
//! `wire` parses requests into the model's types, `errors` turns refusals into responses. This
//! module knows neither Raft nor the disk.

mod edge;
mod errors;
mod nouns;
mod openapi;
mod routes;
mod service;
mod wire;

pub use edge::callers::Callers;
pub use edge::claims::ClaimCounts;
pub use edge::limits::LimitCounts;
pub use edge::public_address::{PathPrefix, PublicAddress, PublicUrl};
pub use edge::searches::Searches;
pub use edge::service::{BodyTimeLimit, ErrorCode, Served};
pub use edge::settings::{
    ApiSection, ApiSettings, ApiTls, AuthSection, AuthStrategy, CallersSection, CandidateSettings,
    CorsSettings, FitSection, ReadsSection, RequestLimits,
};
pub use edge::settings::{GRACE, MIN_BYTES_PER_S};
pub use edge::stages::{STAGES, Stage};
pub use edge::state::Api;
pub use errors::Misdirected;
pub use errors::code::{CONFLICTS, NOTHING_COMMITTED, UNAVAILABLE};
pub use nouns::fits::{check_fits, count_fit};
pub use nouns::refuge::enabled_trees;
pub use openapi::PATH as OPENAPI;
pub use openapi::document as description;
pub use openapi::guarded;
pub use openapi::router as openapi;
pub use routes::{WEB, default_rules, read_policy};
pub use service::Service;

pub use placement_audit::identity::{CallingService, Identity};
