//! Bodies of inventories.

use std::sync::LazyLock;

use super::pattern::Pattern;
use super::types::{Object, Schema, Text};

/// The largest integer of a database column.
const INT_MAX: i64 = 2_147_483_647;
/// The largest float of a database column.
const RATIO_MAX: f64 = 3.40282e+38;

fn record(required: Vec<&'static str>, with_class: bool) -> Object {
    let whole = |min| Schema::Integer {
        min: Some(min),
        max: Some(INT_MAX),
    };
    let mut properties = vec![
        ("resource_provider_generation", Schema::integer()),
        ("total", whole(1)),
        ("reserved", whole(0)),
        ("min_unit", whole(1)),
        ("max_unit", whole(1)),
        ("step_size", whole(1)),
        ("allocation_ratio", Schema::Number { max: RATIO_MAX }),
    ];
    if with_class {
        let class = Text {
            pattern: Some(Pattern::upper()),
            ..Text::default()
        };
        properties.push(("resource_class", Schema::Text(class)));
    }
    Object {
        properties,
        required,
        ..Object::default()
    }
}

/// `PUT …/inventories/{class}`.
pub(in crate::http) fn put_inventory() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        Schema::Object(record(vec!["total", "resource_provider_generation"], false))
    });
    &SCHEMA
}

/// `POST …/inventories`.
pub(in crate::http) fn post_inventory() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> =
        LazyLock::new(|| Schema::Object(record(vec!["total", "resource_class"], true)));
    &SCHEMA
}

/// A provider's whole set, as in `PUT …/inventories`. Members of `inventories` whose names are
/// no resource class's are let through; they are found to be unknown classes later.
pub(super) fn set() -> Schema {
    let inventories = Object {
        patterns: vec![(
            Pattern::upper(),
            Schema::Object(record(vec!["total"], false)),
        )],
        additional: true,
        ..Object::default()
    };
    Schema::Object(Object {
        properties: vec![
            ("resource_provider_generation", Schema::integer()),
            ("inventories", Schema::Object(inventories)),
        ],
        required: vec!["resource_provider_generation", "inventories"],
        ..Object::default()
    })
}

/// `PUT …/inventories`.
pub(in crate::http) fn put_inventories() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(set);
    &SCHEMA
}
