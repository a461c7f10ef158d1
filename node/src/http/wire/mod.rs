//! The formats that clients write: JSON bodies, query strings, and texts as Python reads them.

pub(in crate::http) mod chunks;
pub(in crate::http) mod json;
pub(in crate::http) mod like;
pub(in crate::http) mod microversion;
pub(in crate::http) mod pretty;
pub(in crate::http) mod python;
pub(in crate::http) mod query;
pub(in crate::http) mod schema;
pub(in crate::http) mod values;
