//! Imports a dump as a state, with a report.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use placement_model::State;
use placement_model::state::audit::Audit;

use crate::check::Check;
use crate::digest::digest;
use crate::dump::{Dump, DumpError, DumpPart};
use crate::findings::Findings;
use crate::report::Report;
use crate::schema::{
    Column, EARLIER_REVISIONS, POSITION_TABLE, REVISION_TABLE, REVISIONS, Rows, Table, table_named,
};
use crate::sql::{OutOfRange, Sql};
use crate::state;
use crate::{compare, report};

/// Why a dump is refused. No state is created.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The dump cannot be read.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// The schema has an unsupported revision.
    #[error("{0}")]
    Revision(String),
    /// The tables are not upstream's.
    #[error("its tables are not those of openstack-placement:\n{0}")]
    Tables(String),
    /// The rows are inconsistent.
    #[error(
        "its rows are inconsistent, so nothing is imported. If no command is given, upstream has none: inspect the rows, \
         and delete or correct them. Then dump again\n{0}"
    )]
    Rows(Findings),
    /// A bug: the state does not match the rows.
    #[error("the imported state would differ from the dump ({0}); this is a bug of placementd")]
    Differs(String),
}

/// Result of an import.
#[derive(Debug)]
pub struct Import {
    /// The imported state of a partition.
    pub state: State,
    /// Counts of the rows, with notes for the operator.
    pub report: Report,
}

/// Maximum number of reasons listed if the tables are not upstream's, and maximum length of each.
const WRONG_MAX: usize = 20;
const REASON_CHARS_MAX: usize = 300;

const MISFIT: &str = "value outside the range of its column";
const OTHER_TABLE: &str = "table that upstream does not have, such as a table of an earlier Nova: its rows are not imported";
const OTHER_COLUMN: &str = "column that upstream does not read, such as `can_host` of an earlier release or an invisible key: its \
                            values are not imported";
const NO_REVISION: &str = "a database that Nova created before openstack-placement was a separate project has none. \
                           Run `placement-manage db stamp b4ed3a175331` and `placement-manage db sync`, then dump the whole \
                           database again";

/// Reads a whole dump of upstream's database, as written by `mysqldump`, `pg_dump --inserts` or
/// `sqlite3`.
///
/// # Errors
/// [`ImportError`], with all faults of its rows.
pub fn import(source: impl Read) -> Result<Import, ImportError> {
    let mut dump = Dump::open(source)?;
    let mut tables = Tables::default();
    while let Some(piece) = dump.next_piece()? {
        tables.take(piece, dump.line())?;
    }
    let dialect = dump.dialect();
    let (revision, mut rows, mut notes) = tables.finish()?;
    let read = rows.counts();
    check(&mut rows, &mut notes)?;
    compare::note(&rows, dialect, &mut notes);
    let state = State::load(state::changes(&rows))
        .map_err(|error| ImportError::Differs(error.to_string()))?;
    let counts = Rows::TABLES
        .iter()
        .zip(read)
        .zip(rows.counts())
        .map(|((table, read), used)| (table.name, read, used));
    let mut report = Report {
        dialect,
        revision,
        tables: counts.collect(),
        used: report::used(&rows),
        digest: digest(&rows),
        notes,
    };
    drop(rows);
    prove(&state, &mut report)?;
    Ok(Import { state, report })
}

/// Checks the consistency of the rows, and adds notes for the operator.
fn check(rows: &mut Rows, notes: &mut Findings) -> Result<(), ImportError> {
    let mut faults = Findings::default();
    let check = Check {
        rows,
        faults: &mut faults,
        notes,
    };
    check.all();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(ImportError::Rows(faults))
    }
}

/// Verifies the state: an audit must find no errors, and the state must convert back to the rows
/// that were read.
fn prove(state: &State, report: &mut Report) -> Result<(), ImportError> {
    let audit = Audit::run(state);
    report::note_audit(&audit, &mut report.notes);
    if let Some(wrong) = audit.wrong.first() {
        return Err(ImportError::Differs(wrong.what.to_owned()));
    }
    let again = state::rows(state);
    if digest(&again) == report.digest && report::used(&again) == report.used {
        Ok(())
    } else {
        Err(ImportError::Differs("the digests differ".to_owned()))
    }
}

/// The content of the tables read so far.
#[derive(Default)]
struct Tables {
    /// Columns of each table in the order of the dump.
    columns: BTreeMap<String, Vec<String>>,
    revisions: Vec<String>,
    /// Why the tables are not upstream's.
    wrong: Vec<String>,
    /// Tables that upstream does not have.
    others: BTreeSet<String>,
    rows: Rows,
    faults: Findings,
    notes: Findings,
}

impl Tables {
    fn take(&mut self, piece: DumpPart, line: u64) -> Result<(), ImportError> {
        match piece {
            DumpPart::OtherTable(table) => {
                if table != POSITION_TABLE {
                    self.notes.note(OTHER_TABLE, || format!("{table:?}"));
                }
                self.others.insert(table);
                Ok(())
            }
            DumpPart::OtherRows(table) => {
                // SQLite's internal tables have no definition.
                if !self.others.contains(&table) && !table.starts_with("sqlite_") {
                    self.refuse_undefined(&table, line);
                }
                Ok(())
            }
            DumpPart::Table { table, columns } => {
                self.define(table, columns, line);
                Ok(())
            }
            DumpPart::Rows {
                table,
                columns,
                rows,
            } => self.fill(&table, columns, rows, line),
        }
    }

    /// Handles the definition of a table, which must have upstream's columns.
    fn define(&mut self, table: String, columns: Vec<String>, line: u64) {
        let expected = table_named(&table).map_or(&[][..], |known| known.columns);
        for column in expected {
            if !columns.iter().any(|name| name == column.name) {
                let reason = format!("table {table} lacks upstream's column {}", column.name);
                self.refuse(line, &reason);
            }
        }
        let mut names = BTreeSet::new();
        for name in &columns {
            if !names.insert(name) {
                self.refuse(line, &format!("table {table} has two columns {name:?}"));
            } else if !expected.iter().any(|column| column.name == name) {
                self.notes
                    .note(OTHER_COLUMN, || format!("{table}: {name:?}"));
            }
        }
        if self.columns.insert(table.clone(), columns).is_some() {
            self.refuse(
                line,
                &format!("table {table} is defined twice: dump one database only"),
            );
        }
    }

    /// Records why the tables are not upstream's. The error is returned at the end, as the revision
    /// may follow later and gives a better reason.
    fn refuse(&mut self, line: u64, reason: &str) {
        if self.wrong.len() < WRONG_MAX {
            let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
            self.wrong.push(format!("  line {line}: {reason}"));
        }
    }

    fn refuse_undefined(&mut self, table: &str, line: u64) {
        let reason = format!("the definition of {table:?} does not precede its rows");
        self.refuse(line, &reason);
    }

    fn fill(
        &mut self,
        table: &str,
        named: Vec<String>,
        rows: Vec<Vec<Sql>>,
        line: u64,
    ) -> Result<(), ImportError> {
        let (Some(defined), Some(known)) = (self.columns.get(table), table_named(table)) else {
            self.refuse_undefined(table, line);
            return Ok(());
        };
        let given = if named.is_empty() { defined } else { &named };
        let mut places = Vec::new();
        for Column { name, .. } in known.columns {
            let Some(place) = given.iter().position(|one| one == name) else {
                self.refuse(line, &format!("rows of {table} lack the column {name}"));
                return Ok(());
            };
            places.push(place);
        }
        let count = given.len();
        if let Some(row) = rows.iter().position(|values| values.len() != count) {
            let (at, values) = (row + 1, rows[row].len());
            self.refuse(
                line,
                &format!(
                    "rows of {table} do not have a value for each column: row {at} of the statement has {values} values for {count} \
                     columns. A generated column has none: drop it, and dump again"
                ),
            );
            return Ok(());
        }
        for values in rows {
            let values: Vec<&Sql> = places.iter().map(|place| &values[*place]).collect();
            self.row(known, &values)?;
        }
        Ok(())
    }

    /// Handles a row with its values in the order of upstream's columns.
    fn row(&mut self, table: &Table, values: &[&Sql]) -> Result<(), ImportError> {
        if *table == REVISION_TABLE {
            self.revisions.push(values[0].to_string().replace('"', ""));
            return check_revision(&self.revisions).map(drop);
        }
        if let Err(OutOfRange {
            column,
            found,
            expected,
        }) = self.rows.take(table, values)
        {
            self.faults.note(MISFIT, || {
                let select = table.select(values.iter().copied());
                format!("{column} is {found}, not {expected}: {select}")
            });
        }
        Ok(())
    }

    /// Returns the revision, the rows and the notes, if all tables were present.
    fn finish(mut self) -> Result<(String, Rows, Findings), ImportError> {
        let tables = Rows::TABLES.iter().chain([&REVISION_TABLE]);
        for table in tables.filter(|table| !self.columns.contains_key(table.name)) {
            let remedy = if *table == REVISION_TABLE {
                NO_REVISION
            } else {
                "dump the whole database of placement, including the table definitions"
            };
            self.wrong
                .push(format!("  table {} is missing: {remedy}", table.name));
        }
        if !self.wrong.is_empty() {
            return Err(ImportError::Tables(self.wrong.join("\n")));
        }
        let revision = check_revision(&self.revisions)?;
        if self.faults.is_empty() {
            Ok((revision, self.rows, self.notes))
        } else {
            Err(ImportError::Rows(self.faults))
        }
    }
}

fn check_revision(found: &[String]) -> Result<String, ImportError> {
    let known = REVISIONS.join(" and ");
    let reason = match found {
        [one] if REVISIONS.contains(&one.as_str()) => return Ok(one.clone()),
        [one] if EARLIER_REVISIONS.contains(&one.as_str()) => format!(
            "its schema has revision {one}. Run `placement-manage db sync` of openstack-placement 16.0.0 on the \
             database, which upgrades it to the last of {known}, and dump again"
        ),
        [one] => format!(
            "its schema has revision {one}, but this placementd knows {known} (openstack-placement up to 16.0.0). A newer \
             placementd may know it"
        ),
        [] => "alembic_version is empty: `placement-manage db sync` has never finished on the database".to_owned(),
        several => format!(
            "alembic_version has more than one row ({}): delete those that `placement-manage db version` of \
             openstack-placement does not know, and dump again",
            several.join(", ")
        ),
    };
    Err(ImportError::Revision(reason))
}
