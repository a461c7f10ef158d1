//! The types of schemas.

use super::pattern::Pattern;

/// What a value must look like.
#[derive(Debug, Clone)]
pub(crate) enum Schema {
    /// An integer, also one written like `5.0`.
    Integer {
        /// At least this.
        min: Option<i64>,
        /// At most this.
        max: Option<i64>,
    },
    /// A number.
    Number {
        /// At most this.
        max: f64,
    },
    /// Text.
    Text(Text),
    /// A list.
    Array {
        /// What each item looks like.
        items: Box<Schema>,
        /// At least so many.
        min_items: usize,
        /// No two alike.
        unique: bool,
    },
    /// An object.
    Object(Object),
    /// The same, or `null`.
    Nullable(Box<Schema>),
}

/// What text must look like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    /// At least so many characters.
    pub(super) min_length: usize,
    /// At most so many characters.
    pub(super) max_length: Option<usize>,
    /// This form.
    pub(super) pattern: Option<Pattern>,
    /// A UUID.
    pub(super) uuid: Option<UuidForm>,
    /// One of these.
    pub(super) one_of: &'static [&'static str],
}

/// How a UUID may be spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UuidForm {
    /// In any way.
    Any,
    /// With its hyphens in their places.
    Hyphenated,
}

/// What an object must look like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object {
    /// Members by name.
    pub(super) properties: Vec<(&'static str, Schema)>,
    /// Members by the form of their names.
    pub(super) patterns: Vec<(Pattern, Schema)>,
    /// Whether there may be others.
    pub(super) additional: bool,
    /// Members that must be there.
    pub(super) required: Vec<&'static str>,
    /// At least so many members.
    pub(super) min_properties: usize,
}

impl Schema {
    /// Any text.
    pub(super) fn text() -> Self {
        Self::Text(Text::default())
    }

    /// Text of `min` to `max` characters.
    pub(super) fn text_of(min: usize, max: usize) -> Self {
        Self::Text(Text {
            min_length: min,
            max_length: Some(max),
            ..Text::default()
        })
    }
}
