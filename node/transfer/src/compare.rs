//! Client-visible differences between MySQL or MariaDB and placementd in computations and
//! comparisons.

use std::collections::BTreeMap;

use placement_wire::Dialect;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::findings::Findings;
use crate::schema::Rows;
use crate::sql::Text;

const SPELLING: &str = "name or id with upper case, accents or a trailing space: MySQL usually treats `Host1` and `host1 ` as \
                        equal, placementd does not. A client that spells it differently was served before, and now gets \
                        a 404 or an empty list";
const RATIO: &str = "inventory whose capacity in whole units depends on the precision of the ratio: MySQL computes with 32-bit floats, \
                     placementd with the number that the API shows. A claim of the last unit may have a different result";

const ALIKE: &str = "two names that most collations of MySQL treat as equal: the database rejects the second as a duplicate. Rename one, \
                     or change the collation of the column to utf8mb4_bin before you load the export";

/// Notes the differences, for a dump of MySQL.
pub(crate) fn note(rows: &Rows, dialect: Dialect, notes: &mut Findings) {
    if dialect != Dialect::MySql {
        return;
    }
    let providers = rows
        .resource_providers
        .iter()
        .flat_map(|it| it.name.as_ref().map(Text::as_str));
    let consumers = rows.consumers.iter().map(|it| it.uuid.as_str());
    let aggregates = rows.placement_aggregates.iter().map(|it| it.uuid.as_str());
    let projects = rows.projects.iter().map(|it| it.external_id.as_str());
    let users = rows.users.iter().map(|it| it.external_id.as_str());
    let all = providers
        .chain(consumers)
        .chain(aggregates)
        .chain(projects)
        .chain(users);
    for name in all.filter(|name| is_folded(name)) {
        notes.note(SPELLING, || format!("{name:?}"));
    }
    for it in &rows.inventories {
        let units = f64::from(it.total.0) - f64::from(it.reserved.0);
        let (shown, stored) = (it.allocation_ratio, it.allocation_ratio as f32);
        let (ours, theirs) = ((units * shown).floor(), (units * f64::from(stored)).floor());
        if ours != theirs {
            let row = format!("SELECT * FROM inventories WHERE id = {};", it.id);
            notes.note(RATIO, || format!("{ours} here, {theirs} there: {row}"));
        }
    }
}

/// Notes names that placementd distinguishes and MySQL may not, in columns with unique names.
pub(crate) fn note_alike(rows: &Rows, dialect: Dialect, notes: &mut Findings) {
    if dialect != Dialect::MySql {
        return;
    }
    let providers = rows
        .resource_providers
        .iter()
        .flat_map(|it| it.name.as_ref().map(Text::as_str));
    alike("resource_providers.name", providers, notes);
    let consumers = rows.consumers.iter().map(|it| it.uuid.as_str());
    alike("consumers.uuid", consumers, notes);
    let aggregates = rows.placement_aggregates.iter();
    alike(
        "placement_aggregates.uuid",
        aggregates.map(|it| it.uuid.as_str()),
        notes,
    );
    let projects = rows.projects.iter().map(|it| it.external_id.as_str());
    alike("projects.external_id", projects, notes);
    let users = rows.users.iter().map(|it| it.external_id.as_str());
    alike("users.external_id", users, notes);
}

fn alike<'a>(column: &str, names: impl Iterator<Item = &'a str>, notes: &mut Findings) {
    let mut first = BTreeMap::new();
    for name in names {
        if let Some(other) = first.insert(folded(name), name) {
            notes.note(ALIKE, || format!("{column}: {other:?} and {name:?}"));
        }
    }
}

/// Folds case, accents and trailing spaces of a name.
fn folded(name: &str) -> String {
    let parts = name.trim_end_matches(' ').nfkd();
    let plain = parts.filter(|char| !is_combining_mark(*char));
    plain.flat_map(char::to_lowercase).collect()
}

/// Whether the name has another common spelling.
fn is_folded(name: &str) -> bool {
    name.ends_with(' ')
        || name
            .chars()
            .any(|char| char.is_uppercase() || !char.is_ascii())
}
