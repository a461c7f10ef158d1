//! The body of `POST /reshaper`.

use std::sync::LazyLock;

use super::pattern::Pattern;
use super::types::{Object, Schema};
use super::{allocations, inventories};
use crate::http::wire::microversion::Microversion;

fn body(minor: u8) -> Schema {
    let inventories = Schema::Object(Object {
        patterns: vec![(Pattern::uuid(), inventories::set())],
        min_properties: 1,
        ..Object::default()
    });
    Schema::Object(Object {
        properties: vec![
            ("inventories", inventories),
            ("allocations", allocations::many(minor, 0)),
        ],
        required: vec!["inventories", "allocations"],
        ..Object::default()
    })
}

/// `POST /reshaper`.
pub(in crate::http) fn reshaper(version: Microversion) -> &'static Schema {
    static FIRST: LazyLock<Schema> = LazyLock::new(|| body(30));
    static MAPPINGS: LazyLock<Schema> = LazyLock::new(|| body(34));
    static TYPES: LazyLock<Schema> = LazyLock::new(|| body(38));
    match version {
        version if version.from(38) => &TYPES,
        version if version.from(34) => &MAPPINGS,
        _ => &FIRST,
    }
}
