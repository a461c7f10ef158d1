//! What clients write and read: JSON, query strings, and how the reference reads them.

pub(in crate::http) mod json;
pub(in crate::http) mod like;
pub(in crate::http) mod microversion;
pub(in crate::http) mod pretty;
pub(in crate::http) mod python;
pub(in crate::http) mod query;
pub(in crate::http) mod schema;
pub(in crate::http) mod values;
