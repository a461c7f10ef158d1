//! Values of the model as this service's own routes write them.

use placement_model::query::NamedProvider;
use placement_model::types::Capacity;
use placement_wire::trees;

/// An integer if it fits, else a float.
pub(crate) fn capacity(capacity: Capacity) -> placement_wire::Capacity {
    match capacity.small() {
        Some(units) => placement_wire::Capacity::Units(units),
        None => placement_wire::Capacity::Large(capacity.as_f64()),
    }
}

/// A provider as operators refer to it.
pub(crate) fn named(provider: &NamedProvider) -> trees::NamedProvider<'_> {
    trees::NamedProvider {
        uuid: provider.uuid.to_string().into(),
        name: provider.name.as_str().into(),
    }
}
