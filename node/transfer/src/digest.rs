//! A digest of the content that is the same for equal content, wherever it is: in upstream's
//! database, in a backup, in the database that an export fills.
//!
//! Each row is a line of texts, with the names of what it refers to in place of numbers, without
//! its own number, and with the moment of its last change in whole seconds where it is shown. The
//! digest is the sum of the hashes of all lines, so their order does not count.

use std::convert::Infallible;
use std::fmt::Write;

use placement_model::State;
use placement_model::types::{ResourceClassName, TraitName};
use xxhash_rust::xxh3::xxh3_128;

use crate::schema::{Names, Rows, Table};
use crate::sql::Sql;
use crate::state::rows;

/// The form of the lines. To be raised with every change of it.
const FORM: u32 = 1;

/// The digest of the content of a partition, without the standard names that `other` lacks: a
/// cluster has all that its version knows.
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

/// The digest of rows that were checked.
pub(crate) fn digest(rows: &Rows) -> String {
    let names = Names::of(rows);
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

/// The places of the columns that a request shows.
fn shown(table: &Table) -> Vec<usize> {
    // What a name is given to, and what a provider has, has no time of its own that is shown.
    let is_timed = table.is_numbered() && !is_name_alone(table);
    let is_shown = |place: &usize| match table.columns[*place].name {
        "id" => false,
        "created_at" => table.name == "resource_providers",
        "updated_at" => is_timed,
        _ => true,
    };
    (0..table.columns.len()).filter(is_shown).collect()
}

/// Writes each text behind its length, so that no two lines look alike.
fn write_line(table: &Table, shown: &[usize], values: &[Sql], names: &Names, line: &mut String) {
    line.push_str(table.name);
    // What was not updated has the time at which it was made, which stands before.
    let last = values.len() - 1;
    for place in shown {
        let value = match &values[*place] {
            Sql::Null if *place == last => &values[last - 1],
            value => value,
        };
        let text = names.get(&table.columns[*place], value);
        let text = text.unwrap_or(value.text());
        write!(line, " {}:{text}", text.len()).expect("a text takes what is written");
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
