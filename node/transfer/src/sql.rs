//! SQL values, and the value ranges of upstream's columns.

use std::fmt;
use std::sync::Arc;

use placement_model::types::Timestamp;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{Duration, OffsetDateTime, PrimitiveDateTime};

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sql {
    Null,
    /// The digits of a number.
    Number(String),
    Text(String),
}

impl Sql {
    /// The digits of a number, or the text.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Null => "",
            Self::Number(text) | Self::Text(text) => text,
        }
    }
}

/// Formats for messages: long texts are truncated.
impl fmt::Display for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Number(digits) => f.write_str(digits),
            Self::Text(text) => write!(f, "{:?}", text.chars().take(80).collect::<String>()),
        }
    }
}

/// A value outside the range of its column.
#[derive(Debug)]
pub(crate) struct OutOfRange {
    /// Name of the column; empty until it is known.
    pub(crate) column: &'static str,
    pub(crate) found: Sql,
    pub(crate) expected: &'static str,
}

/// The type of a column.
pub(crate) trait Field: Sized {
    const EXPECTED: &'static str;

    fn parse(value: &Sql) -> Option<Self>;

    fn write(&self) -> Sql;

    fn read(found: &Sql) -> Result<Self, OutOfRange> {
        Self::parse(found).ok_or_else(|| OutOfRange {
            column: "",
            found: found.clone(),
            expected: Self::EXPECTED,
        })
    }
}

impl<T: Field> Field for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn parse(value: &Sql) -> Option<Self> {
        match value {
            Sql::Null => Some(None),
            value => T::parse(value).map(Some),
        }
    }

    fn write(&self) -> Sql {
        self.as_ref().map_or(Sql::Null, T::write)
    }
}

macro_rules! number_field {
    ($($type:ty, $expected:literal, |$value:ident| $is_valid:expr, $form:literal;)*) => {
        $(impl Field for $type {
            const EXPECTED: &'static str = $expected;

            fn parse(value: &Sql) -> Option<Self> {
                value.text().parse().ok().filter(|$value: &Self| $is_valid)
            }

            fn write(&self) -> Sql {
                Sql::Number(format!($form, self))
            }
        })*
    };
}

number_field! {
    u32, "an integer from 0 to 4294967295", |_value| true, "{}";
    i64, "an integer", |_value| true, "{}";
    f64, "a finite number of 32 bits", |ratio| ratio.abs() <= f64::from(f32::MAX), "{:?}";
}

/// An amount: an integer of 31 bits, at least `MIN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<const MIN: u32>(pub(crate) u32);

impl<const MIN: u32> Field for Whole<MIN> {
    const EXPECTED: &'static str = match MIN {
        0 => "an integer from 0 to 2147483647",
        _ => "an integer from 1 to 2147483647",
    };

    fn parse(value: &Sql) -> Option<Self> {
        let amount = u32::parse(value)?;
        (MIN..=i32::MAX as u32)
            .contains(&amount)
            .then_some(Self(amount))
    }

    fn write(&self) -> Sql {
        self.0.write()
    }
}

/// A text of at most `MAX` characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Text<const MAX: usize>(pub(crate) Arc<str>);

impl<const MAX: usize> Text<MAX> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> Field for Text<MAX> {
    const EXPECTED: &'static str = "a text that is not longer than the column";

    fn parse(value: &Sql) -> Option<Self> {
        match value {
            Sql::Text(text) if text.chars().count() <= MAX => Some(Self(text.as_str().into())),
            _ => None,
        }
    }

    fn write(&self) -> Sql {
        Sql::Text(self.0.to_string())
    }
}

/// Formats of a time in UTC, for reading and for writing. MySQL stores whole seconds and may round;
/// clients see no fractions.
const MOMENT: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second][optional [.[subsecond]]]");
const WRITTEN: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");

impl Field for Timestamp {
    const EXPECTED: &'static str = "a moment from 1970 on";

    fn parse(value: &Sql) -> Option<Self> {
        let moment = PrimitiveDateTime::parse(value.text(), MOMENT).ok()?;
        let micros = moment.assume_utc().unix_timestamp_nanos() / 1_000;
        let moment = i64::try_from(micros).ok().map(Self);
        moment.filter(|at| at.is_shown())
    }

    fn write(&self) -> Sql {
        let epoch = OffsetDateTime::UNIX_EPOCH;
        let moment = epoch
            .checked_add(Duration::microseconds(self.0))
            .unwrap_or(epoch);
        Sql::Text(moment.format(WRITTEN).expect("the time has all parts"))
    }
}
