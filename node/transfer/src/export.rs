//! A state as SQL for upstream's database.

use std::io::{self, Write};

use placement_model::State;

use crate::digest::digest;
use crate::schema::{REVISIONS, Rows};
use crate::sql::{Dialect, Sql};
use crate::state::rows;

/// So many rows stand in one `INSERT`: far below what a server takes at once.
const ROWS_MAX: usize = 500;

/// Writes a partition as `INSERT`s for a database that `placement-manage db sync` of openstack-placement 16.0.0 has just made:
/// one transaction, so that nothing is half done. Returns the digest of the content, which is its last line, too.
///
/// # Errors
/// Those of `target`.
pub fn export(state: &State, dialect: Dialect, target: &mut impl Write) -> io::Result<String> {
    let rows = rows(state);
    let digest = digest(&rows);
    let revision = REVISIONS[REVISIONS.len() - 1];
    writeln!(
        target,
        "-- For an empty database of revision {revision}: placement-manage db sync"
    )?;
    target.write_all(dialect.begin().as_bytes())?;
    // What upstream's service has put there if it was started once.
    for table in ["traits", "resource_classes"] {
        writeln!(target, "DELETE FROM {table};")?;
    }
    rows.for_each_table(|table, columns, rows| {
        let mut in_statement = 0;
        for values in rows {
            match in_statement {
                0 => write!(
                    target,
                    "INSERT INTO {table} ({}) VALUES\n  ",
                    columns.join(", ")
                )?,
                _ => target.write_all(b",\n  ")?,
            }
            write_row(dialect, &values, target)?;
            in_statement += 1;
            if in_statement == ROWS_MAX {
                target.write_all(b";\n")?;
                in_statement = 0;
            }
        }
        if in_statement > 0 {
            target.write_all(b";\n")?;
        }
        Ok::<_, io::Error>(())
    })?;
    if dialect == Dialect::PostgreSql {
        let numbered = Rows::TABLES
            .iter()
            .filter(|(_, columns)| columns.contains(&"id"));
        for (table, _) in numbered {
            writeln!(
                target,
                "SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}));"
            )?;
        }
    }
    writeln!(target, "COMMIT;\n-- content digest: {digest}")?;
    Ok(digest)
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
                 SET standard_conforming_strings = on;\n\
                 BEGIN;\n"
            }
            Self::Sqlite => "BEGIN;\n",
        }
    }
}

fn write_row(dialect: Dialect, values: &[Sql], target: &mut impl Write) -> io::Result<()> {
    let mut before = "(";
    for value in values {
        target.write_all(before.as_bytes())?;
        match value {
            Sql::Null => target.write_all(b"NULL")?,
            Sql::Number(digits) => target.write_all(digits.as_bytes())?,
            Sql::Text(text) => {
                let text = text.replace('\'', "''");
                let text = match dialect {
                    Dialect::MySql => text.replace('\\', "\\\\"),
                    Dialect::PostgreSql | Dialect::Sqlite => text,
                };
                write!(target, "'{text}'")?;
            }
        }
        before = ", ";
    }
    target.write_all(b")")
}
