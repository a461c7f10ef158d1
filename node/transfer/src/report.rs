//! The report of an import: the rows read, their use, and notes for the operator.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::repeat;

use placement_model::state::audit::Audit;
use placement_wire::Dialect;

use crate::findings::Findings;
use crate::schema::Rows;
use crate::state::by_id;

/// The report of an import.
#[derive(Debug)]
pub struct Report {
    /// The database that the dump is from.
    pub dialect: Dialect,
    /// The revision of its schema.
    pub revision: String,
    /// For each table, the number of rows read and of those used in the state.
    pub tables: Vec<(&'static str, usize, usize)>,
    /// For each resource class, the number of inventories with allocations and the number of
    /// allocated units.
    pub used: BTreeMap<String, (usize, u64)>,
    /// The digest of the content. An export of the same content ends with it.
    pub digest: String,
    /// Notes for the operator.
    pub notes: Findings,
}

/// For each resource class, the number of inventories with allocations and the number of allocated
/// units.
pub(crate) fn used(rows: &Rows) -> BTreeMap<String, (usize, u64)> {
    let classes = by_id(&rows.resource_classes, |it| (it.id, it.name.as_str()));
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

/// Notes states that upstream's rules allow but few clouds intend. They are imported.
pub(crate) fn note_audit(audit: &Audit, notes: &mut Findings) {
    for finding in &audit.noticed {
        // The audit counts all cases and keeps only some as text.
        let examples = finding
            .examples
            .iter()
            .map(String::as_str)
            .chain(repeat(""));
        for (example, _) in examples.zip(0..finding.count) {
            notes.note(finding.what, || example.to_owned());
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "dump of {}, schema {}", self.dialect, self.revision)?;
        writeln!(f, "\n{:<30} {:>10} {:>10}", "TABLE", "ROWS", "USED")?;
        for (table, read, kept) in &self.tables {
            writeln!(f, "{table:<30} {read:>10} {kept:>10}")?;
        }
        writeln!(
            f,
            "\n{:<30} {:>10} {:>20}",
            "USED RESOURCE CLASS", "PROVIDERS", "UNITS"
        )?;
        for (class, (providers, units)) in &self.used {
            writeln!(f, "{class:<30} {providers:>10} {units:>20}")?;
        }
        if !self.notes.is_empty() {
            writeln!(f, "\nNotes:\n{}", self.notes)?;
        }
        writeln!(f, "content digest: {}", self.digest)
    }
}
