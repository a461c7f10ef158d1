//! What differs between microversions, as one description: a shape for each span of versions.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::http::edge::route::Operation;
use crate::http::wire::microversion::Microversion;

/// From one minor version to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    first: u8,
    last: u8,
}

impl Span {
    /// The versions that have an operation.
    pub(super) fn of(operation: &Operation) -> Self {
        let newest = all().count() as u8 - 1;
        Self {
            first: operation.since,
            last: operation.until.min(newest),
        }
    }

    /// The versions from the earlier beginning to the later end.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }

    /// The oldest.
    pub(super) fn first(self) -> Microversion {
        version(self.first)
    }

    /// The newest.
    pub(super) fn last(self) -> Microversion {
        version(self.last)
    }

    /// The minor versions.
    pub(super) fn minors(self) -> RangeInclusive<u8> {
        self.first..=self.last
    }
}

/// Every version there is.
pub(super) fn all() -> impl Iterator<Item = Microversion> {
    (0..=u8::MAX).map_while(parse)
}

fn parse(minor: u8) -> Option<Microversion> {
    Microversion::parse(Some(&format!("placement 1.{minor}"))).ok()
}

/// Version `1.minor`.
pub(super) fn version(minor: u8) -> Microversion {
    parse(minor).expect("routes name versions that exist")
}

/// A shape and the versions it belongs to.
pub(super) type Shape = (Span, Value);

/// The different shapes within a span, oldest first.
pub(super) fn shapes(span: Span, shape_of: impl Fn(Microversion) -> Value) -> Vec<Shape> {
    let mut found: Vec<Shape> = Vec::new();
    for minor in span.minors() {
        let shape = shape_of(version(minor));
        match found.last_mut() {
            Some((span, last)) if *last == shape => span.last = minor,
            _ => found.push((
                Span {
                    first: minor,
                    last: minor,
                },
                shape,
            )),
        }
    }
    found
}

/// One schema for several shapes.
pub(super) fn any_of(mut shapes: Vec<Shape>) -> Value {
    if shapes.len() == 1 {
        return shapes.remove(0).1;
    }
    let titled: Vec<Value> = shapes
        .into_iter()
        .map(|(span, mut shape)| {
            shape["title"] = json!(format!("{} to {}", span.first(), span.last()));
            shape
        })
        .collect();
    json!({"anyOf": titled})
}
