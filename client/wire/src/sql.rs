//! SQL for the database of openstack-placement, which `placementd export` fills and `placementctl
//! events` updates.

use std::fmt;
use std::str::FromStr;

/// A database of openstack-placement, and its SQL dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Dialect of MySQL and MariaDB.
    MySql,
    /// The SQL of PostgreSQL.
    PostgreSql,
    /// The SQL of SQLite.
    Sqlite,
}

impl Dialect {
    /// All supported dialects.
    pub const ALL: [Self; 3] = [Self::MySql, Self::PostgreSql, Self::Sqlite];

    /// Name of the dialect in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::PostgreSql => "postgresql",
            Self::Sqlite => "sqlite",
        }
    }

    /// Statements before the first transaction. The database client must stop at the first error.
    pub fn session(self) -> &'static str {
        match self {
            Self::MySql => {
                "SET NAMES utf8mb4;\n\
                 SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO';\n"
            }
            Self::PostgreSql => "\\set ON_ERROR_STOP on\nSET client_encoding = 'UTF8';\n",
            Self::Sqlite => "",
        }
    }

    /// A string literal without line breaks and NULs, since database clients convert the former and
    /// stop at the latter. The database rejects characters that it cannot store, such as NUL in
    /// PostgreSQL.
    pub fn quoted(self, text: &str) -> String {
        let quoted = text.replace('\'', "''");
        match self {
            Self::Sqlite if text.contains(char::is_control) => {
                let bytes: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
                format!("CAST(X'{bytes}' AS TEXT)")
            }
            Self::Sqlite => format!("'{quoted}'"),
            Self::MySql | Self::PostgreSql => {
                let escapes = [('\\', "\\\\"), ('\0', "\\0"), ('\r', "\\r"), ('\n', "\\n")];
                let escape = |text: String, (plain, escaped)| text.replace(plain, escaped);
                let prefix = if self == Self::MySql { "" } else { "E" };
                format!("{prefix}'{}'", escapes.into_iter().fold(quoted, escape))
            }
        }
    }
}

impl FromStr for Dialect {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let mut all = Self::ALL.into_iter();
        let named = all.find(|dialect| dialect.name() == text);
        named.ok_or("expected mysql, postgresql or sqlite")
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_texts_keep_their_value() {
        let text = "O'Brien \\ \"\r\n\0;";
        let quoted = Dialect::ALL.map(|it| it.quoted(text));
        assert_eq!(quoted[0], r#"'O''Brien \\ "\r\n\0;'"#);
        assert_eq!(quoted[1], r#"E'O''Brien \\ "\r\n\0;'"#);
        assert_eq!(quoted[2], "CAST(X'4f27427269656e205c20220d0a003b' AS TEXT)");
        assert_eq!(Dialect::Sqlite.quoted("O'Brien \\"), "'O''Brien \\'");
    }
}
