//! Converts the changes of a log entry to SQL for the database of openstack-placement 16.0.0.
//!
//! Rows are found by UUID and name, since the database assigns its own ids. MySQL cannot read the
//! table that a statement writes, except through a derived table that it cannot merge, such as one
//! with an aggregate function.

use anyhow::bail;
use placement_wire::Dialect;
use serde_json::{Value, json};

use crate::render::{list, pairs};

/// Replacement of `{host}` in statements.
const HOST: &str = "(SELECT id FROM resource_providers WHERE uuid = {/key/resource_provider})";
/// If another follower has already advanced the row, the token becomes NULL, which the column
/// forbids.
const POSITION: &str =
    "UPDATE placementd_position SET token = CASE WHEN token = {/from} THEN {/to} END;\n";
const NEW_PROVIDER: &str =
    "INSERT INTO resource_providers (uuid, created_at) VALUES ({/key/uuid}, {/at});\n";
/// The root is the root of the parent, whose change comes first, or the provider itself.
const PROVIDER: &str = "UPDATE resource_providers SET name = {/after/name}, generation = {/after/generation}, \
    updated_at = {/at}, parent_provider_id = (SELECT number FROM (SELECT MAX(id) AS number \
    FROM resource_providers WHERE uuid = {/after/parent_provider_uuid}) AS parents), \
    root_provider_id = COALESCE((SELECT number FROM (SELECT MAX(root_provider_id) AS number \
    FROM resource_providers WHERE uuid = {/after/parent_provider_uuid}) AS parents), id) WHERE uuid = {/key/uuid};\n";
/// InnoDB cannot delete a row that refers to itself.
const NO_PROVIDER: &str = "UPDATE resource_providers SET root_provider_id = NULL WHERE uuid = {/key/uuid};\n\
    DELETE FROM resource_providers WHERE uuid = {/key/uuid};\n";
const NO_INVENTORY: &str = "DELETE FROM inventories WHERE resource_provider_id = {host} AND resource_class_id = \
    (SELECT id FROM resource_classes WHERE name = {/key/resource_class});\n";
const INVENTORY: &str = "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, \
    max_unit, step_size, allocation_ratio, created_at) VALUES ({host}, \
    (SELECT id FROM resource_classes WHERE name = {/key/resource_class}), {/after/total}, {/after/reserved}, \
    {/after/min_unit}, {/after/max_unit}, {/after/step_size}, {/after/allocation_ratio}, {/at});\n";
const NO_TRAIT: &str = "DELETE FROM traits WHERE name = {/key/trait};\n";
const TRAIT: &str = "INSERT INTO traits (name, created_at) VALUES ({/key/trait}, {/at});\n";
const NO_TRAITS: &str =
    "DELETE FROM resource_provider_traits WHERE resource_provider_id = {host};\n";
const ONE_TRAIT: &str = "INSERT INTO resource_provider_traits (resource_provider_id, trait_id, created_at) VALUES \
    ({host}, (SELECT id FROM traits WHERE name = {/one}), {/at});\n";
const NO_AGGREGATES: &str =
    "DELETE FROM resource_provider_aggregates WHERE resource_provider_id = {host};\n";
const ONE_AGGREGATE: &str = "INSERT INTO placement_aggregates (uuid, created_at) SELECT {/one}, {/at} FROM \
    (SELECT COUNT(*) AS hits FROM placement_aggregates WHERE uuid = {/one}) AS counted WHERE hits = 0;\n\
    INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id, created_at) VALUES \
    ({host}, (SELECT id FROM placement_aggregates WHERE uuid = {/one}), {/at});\n";
/// Upstream treats a class with an id below 10000 as a standard one.
const NEW_CLASS: &str = "INSERT INTO resource_classes (id, name, created_at) SELECT \
    CASE WHEN MAX(id) < 10000 THEN 10000 ELSE MAX(id) + 1 END, {/after/name}, {/at} FROM resource_classes;\n";
const NEW_STANDARD_CLASS: &str = "INSERT INTO resource_classes (id, name, created_at) SELECT \
    MAX(id) + 1, {/after/name}, {/at} FROM resource_classes WHERE id < 10000;\n";
const CLASS: &str = "UPDATE resource_classes SET name = {/after/name}, updated_at = {/at} WHERE name = {/before/name};\n";
const NO_CLASS: &str = "DELETE FROM resource_classes WHERE name = {/before/name};\n";
const NO_CONSUMER: &str = "DELETE FROM consumers WHERE uuid = {/key/consumer};\n";
const CONSUMER: &str = "INSERT INTO projects (external_id, created_at) SELECT {/after/project_id}, {/at} FROM \
    (SELECT COUNT(*) AS hits FROM projects WHERE external_id = {/after/project_id}) AS counted WHERE hits = 0;\n\
    INSERT INTO users (external_id, created_at) SELECT {/after/user_id}, {/at} FROM \
    (SELECT COUNT(*) AS hits FROM users WHERE external_id = {/after/user_id}) AS counted WHERE hits = 0;\n\
    INSERT INTO consumer_types (name, created_at) SELECT {/after/consumer_type}, {/at} FROM \
    (SELECT COUNT(*) AS hits FROM consumer_types WHERE name = {/after/consumer_type}) AS counted \
    WHERE hits = 0 AND {/after/consumer_type} IS NOT NULL;\n\
    INSERT INTO consumers (uuid, generation, project_id, user_id, consumer_type_id, created_at) VALUES \
    ({/key/consumer}, {/after/consumer_generation}, \
    (SELECT id FROM projects WHERE external_id = {/after/project_id}), \
    (SELECT id FROM users WHERE external_id = {/after/user_id}), \
    (SELECT id FROM consumer_types WHERE name = {/after/consumer_type}), {/at});\n";
const NO_ALLOCATIONS: &str = "DELETE FROM allocations WHERE consumer_id = {/key/consumer} AND resource_provider_id = {host};\n";
const ONE_ALLOCATION: &str = "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used, \
    created_at) VALUES ({host}, {/key/consumer}, (SELECT id FROM resource_classes WHERE name = {/one/0}), {/one/1}, {/at});\n";

/// Statements before the first transaction; they make the client print errors only.
pub(crate) fn session(dialect: Dialect) -> String {
    let quiet = match dialect {
        Dialect::PostgreSql => "\\set QUIET on\n",
        Dialect::MySql | Dialect::Sqlite => "",
    };
    quiet.to_owned() + dialect.session()
}

fn value(dialect: Dialect, value: &Value) -> anyhow::Result<String> {
    Ok(match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => dialect.quoted(text),
        Value::Number(number) => number.to_string(),
        other => bail!("a node sent {other} for a column of a text or a number"),
    })
}

/// Replaces `{/json/pointer}` in statements with values of a change.
fn filled(dialect: Dialect, statements: &str, change: &Value) -> anyhow::Result<String> {
    let statements = statements.replace("{host}", HOST);
    let mut sql = String::new();
    for part in statements.split('{') {
        let (place, rest) = part.split_once('}').unwrap_or(("", part));
        if !place.is_empty() {
            sql += &value(dialect, change.pointer(place).unwrap_or(&Value::Null))?;
        }
        sql += rest;
    }
    Ok(sql)
}

/// A transaction that applies an event and moves the database from one token to the next. It fails
/// if the database has another token.
///
/// # Errors
/// If this version does not know a kind of change, or a value is neither a text nor a number.
pub(crate) fn transaction(
    dialect: Dialect,
    (from, to): (&str, &str),
    event: &Value,
) -> anyhow::Result<String> {
    let mut sql = String::from("BEGIN;\n");
    sql += &filled(dialect, POSITION, &json!({ "from": from, "to": to }))?;
    // Whole seconds, since MySQL would round fractions.
    let at = event["at"].as_str().and_then(|at| at.get(..19));
    let at = json!(at.map(|at| at.replace('T', " ")));
    for change in list(&event["changes"]) {
        let mut change = change.clone();
        change["at"] = at.clone();
        if change["after"]["consumer_type"] == "unknown" {
            change["after"]["consumer_type"] = Value::Null;
        }
        let (first, of_each, members) = statements(&change)?;
        sql += &filled(dialect, first, &change)?;
        for one in members {
            change["one"] = one;
            sql += &filled(dialect, of_each, &change)?;
        }
    }
    Ok(sql + "COMMIT;\n")
}

/// The statements for a change: one to run first, and one to run for each current member.
fn statements(change: &Value) -> anyhow::Result<(&'static str, &'static str, Vec<Value>)> {
    let (was, after) = (!change["before"].is_null(), &change["after"]);
    let is = !after.is_null();
    let now = if is { vec![Value::Null] } else { Vec::new() };
    let members = |name: &str| list(&after[name]).to_vec();
    Ok(match change["kind"].as_str().unwrap_or_default() {
        "provider" if !was => (NEW_PROVIDER, PROVIDER, now),
        "provider" => (if is { "" } else { NO_PROVIDER }, PROVIDER, now),
        "inventory" => (NO_INVENTORY, INVENTORY, now),
        "trait" if change["key"]["trait"].is_string() => (NO_TRAIT, TRAIT, now),
        "trait" => (NO_TRAITS, ONE_TRAIT, members("traits")),
        "aggregate" => (NO_AGGREGATES, ONE_AGGREGATE, members("aggregates")),
        "class" if was => (if is { CLASS } else { NO_CLASS }, "", now),
        "class" => match after["name"].as_str() {
            Some(name) if name.starts_with("CUSTOM_") => (NEW_CLASS, "", now),
            _ => (NEW_STANDARD_CLASS, "", now),
        },
        "consumer" => (NO_CONSUMER, CONSUMER, now),
        "allocation" => {
            let amounts = pairs(&after["resources"]).map(|amount| json!(amount));
            (NO_ALLOCATIONS, ONE_ALLOCATION, amounts.collect())
        }
        kind => bail!("unknown kind of change {kind:?}: placementctl is older than the nodes"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_applies_changes_and_moves_the_token() {
        let key = json!({"consumer": "c'", "resource_provider": "u"});
        let held = json!({"resources": {"VCPU": 2, "CUSTOM_{/key}": 1}});
        let event = json!({"at": "2026-11-27T06:00:00.9Z", "changes": [
            {"kind": "allocation", "key": key, "before": null, "after": held}]});
        let sql = transaction(Dialect::Sqlite, ("7.1", "7.2"), &event).unwrap();
        let lines: Vec<_> = sql.lines().collect();
        let [begin, position, delete, insert, other, commit] = lines[..] else {
            panic!("{sql}");
        };
        assert_eq!((begin, commit), ("BEGIN;", "COMMIT;"));
        let moved =
            "UPDATE placementd_position SET token = CASE WHEN token = '7.1' THEN '7.2' END;";
        assert_eq!(position, moved);
        let host = "(SELECT id FROM resource_providers WHERE uuid = 'u')";
        assert_eq!(
            delete,
            format!(
                "DELETE FROM allocations WHERE consumer_id = 'c''' AND resource_provider_id = {host};"
            )
        );
        for (insert, name, units) in [(insert, "CUSTOM_{/key}", 1), (other, "VCPU", 2)] {
            let class = format!("(SELECT id FROM resource_classes WHERE name = '{name}')");
            let values =
                format!("VALUES ({host}, 'c''', {class}, {units}, '2026-11-27 06:00:00');");
            assert!(insert.ends_with(&values), "{insert}");
        }
        let event =
            json!({"changes": [{"kind": "planet", "key": {}, "before": null, "after": null}]});
        let error = transaction(Dialect::MySql, ("7.1", "7.2"), &event).unwrap_err();
        assert!(error.to_string().contains("\"planet\""), "{error}");
        for hostile in [
            json!({"x": "1); DROP TABLE traits; --"}),
            json!([1]),
            json!(true),
        ] {
            let after = json!({"name": hostile, "generation": 1});
            let event = json!({"changes": [
                {"kind": "provider", "key": {"uuid": "u"}, "before": null, "after": after}]});
            let error = transaction(Dialect::MySql, ("7.1", "7.2"), &event).unwrap_err();
            assert!(error.to_string().contains("a text or a number"), "{error}");
        }
    }
}
