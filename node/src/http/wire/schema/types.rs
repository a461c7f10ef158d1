//! The types of schemas.

use super::pattern::Pattern;

/// What a value must look like.
#[derive(Debug, Clone)]
pub(in crate::http) enum Schema {
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
    /// An integer, or `null`.
    IntegerOrNull,
}

/// What text must look like.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Text {
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
    /// How an error shows the type.
    pub(super) shown_as: ShownAs,
}

/// How an error shows the type of text. Whatever it says, only text is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::http) enum ShownAs {
    /// `'string'`.
    #[default]
    Text,
    /// `['string']`.
    ListedText,
    /// An integer of at least 1, or text.
    PositiveOrText,
}

/// How a UUID may be spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum UuidForm {
    /// In any way.
    Any,
    /// With its hyphens in their places.
    Hyphenated,
}

/// What an object must look like.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Object {
    /// Members by name.
    pub(super) properties: Vec<(&'static str, Schema)>,
    /// Members by the form of their names.
    pub(super) patterns: Vec<(Pattern, Schema)>,
    /// Whether there may be others.
    pub(super) additional: bool,
    /// Members that must be there.
    pub(super) required: Vec<&'static str>,
    /// At least so many members; `Some(0)` differs from `None` in how it is shown only.
    pub(super) min_properties: Option<usize>,
    /// In which order the above is looked at, and shown.
    pub(super) order: Order,
}

/// The order of an object's keywords. Of two faults in one place, the first is reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::http) enum Order {
    /// Required names before additional ones.
    #[default]
    RequiredFirst,
    /// Additional names before required ones.
    AdditionalFirst,
    /// The number of members behind their forms.
    CountLate,
}

/// What an object can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    /// How many members there are.
    Count,
    /// Members by name.
    Properties,
    /// Members by the form of their names.
    Patterns,
    /// Members that must be there.
    Required,
    /// Members that nothing allows.
    Additional,
}

impl Order {
    /// The keywords in this order.
    pub(super) fn keywords(self) -> [Keyword; 5] {
        use Keyword::{Additional, Count, Patterns, Properties, Required};
        match self {
            Self::RequiredFirst => [Count, Properties, Patterns, Required, Additional],
            Self::AdditionalFirst => [Count, Properties, Additional, Patterns, Required],
            Self::CountLate => [Properties, Patterns, Count, Required, Additional],
        }
    }
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

    /// A UUID in any spelling.
    pub(super) fn uuid() -> Self {
        Self::Text(Text {
            uuid: Some(UuidForm::Any),
            ..Text::default()
        })
    }

    /// Any integer.
    pub(super) fn integer() -> Self {
        Self::Integer {
            min: None,
            max: None,
        }
    }

    /// An integer of at least `min`.
    pub(super) fn integer_from(min: i64) -> Self {
        Self::Integer {
            min: Some(min),
            max: None,
        }
    }
}
