//! What was read, what was made of it, and what the operator may want to know of it.

use std::collections::BTreeMap;
use std::fmt;

use placement_model::state::audit::Audit;

use crate::digest::digest;
use crate::findings::{Findings, Kind};
use crate::schema::{Numbered, Rows};
use crate::sql::Dialect;

/// The report on an import.
#[derive(Debug)]
pub struct Report {
    /// The database that the dump is of.
    pub dialect: Dialect,
    /// The revision of its schema.
    pub revision: String,
    /// Of each table the rows that were read, and those that have a place in the state.
    pub tables: Vec<(&'static str, usize, usize)>,
    /// Of each resource class the inventories of which something is used, and the units that are.
    pub used: BTreeMap<String, (usize, u64)>,
    /// The digest of the content. An export of the same content ends with it.
    pub digest: String,
    /// What the operator may want to know.
    pub notes: Findings,
}

impl Report {
    /// The report on rows that were checked; `read`: as many as there were of each table before.
    pub(crate) fn of(
        dialect: Dialect,
        revision: String,
        read: &[usize],
        rows: &Rows,
        notes: Findings,
    ) -> Self {
        let kept = rows.counts();
        let counts = Rows::TABLES.iter().zip(read.iter().zip(kept));
        Self {
            dialect,
            revision,
            tables: counts
                .map(|((table, _), (read, kept))| (*table, *read, kept))
                .collect(),
            used: used(rows),
            digest: digest(rows),
            notes,
        }
    }
}

/// Of each class the inventories of which something is used, and the units that are.
pub(crate) fn used(rows: &Rows) -> BTreeMap<String, (usize, u64)> {
    let classes: BTreeMap<u32, &str> = rows
        .resource_classes
        .iter()
        .map(|it| (it.id, it.name()))
        .collect();
    let mut of_inventories: BTreeMap<[u32; 2], u64> = BTreeMap::new();
    for it in &rows.allocations {
        *of_inventories
            .entry([it.resource_class_id, it.resource_provider_id])
            .or_default() += u64::from(it.used.0);
    }
    let mut used: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for ([class, _], units) in of_inventories {
        let of_class = used.entry(classes[&class].to_owned()).or_default();
        of_class.0 += 1;
        of_class.1 += units;
    }
    used
}

const KEPT: &str = "it is brought over as upstream has it";

/// Notes what upstream's rules lead to and few clouds intend.
pub(crate) fn note_audit(audit: &Audit, notes: &mut Findings) {
    for finding in &audit.noticed {
        let kind = Kind {
            what: finding.what,
            advice: KEPT,
        };
        let mut examples = finding.examples.iter();
        let first = examples.next().cloned().unwrap_or_default();
        notes.note_many(kind, finding.count - examples.len() as u64, || first);
        examples.for_each(|example| notes.note(kind, || example.clone()));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "dump of {}, schema {}", self.dialect, self.revision)?;
        writeln!(f, "\n{:<30} {:>10} {:>10}", "TABLE", "ROWS", "KEPT")?;
        for (table, read, kept) in &self.tables {
            writeln!(f, "{table:<30} {read:>10} {kept:>10}")?;
        }
        writeln!(
            f,
            "\n{:<30} {:>10} {:>20}",
            "USED, AS RECOUNTED", "PROVIDERS", "UNITS"
        )?;
        for (class, (providers, units)) in &self.used {
            writeln!(f, "{class:<30} {providers:>10} {units:>20}")?;
        }
        if !self.notes.is_empty() {
            writeln!(f, "\nTo know:\n{}", self.notes)?;
        }
        writeln!(f, "content digest: {}", self.digest)
    }
}
