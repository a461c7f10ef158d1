//! Parsers and writers of the wire formats: JSON bodies, query strings, integers and UUIDs in
//! several spellings.

pub(crate) mod changes;
pub(crate) mod chunks;
pub(crate) mod explanation;
pub(crate) mod json;
pub(crate) mod microversion;
pub(crate) mod own;
pub(crate) mod query;
pub(crate) mod schema;
pub(crate) mod spelling;
pub(crate) mod values;
