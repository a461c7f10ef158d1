//! A digest of the content of a partition. It is equal for equal content in upstream's database, in
//! a backup, and in a database filled by an export.
//!
//! Each row becomes a line of texts. The line has the names of referenced rows instead of their
//! numbers, and omits the row's own number. It has the time of the last change in whole seconds if
//! responses show that time. The digest is the sum of the hashes of all lines, so their order does
//! not matter.

use std::convert::Infallible;
use std::fmt::Write;

use placement_model::State;
use placement_model::types::{ResourceClassName, TraitName};
use xxhash_rust::xxh3::xxh3_128;

use crate::schema::{Names, Rows, Table};
use crate::sql::Sql;
use crate::state::rows;

/// Version of the line format. Increase it with every change of the format.
const FORM: u32 = 1;

/// The digest of the content of a partition, without the standard names that `other` lacks: a
/// cluster has all standard names of its version, but `other` may be of another version.
pub fn content_digest(state: &State, other: &State) -> String {
    let mut rows = rows(state);
    rows.resource_classes.retain(|row| {
        let name: Option<ResourceClassName> = row.name.as_str().parse().ok();
        name.is_none_or(|name| name.is_custom() || other.resource_class_id(&name).is_some())
    });
    rows.traits.retain(|row| {
        let name: Option<TraitName> = row.name.as_str().parse().ok();
        name.is_none_or(|name| name.is_custom() || other.trait_id(&name).is_some())
    });
    digest(&rows)
}

/// The digest of checked rows.
pub(crate) fn digest(rows: &Rows) -> String {
    let names = Names::collect(rows);
    let (mut sum, mut line) = (0_u128, String::new());
    let Ok(()) = rows.for_each_table(|table, rows| {
        let shown = shown(table);
        for values in rows {
            line.clear();
            write_line(table, &shown, &values, &names, &mut line);
            sum = sum.wrapping_add(xxh3_128(line.as_bytes()));
        }
        Ok::<_, Infallible>(())
    });
    format!("{FORM}.{sum:032x}")
}

/// Indexes of the columns that requests show.
fn shown(table: &Table) -> Vec<usize> {
    // Responses show no time for rows that consist of only a name, or for a provider's traits and
    // aggregates.
    let is_timed = table.is_numbered() && !is_name_alone(table);
    let is_shown = |place: &usize| match table.columns[*place].name {
        "id" => false,
        "created_at" => table.name == "resource_providers",
        "updated_at" => is_timed,
        _ => true,
    };
    (0..table.columns.len()).filter(is_shown).collect()
}

/// Writes each text after its length, so that different rows give different lines.
fn write_line(table: &Table, shown: &[usize], values: &[Sql], names: &Names, line: &mut String) {
    line.push_str(table.name);
    // For a row that was never updated, use its creation time, which is the previous column.
    let last = values.len() - 1;
    for place in shown {
        let value = match &values[*place] {
            Sql::Null if *place == last => &values[last - 1],
            value => value,
        };
        let text = names
            .get(&table.columns[*place], value)
            .unwrap_or(value.text());
        write!(line, " {}:{text}", text.len()).expect("writing to a string does not fail");
    }
}

fn is_name_alone(table: &Table) -> bool {
    [
        "placement_aggregates",
        "projects",
        "users",
        "consumer_types",
    ]
    .contains(&table.name)
}
