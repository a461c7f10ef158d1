//! What MySQL and MariaDB compute and compare otherwise than placementd, so that a client might notice.

use crate::findings::{Findings, Kind};
use crate::schema::{Numbered, Rows};
use crate::sql::Dialect;

const SPELLING: Kind = Kind {
    what: "names and ids with upper case, accents or blanks at the end",
    advice: "MySQL's usual collation takes `Host1` and `host1 ` for the same; placementd tells them apart. A client that \
             spells one otherwise than it stands here was served before and is answered 404 or an empty list now: Nova and \
             Neutron spell a host as their configuration does",
};
const RATIO: Kind = Kind {
    what: "inventories whose capacity in whole units depends on how exact the ratio is",
    advice: "MySQL computes with a ratio of 32 bits, placementd with the decimal number that the API shows: a claim of the last \
             unit may be decided otherwise",
};

/// Notes it for a database that compares and computes so.
pub(crate) fn note(rows: &Rows, dialect: Dialect, notes: &mut Findings) {
    if dialect != Dialect::MySql {
        return;
    }
    for it in &rows.resource_providers {
        let name = it.name.as_ref().map_or("", |name| name.as_str());
        spelling(&[it.name(), name], "resource_providers", notes);
    }
    rows.consumers
        .iter()
        .for_each(|it| spelling(&[it.name()], "consumers", notes));
    rows.placement_aggregates
        .iter()
        .for_each(|it| spelling(&[it.name()], "placement_aggregates", notes));
    rows.projects
        .iter()
        .for_each(|it| spelling(&[it.name()], "projects", notes));
    rows.users
        .iter()
        .for_each(|it| spelling(&[it.name()], "users", notes));
    for it in &rows.inventories {
        let units = f64::from(it.total.0) - f64::from(it.reserved.0);
        let (shown, stored) = (it.allocation_ratio, it.allocation_ratio as f32);
        let (ours, theirs) = ((units * shown).floor(), (units * f64::from(stored)).floor());
        if ours != theirs {
            notes.note(RATIO, || {
                let id = it.id;
                format!("{ours} here, {theirs} there: SELECT * FROM inventories WHERE id = {id};")
            });
        }
    }
}

fn spelling(names: &[&str], table: &str, notes: &mut Findings) {
    for name in names.iter().filter(|name| is_folded(name)) {
        notes.note(SPELLING, || format!("{table}: {name:?}"));
    }
}

/// Whether another spelling than this may be the usual one.
fn is_folded(name: &str) -> bool {
    name.ends_with(' ')
        || name
            .chars()
            .any(|char| char.is_uppercase() || !char.is_ascii())
}
