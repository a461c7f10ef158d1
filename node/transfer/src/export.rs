//! Exports a state as SQL for upstream's database.

use std::io::{self, Write};

use placement_model::State;
use placement_wire::Dialect;

use crate::compare;
use crate::digest::digest;
use crate::findings::Findings;
use crate::schema::{POSITION_TABLE, REVISIONS, Table};
use crate::sql::Sql;
use crate::state::rows;

/// Maximum number of rows in one `INSERT`: far below the limits of servers.
const ROWS_MAX: usize = 500;

/// Result of an export.
#[derive(Debug)]
pub struct Export {
    /// Digest of the content.
    pub digest: String,
    /// Rows that the database may reject.
    pub notes: Findings,
}

/// Writes a partition as `INSERT`s in one transaction, for a database just created by
/// `placement-manage db sync` of openstack-placement 16.0.0. The last line is the digest of the
/// content. `position` is the token of the exported moment; an additional table stores it, so that
/// a feed of changes can continue from it.
///
/// # Errors
/// Those of `target`.
pub fn export(
    state: &State,
    position: &str,
    dialect: Dialect,
    target: &mut impl Write,
) -> io::Result<Export> {
    let rows = rows(state);
    let digest = digest(&rows);
    let mut notes = Findings::default();
    compare::note_alike(&rows, dialect, &mut notes);
    let revision = REVISIONS[REVISIONS.len() - 1];
    writeln!(
        target,
        "-- For an empty database of revision {revision}: placement-manage db sync"
    )?;
    // In MySQL a table definition ends the transaction, so it comes before the transaction.
    writeln!(
        target,
        "CREATE TABLE IF NOT EXISTS {POSITION_TABLE} (token VARCHAR(64) NOT NULL);"
    )?;
    // The client stops at the first error and rolls the transaction back.
    writeln!(target, "{}BEGIN;", dialect.session())?;
    // Upstream's service fills these tables when it is started.
    for table in ["traits", "resource_classes", POSITION_TABLE] {
        writeln!(target, "DELETE FROM {table};")?;
    }
    let position = dialect.quoted(position);
    writeln!(target, "INSERT INTO {POSITION_TABLE} VALUES ({position});")?;
    rows.for_each_table(|table, rows| write_table(dialect, table, rows, target))?;
    writeln!(target, "COMMIT;\n-- content digest: {digest}")?;
    Ok(Export { digest, notes })
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
        let values: Vec<String> = values.iter().map(|value| written(dialect, value)).collect();
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

fn written(dialect: Dialect, value: &Sql) -> String {
    match value {
        Sql::Null => "NULL".to_owned(),
        Sql::Number(digits) => digits.clone(),
        Sql::Text(text) => dialect.quoted(text),
    }
}
