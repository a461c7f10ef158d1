//! The stages that every request passes before and after its handler.

pub(crate) mod accept;
pub(crate) mod admission;
pub(crate) mod answer;
mod answer_body;
pub(crate) mod as_of;
pub(crate) mod auth;
mod body;
pub(crate) mod budget;
pub(crate) mod callers;
pub(crate) mod claims;
pub(crate) mod consistency;
pub(crate) mod cors;
pub(crate) mod explanations;
pub(crate) mod headers;
pub(crate) mod ledger;
pub(crate) mod patience;
mod progress;
pub(crate) mod public_address;
pub(crate) mod request_context;
pub(crate) mod route;
pub(crate) mod searches;
pub(crate) mod service;
pub(crate) mod settings;
pub(crate) mod stages;
pub(crate) mod state;
pub(crate) mod tail;
