//! What happens to every request before and after its handler.

pub(in crate::http) mod accept;
pub(in crate::http) mod admission;
pub(in crate::http) mod answer;
pub(in crate::http) mod auth;
mod body;
pub(in crate::http) mod callers;
pub(in crate::http) mod consistency;
pub(in crate::http) mod cors;
pub(in crate::http) mod headers;
pub(in crate::http) mod policy;
mod progress;
pub(in crate::http) mod public_address;
pub(in crate::http) mod request_context;
pub(in crate::http) mod request_id;
pub(in crate::http) mod route;
pub(in crate::http) mod service;
mod session_cookie;
pub(in crate::http) mod settings;
pub(in crate::http) mod state;
