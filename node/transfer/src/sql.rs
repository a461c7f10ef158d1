//! Values as SQL writes them, and what the columns of upstream's tables hold.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use placement_model::types::Timestamp;
use time::PrimitiveDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// A database that upstream runs on, and its SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL and MariaDB.
    MySql,
    /// PostgreSQL.
    PostgreSql,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    const NAMES: [(Self, &'static str); 3] = [
        (Self::MySql, "mysql"),
        (Self::PostgreSql, "postgresql"),
        (Self::Sqlite, "sqlite"),
    ];
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::NAMES.iter().find(|(_, name)| *name == text);
        let known = known.map(|(dialect, _)| *dialect);
        known.ok_or_else(|| "mysql, postgresql or sqlite is expected".to_owned())
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = &mut Self::NAMES.iter();
        let (_, name) = names
            .find(|(dialect, _)| dialect == self)
            .expect("each has a name");
        f.write_str(name)
    }
}

/// A value in a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sql {
    Null,
    /// A number, by its digits.
    Number(String),
    Text(String),
}

/// A value that its column cannot hold.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// Empty until it is known.
    pub(crate) column: &'static str,
    pub(crate) found: Sql,
    pub(crate) expected: &'static str,
}

impl Misfit {
    fn of(found: Sql, expected: &'static str) -> Self {
        Self {
            column: "",
            found,
            expected,
        }
    }
}

/// What a column holds.
pub(crate) trait Field: Sized {
    fn read(value: Sql) -> Result<Self, Misfit>;

    fn write(&self) -> Sql;
}

impl<T: Field> Field for Option<T> {
    fn read(value: Sql) -> Result<Self, Misfit> {
        match value {
            Sql::Null => Ok(None),
            value => T::read(value).map(Some),
        }
    }

    fn write(&self) -> Sql {
        self.as_ref().map_or(Sql::Null, T::write)
    }
}

/// A number of this form, quoted or not.
fn number<T: FromStr>(found: Sql, expected: &'static str) -> Result<T, Misfit> {
    let parsed = match &found {
        Sql::Number(digits) | Sql::Text(digits) => digits.parse().ok(),
        Sql::Null => None,
    };
    parsed.ok_or(Misfit::of(found, expected))
}

/// The number of a row, or a generation.
macro_rules! integer_field {
    ($($type:ty, $expected:literal;)*) => {
        $(impl Field for $type {
            fn read(value: Sql) -> Result<Self, Misfit> {
                number(value, $expected)
            }

            fn write(&self) -> Sql {
                Sql::Number(self.to_string())
            }
        })*
    };
}

integer_field! {
    u32, "an integer from 0 to 4294967295";
    i64, "an integer";
}

/// A ratio, within the range of a FLOAT.
impl Field for f64 {
    fn read(value: Sql) -> Result<Self, Misfit> {
        let expected = "a finite number of 32 bits";
        let found = value.clone();
        let ratio: Self = number(value, expected)?;
        match ratio.abs() <= Self::from(f32::MAX) {
            true => Ok(ratio),
            false => Err(Misfit::of(found, expected)),
        }
    }

    fn write(&self) -> Sql {
        Sql::Number(format!("{self:?}"))
    }
}

/// An amount: an integer of 31 bits, at least `MIN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<const MIN: u32>(pub(crate) u32);

impl<const MIN: u32> Field for Whole<MIN> {
    fn read(value: Sql) -> Result<Self, Misfit> {
        let expected = match MIN {
            0 => "an integer from 0 to 2147483647",
            _ => "an integer from 1 to 2147483647",
        };
        let found = value.clone();
        match number(value, expected)? {
            amount if (MIN..=i32::MAX as u32).contains(&amount) => Ok(Self(amount)),
            _ => Err(Misfit::of(found, expected)),
        }
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

impl<const MAX: usize> From<&str> for Text<MAX> {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl<const MAX: usize> Field for Text<MAX> {
    fn read(value: Sql) -> Result<Self, Misfit> {
        match value {
            Sql::Text(text) if text.chars().count() <= MAX => Ok(Self(text.into())),
            found => Err(Misfit::of(
                found,
                "a text that is not longer than the column",
            )),
        }
    }

    fn write(&self) -> Sql {
        Sql::Text(self.0.to_string())
    }
}

/// The forms of a moment, UTC: as read, and as written. MySQL keeps whole seconds and may round; no client is shown more.
const MOMENT: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second][optional [.[subsecond]]]");
const MOMENT_WRITTEN: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");

impl Field for Timestamp {
    fn read(value: Sql) -> Result<Self, Misfit> {
        let moment = match &value {
            Sql::Text(text) => PrimitiveDateTime::parse(text, MOMENT).ok(),
            _ => None,
        };
        let moment = moment.ok_or(Misfit::of(value, "a moment"))?;
        let micros = moment.assume_utc().unix_timestamp_nanos() / 1_000;
        Ok(Self(
            i64::try_from(micros).expect("a year of four digits is near enough"),
        ))
    }

    fn write(&self) -> Sql {
        let epoch = time::OffsetDateTime::UNIX_EPOCH;
        let since = time::Duration::microseconds(self.0);
        let moment = epoch.checked_add(since).unwrap_or(epoch);
        let text = moment
            .format(MOMENT_WRITTEN)
            .expect("all its parts are there");
        Sql::Text(text)
    }
}
