//! Bodies that are little more than names: resource classes, traits, aggregates.

use std::sync::LazyLock;

use super::pattern::Pattern;
use super::types::{Object, Schema, Text};
use crate::http::wire::microversion::Microversion;

/// A custom resource class: `POST /resource_classes`, `PUT /resource_classes/{name}`.
pub(in crate::http) fn resource_class() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let name = Text {
            max_length: Some(255),
            pattern: Some(Pattern::custom()),
            ..Text::default()
        };
        Schema::Object(Object {
            properties: vec![("name", Schema::Text(name))],
            required: vec!["name"],
            ..Object::default()
        })
    });
    &SCHEMA
}

/// `PUT /resource_providers/{uuid}/traits`.
pub(in crate::http) fn provider_traits() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let traits = Schema::Array {
            items: Box::new(Schema::text_of(1, 255)),
            min_items: 0,
            unique: false,
        };
        Schema::Object(Object {
            properties: vec![
                ("traits", traits),
                ("resource_provider_generation", Schema::integer()),
            ],
            required: vec!["traits", "resource_provider_generation"],
            ..Object::default()
        })
    });
    &SCHEMA
}

/// `PUT /resource_providers/{uuid}/aggregates`.
pub(in crate::http) fn aggregates(version: Microversion) -> &'static Schema {
    static LIST: LazyLock<Schema> = LazyLock::new(aggregate_list);
    static WITH_GENERATION: LazyLock<Schema> = LazyLock::new(|| {
        Schema::Object(Object {
            properties: vec![
                ("aggregates", aggregate_list()),
                ("resource_provider_generation", Schema::integer()),
            ],
            required: vec!["aggregates", "resource_provider_generation"],
            ..Object::default()
        })
    });
    if version.from(19) {
        &WITH_GENERATION
    } else {
        &LIST
    }
}

fn aggregate_list() -> Schema {
    Schema::Array {
        items: Box::new(Schema::uuid()),
        min_items: 0,
        unique: true,
    }
}
