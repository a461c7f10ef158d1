//! A state as SQL for upstream's database.

use std::io::{self, Write};

use placement_model::State;

use crate::digest::digest;
use crate::schema::{POSITION_TABLE, REVISIONS, Table};
use crate::sql::{Dialect, Sql};
use crate::state::rows;

/// So many rows stand in one `INSERT`: far below what a server takes at once.
const ROWS_MAX: usize = 500;

/// Writes a partition as `INSERT`s for a database that `placement-manage db sync` of openstack-placement 16.0.0 has just made:
/// one transaction, so that nothing is half done. Returns the digest of the content, which is its last line, too. `position` is
/// the token of the moment that the state is of: a table of its own has it, from which a feed of changes goes on.
///
/// # Errors
/// Those of `target`.
pub fn export(
    state: &State,
    position: &str,
    dialect: Dialect,
    target: &mut impl Write,
) -> io::Result<String> {
    let rows = rows(state);
    let digest = digest(&rows);
    let revision = REVISIONS[REVISIONS.len() - 1];
    writeln!(
        target,
        "-- For an empty database of revision {revision}: placement-manage db sync"
    )?;
    // In MySQL the definition of a table ends a transaction.
    writeln!(
        target,
        "CREATE TABLE IF NOT EXISTS {POSITION_TABLE} (token VARCHAR(64) NOT NULL);"
    )?;
    target.write_all(dialect.begin().as_bytes())?;
    // What upstream's service has put there if it was started once.
    for table in ["traits", "resource_classes", POSITION_TABLE] {
        writeln!(target, "DELETE FROM {table};")?;
    }
    let position = dialect.written(&Sql::Text(position.to_owned()));
    writeln!(target, "INSERT INTO {POSITION_TABLE} VALUES ({position});")?;
    rows.for_each_table(|table, rows| write_table(dialect, table, rows, target))?;
    writeln!(target, "COMMIT;\n-- content digest: {digest}")?;
    Ok(digest)
}

fn write_table(
    dialect: Dialect,
    table: &Table,
    rows: &mut dyn Iterator<Item = Vec<Sql>>,
    target: &mut impl Write,
) -> io::Result<()> {
    let name = table.name;
    let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let mut in_statement = 0;
    for values in rows {
        match in_statement {
            0 => write!(
                target,
                "INSERT INTO {name} ({}) VALUES\n  ",
                columns.join(", ")
            )?,
            _ => write!(target, ",\n  ")?,
        }
        let values: Vec<String> = values.iter().map(|value| dialect.written(value)).collect();
        write!(target, "({})", values.join(", "))?;
        in_statement = (in_statement + 1) % ROWS_MAX;
        if in_statement == 0 {
            writeln!(target, ";")?;
        }
    }
    if in_statement > 0 {
        writeln!(target, ";")?;
    }
    if dialect == Dialect::PostgreSql && table.is_numbered() {
        let sequence = format!("pg_get_serial_sequence('{name}', 'id')");
        writeln!(
            target,
            "SELECT setval({sequence}, (SELECT max(id) FROM {name}));"
        )?;
    }
    Ok(())
}

impl Dialect {
    /// Begins a transaction, which the client gives up at the first error.
    fn begin(self) -> &'static str {
        match self {
            Self::MySql => {
                "SET NAMES utf8mb4;\n\
                 SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO';\n\
                 START TRANSACTION;\n"
            }
            Self::PostgreSql => {
                "\\set ON_ERROR_STOP on\n\
                 SET client_encoding = 'UTF8';\n\
                 BEGIN;\n"
            }
            Self::Sqlite => "BEGIN;\n",
        }
    }

    fn written(self, value: &Sql) -> String {
        match value {
            Sql::Null => "NULL".to_owned(),
            Sql::Number(digits) => digits.clone(),
            Sql::Text(text) => self.quoted(text),
        }
    }

    /// Without line breaks and NULs, as clients of databases change the former and end at the latter.
    fn quoted(self, text: &str) -> String {
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
