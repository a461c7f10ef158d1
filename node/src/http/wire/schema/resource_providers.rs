//! Bodies of resource providers.

use std::sync::LazyLock;

use super::types::{Object, Schema};
use crate::http::wire::microversion::Microversion;

fn provider(with_uuid: bool, with_parent: bool) -> Schema {
    let mut properties = vec![("name", Schema::text_of(0, 200))];
    if with_uuid {
        properties.push(("uuid", Schema::uuid()));
    }
    if with_parent {
        properties.push((
            "parent_provider_uuid",
            Schema::Nullable(Box::new(Schema::uuid())),
        ));
    }
    Schema::Object(Object {
        properties,
        required: vec!["name"],
        ..Object::default()
    })
}

/// `POST /resource_providers`.
pub(in crate::http) fn post_provider(version: Microversion) -> &'static Schema {
    static FIRST: LazyLock<Schema> = LazyLock::new(|| provider(true, false));
    static NESTED: LazyLock<Schema> = LazyLock::new(|| provider(true, true));
    if version.from(14) { &NESTED } else { &FIRST }
}

/// `PUT /resource_providers/{uuid}`.
pub(in crate::http) fn put_provider(version: Microversion) -> &'static Schema {
    static FIRST: LazyLock<Schema> = LazyLock::new(|| provider(false, false));
    static NESTED: LazyLock<Schema> = LazyLock::new(|| provider(false, true));
    if version.from(14) { &NESTED } else { &FIRST }
}
