//! What MySQL and MariaDB compute and compare otherwise than placementd, so that a client might notice.

use placement_wire::Dialect;

use crate::findings::Findings;
use crate::schema::Rows;
use crate::sql::Text;

const SPELLING: &str = "name or id with upper case, accents or a blank at the end: MySQL usually takes `Host1` and `host1 ` for \
                        the same, placementd does not. A client that spells it otherwise than here was served before, and is \
                        answered 404 or an empty list now";
const RATIO: &str = "inventory whose capacity in whole units depends on how exact the ratio is: MySQL computes with 32 bits, \
                     placementd with the number that the API shows. A claim of the last unit may be decided otherwise";

/// Notes it for a database that compares and computes so.
pub(crate) fn note(rows: &Rows, dialect: Dialect, notes: &mut Findings) {
    if dialect != Dialect::MySql {
        return;
    }
    let providers = rows.resource_providers.iter();
    let providers = providers.flat_map(|it| it.name.as_ref().map(Text::as_str));
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

/// Whether another spelling than this may be the usual one.
fn is_folded(name: &str) -> bool {
    name.ends_with(' ')
        || name
            .chars()
            .any(|char| char.is_uppercase() || !char.is_ascii())
}
