//! Values of the model as this service's own routes write them.

use placement_base::backend::Position;
use placement_model::query::NamedProvider;
use placement_model::types::{Capacity, Hold, HoldEnd, Timestamp};
use placement_wire::{explain, holds, trees};

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

/// A hold as clients see it. Its times are exact, so that each renewal is a change.
pub(crate) fn hold(hold: &Hold) -> holds::Hold {
    let (lease_until, due) = match hold.end {
        HoldEnd::Lease(until) => (Some(until), None),
        HoldEnd::Due(due) => (None, Some(due)),
        HoldEnd::Open => (None, None),
    };
    let text = |time: Timestamp| time.rfc3339();
    holds::Hold {
        kept_for: hold.kept_for.iter().map(ToString::to_string).collect(),
        lease_until: lease_until.and_then(text),
        due: due.and_then(text),
    }
}
