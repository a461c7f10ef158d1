//! The formats that clients write: JSON bodies, query strings, integers and UUIDs in several spellings.

pub(in crate::http) mod chunks;
pub(in crate::http) mod json;
pub(in crate::http) mod microversion;
pub(in crate::http) mod query;
pub(in crate::http) mod schema;
pub(in crate::http) mod spelling;
pub(in crate::http) mod values;
