//! Values of the model as this service's own routes write them.

use placement_base::backend::Position;
use placement_model::query::NamedProvider;
use placement_model::types::Capacity;
use placement_wire::{explain, trees};

/// An integer if it fits, else a float.
pub(crate) fn capacity(capacity: Capacity) -> placement_wire::Capacity {
    match capacity.small() {
        Some(units) => placement_wire::Capacity::Units(units),
        None => placement_wire::Capacity::Large(capacity.as_f64()),
    }
}

/// The position of the state on which an answer is based.
pub(crate) fn position(of: &Position) -> explain::Position<'static> {
    explain::Position {
        index: of.index.map(|index| index.to_string().into()),
        node: Some(of.node),
    }
}

/// A provider as operators refer to it.
pub(crate) fn named(provider: &NamedProvider) -> trees::NamedProvider<'_> {
    trees::NamedProvider {
        uuid: provider.uuid.to_string().into(),
        name: provider.name.as_str().into(),
    }
}
