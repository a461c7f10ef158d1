//! Bodies of allocations.

use std::sync::LazyLock;

use super::newest::newest;
use super::pattern::Pattern;
use super::types::{Object, Schema, Text};
use crate::http::wire::microversion::Microversion;

/// What microversions changed about one consumer's allocations.
#[derive(Clone, Copy)]
struct Shape {
    /// 1.8: who is charged.
    project: bool,
    /// 1.12: a dict by provider rather than a list.
    dict: bool,
    /// `POST`, and 1.28: allocations may be empty.
    may_be_empty: bool,
    /// 1.28: what the client believes about the consumer.
    generation: bool,
    /// 1.34: which group each provider serves.
    mappings: bool,
    /// 1.38: the consumer's type.
    consumer_type: bool,
}

fn resources() -> Schema {
    Schema::Object(Object {
        patterns: vec![(Pattern::upper(), Schema::integer_from(1))],
        min_properties: 1,
        ..Object::default()
    })
}

fn list() -> Schema {
    let provider = Schema::Object(Object {
        properties: vec![("uuid", Schema::uuid())],
        required: vec!["uuid"],
        ..Object::default()
    });
    let item = Schema::Object(Object {
        properties: vec![("resource_provider", provider), ("resources", resources())],
        required: vec!["resource_provider", "resources"],
        ..Object::default()
    });
    Schema::Array {
        items: Box::new(item),
        min_items: 1,
        unique: false,
    }
}

fn dict(may_be_empty: bool) -> Schema {
    let item = Schema::Object(Object {
        properties: vec![
            ("generation", Schema::integer()),
            ("resources", resources()),
        ],
        required: vec!["resources"],
        ..Object::default()
    });
    Schema::Object(Object {
        patterns: vec![(Pattern::uuid(), item)],
        min_properties: usize::from(!may_be_empty),
        ..Object::default()
    })
}

fn mappings() -> Schema {
    let providers = Schema::Array {
        items: Box::new(Schema::uuid()),
        min_items: 1,
        unique: false,
    };
    Schema::Object(Object {
        patterns: vec![(Pattern::mapping_key(), providers)],
        additional: true,
        min_properties: 1,
        ..Object::default()
    })
}

fn consumer(shape: Shape) -> Schema {
    let allocations = if shape.dict {
        dict(shape.may_be_empty)
    } else {
        list()
    };
    let mut object = Object {
        properties: vec![("allocations", allocations)],
        required: vec!["allocations"],
        ..Object::default()
    };
    let mut add = |name, schema, required: bool| {
        object.properties.push((name, schema));
        if required {
            object.required.push(name);
        }
    };
    if shape.project {
        add("project_id", Schema::text_of(1, 255), true);
        add("user_id", Schema::text_of(1, 255), true);
    }
    if shape.generation {
        add(
            "consumer_generation",
            Schema::Nullable(Box::new(Schema::integer())),
            true,
        );
    }
    if shape.mappings {
        add("mappings", mappings(), false);
    }
    if shape.consumer_type {
        let name = Text {
            min_length: 1,
            max_length: Some(255),
            pattern: Some(Pattern::upper()),
            ..Text::default()
        };
        add("consumer_type", Schema::Text(name), true);
    }
    Schema::Object(object)
}

const SHAPES: [(u8, Shape); 6] = [
    (
        38,
        Shape {
            consumer_type: true,
            ..SHAPE_34
        },
    ),
    (34, SHAPE_34),
    (28, SHAPE_28),
    (12, SHAPE_12),
    (8, SHAPE_8),
    (
        0,
        Shape {
            project: false,
            ..SHAPE_8
        },
    ),
];
const SHAPE_34: Shape = Shape {
    mappings: true,
    ..SHAPE_28
};
const SHAPE_28: Shape = Shape {
    generation: true,
    may_be_empty: true,
    ..SHAPE_12
};
const SHAPE_12: Shape = Shape {
    dict: true,
    ..SHAPE_8
};
const SHAPE_8: Shape = Shape {
    project: true,
    dict: false,
    may_be_empty: false,
    generation: false,
    mappings: false,
    consumer_type: false,
};

/// `PUT /allocations/{consumer}`.
pub(in crate::http) fn put_allocations(version: Microversion) -> &'static Schema {
    static SCHEMAS: LazyLock<Vec<(u8, Schema)>> =
        LazyLock::new(|| SHAPES.map(|(minor, shape)| (minor, consumer(shape))).into());
    newest(&SCHEMAS, version)
}

/// Many consumers, as in `POST /allocations` and `POST /reshaper`.
pub(super) fn many(shape_of: u8, min_properties: usize) -> Schema {
    let (_, shape) = SHAPES
        .into_iter()
        .find(|(minor, _)| shape_of >= *minor)
        .unwrap_or(SHAPES[0]);
    let one = consumer(Shape {
        may_be_empty: true,
        ..shape
    });
    Schema::Object(Object {
        patterns: vec![(Pattern::uuid(), one)],
        min_properties,
        ..Object::default()
    })
}

/// `POST /allocations`.
pub(in crate::http) fn post_allocations(version: Microversion) -> &'static Schema {
    static SCHEMAS: LazyLock<Vec<(u8, Schema)>> =
        LazyLock::new(|| [38, 34, 28, 13].map(|minor| (minor, many(minor, 1))).into());
    newest(&SCHEMAS, version)
}
