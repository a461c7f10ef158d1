//! A dump as a state, and the report on what became of it.

use std::collections::BTreeMap;
use std::io::Read;

use placement_model::State;
use placement_model::state::audit::Audit;

use crate::check::Check;
use crate::digest::digest;
use crate::dump::{Dump, DumpError, Piece};
use crate::findings::{Findings, Kind};
use crate::report::Report;
use crate::schema::{EARLIER_REVISIONS, REVISION_TABLE, REVISIONS, Rows};
use crate::sql::{Misfit, Sql};
use crate::state;
use crate::{compare, report};

/// Why a dump is refused. Nothing was made of it.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// It is of another revision of the schema.
    #[error("{0}")]
    Revision(String),
    /// Its tables are not upstream's.
    #[error("its tables are not those of openstack-placement:\n{0}")]
    Tables(String),
    /// Its rows do not hold together.
    #[error("its rows do not hold together, so nothing is imported:\n{0}")]
    Rows(Findings),
    /// A bug: what was made is not what was read.
    #[error("what would be imported is not what was read ({0}); this is a bug of placementd")]
    Differs(String),
}

/// What a dump has become.
#[derive(Debug)]
pub struct Import {
    /// The placement model in it.
    pub state: State,
    /// What was read, and what the operator may want to know of it.
    pub report: Report,
}

/// So many reasons are listed why the tables are not upstream's.
const WRONG_MAX: usize = 20;

const MISFIT: Kind = Kind {
    what: "a value that its column does not hold",
    advice: "upstream has no command for this: look at the rows, correct them, and dump again",
};

/// Reads a dump of upstream's database, whole, as `mysqldump`, `pg_dump --inserts` or `sqlite3` writes it.
///
/// # Errors
/// [`ImportError`], with everything that is wrong with its rows.
pub fn import(source: impl Read) -> Result<Import, ImportError> {
    let mut dump = Dump::open(source)?;
    let mut tables = Tables::default();
    while let Some(piece) = dump.next_piece()? {
        tables.take(piece, dump.line())?;
    }
    let dialect = dump.dialect();
    let (revision, mut rows) = tables.finish()?;
    let read = rows.counts();
    let (mut faults, mut notes) = (Findings::default(), Findings::default());
    let check = Check {
        rows: &mut rows,
        faults: &mut faults,
        notes: &mut notes,
    };
    check.all();
    if !faults.is_empty() {
        return Err(ImportError::Rows(faults));
    }
    compare::note(&rows, dialect, &mut notes);
    let state = State::load(state::changes(&rows))
        .map_err(|error| ImportError::Differs(error.to_string()))?;
    let audit = Audit::of(&state);
    report::note_audit(&audit, &mut notes);
    if let Some(wrong) = audit.wrong.first() {
        return Err(ImportError::Differs(wrong.what.to_owned()));
    }
    let report = Report::of(dialect, revision, &read, &rows, notes);
    drop(rows);
    let again = state::rows(&state);
    if digest(&again) != report.digest || report::used(&again) != report.used {
        return Err(ImportError::Differs("the digests differ".to_owned()));
    }
    Ok(Import { state, report })
}

/// What was read of the tables so far.
#[derive(Default)]
struct Tables {
    /// The columns of each table in the order of the dump.
    columns: BTreeMap<String, Vec<String>>,
    revisions: Vec<String>,
    /// Why the tables are not upstream's.
    wrong: Vec<String>,
    rows: Rows,
    faults: Findings,
}

impl Tables {
    fn take(&mut self, piece: Piece, line: u64) -> Result<(), ImportError> {
        match piece {
            Piece::Table { table, columns } => {
                self.define(table, columns, line);
                Ok(())
            }
            Piece::Rows {
                table,
                columns,
                rows,
            } => self.fill(&table, columns, rows, line),
        }
    }

    /// Takes the definition of a table, which must have upstream's columns.
    fn define(&mut self, table: String, columns: Vec<String>, line: u64) {
        let Some(expected) = columns_of(&table) else {
            let only = "dump the database of placement alone, and only its own tables (mysqldump --ignore-table=…, \
                        pg_dump --exclude-table=…)";
            return self.refuse(line, &format!("upstream has no table {table:?}: {only}"));
        };
        let missing = expected
            .iter()
            .filter(|column| !columns.iter().any(|one| one == *column));
        let extra = columns
            .iter()
            .filter(|column| !expected.contains(&column.as_str()));
        let other: Vec<String> = (missing.map(|column| format!("{column} is missing")))
            .chain(extra.map(|column| format!("{column} is not upstream's")))
            .collect();
        if !other.is_empty() || columns.len() != expected.len() {
            self.refuse(
                line,
                &format!("table {table} has other columns: {}", other.join(", ")),
            );
        }
        if self.columns.contains_key(&table) {
            self.refuse(
                line,
                &format!("table {table} is there twice: dump one database alone"),
            );
        }
        self.columns.insert(table, columns);
    }

    /// Notes why the tables are not upstream's. The revision, which may come later, says more.
    fn refuse(&mut self, line: u64, reason: &str) {
        if self.wrong.len() < WRONG_MAX {
            self.wrong.push(format!("  line {line}: {reason}"));
        }
    }

    fn fill(
        &mut self,
        table: &str,
        named: Vec<String>,
        rows: Vec<Vec<Sql>>,
        line: u64,
    ) -> Result<(), ImportError> {
        let (Some(defined), Some(expected)) = (self.columns.get(table), columns_of(table)) else {
            // Bookkeeping of SQLite has no definition.
            if !table.starts_with("sqlite_") {
                self.refuse(
                    line,
                    &format!("the definition of {table} does not come before its rows"),
                );
            }
            return Ok(());
        };
        let given = match named.is_empty() {
            true => defined,
            false => &named,
        };
        let place = |column: &&str| given.iter().position(|one| one == column);
        let places: Option<Vec<usize>> = expected.iter().map(place).collect();
        let count = given.len();
        let Some(places) = places.filter(|_| rows.iter().all(|values| values.len() == count))
        else {
            self.refuse(
                line,
                &format!("rows of {table} do not have a value for each column"),
            );
            return Ok(());
        };
        for values in rows {
            self.row(
                table,
                places.iter().map(|place| values[*place].clone()).collect(),
            )?;
        }
        Ok(())
    }

    /// Takes a row, with its values in the order of upstream's columns.
    fn row(&mut self, table: &str, values: Vec<Sql>) -> Result<(), ImportError> {
        if table == REVISION_TABLE.0 {
            self.revisions.extend(
                values
                    .into_iter()
                    .map(|value| shown(value).replace('"', "")),
            );
            return check_revision(&self.revisions).map(drop);
        }
        let (first, value) = (
            columns_of(table).expect("the table is known")[0],
            shown(values[0].clone()),
        );
        if let Err(Misfit {
            column,
            found,
            expected,
        }) = self.rows.take(table, values)
        {
            self.faults.note(MISFIT, || {
                format!("{column} is {}, not {expected}: SELECT * FROM {table} WHERE {first} = {value};", shown(found))
            });
        }
        Ok(())
    }

    /// The revision and the rows, if all tables were there.
    fn finish(mut self) -> Result<(String, Rows), ImportError> {
        let tables = Rows::TABLES.iter().chain([&REVISION_TABLE]);
        let missing = tables.filter(|(table, _)| !self.columns.contains_key(*table));
        for (table, _) in missing {
            let whole =
                "dump the whole database of placement, the definitions of its tables included";
            self.wrong
                .push(format!("  table {table} is not there: {whole}"));
        }
        if !self.wrong.is_empty() {
            return Err(ImportError::Tables(self.wrong.join("\n")));
        }
        let revision = check_revision(&self.revisions)?;
        match self.faults.is_empty() {
            true => Ok((revision, self.rows)),
            false => Err(ImportError::Rows(self.faults)),
        }
    }
}

fn columns_of(table: &str) -> Option<&'static [&'static str]> {
    let mut tables = Rows::TABLES.iter().chain([&REVISION_TABLE]);
    tables
        .find(|(name, _)| *name == table)
        .map(|(_, columns)| *columns)
}

fn check_revision(found: &[String]) -> Result<String, ImportError> {
    let known = REVISIONS.join(" and ");
    let reason = match found {
        [one] if REVISIONS.contains(&one.as_str()) => return Ok(one.clone()),
        [one] if EARLIER_REVISIONS.contains(&one.as_str()) => format!(
            "its schema is of revision {one}. Run `placement-manage db sync` of openstack-placement 16.0.0 (or any version \
             since 5.0.0) on the database, which leads to {known}, and dump again"
        ),
        [one] => format!(
            "its schema is of revision {one}, but this placementd knows {known} (openstack-placement up to 16.0.0). A newer \
             placementd may know it"
        ),
        [] => "alembic_version is empty: `placement-manage db sync` has never finished on the database".to_owned(),
        _ => "alembic_version has more than one row: it is not upstream's".to_owned(),
    };
    Err(ImportError::Revision(reason))
}

fn shown(value: Sql) -> String {
    match value {
        Sql::Null => "NULL".to_owned(),
        Sql::Number(text) => text,
        Sql::Text(text) => format!("{:?}", text.chars().take(80).collect::<String>()),
    }
}
