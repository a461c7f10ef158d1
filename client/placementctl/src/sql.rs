//! Converts the changes of a log entry to SQL for the database of openstack-placement 16.0.0.
//!
//! Rows are found by UUID and name, since the database assigns its own ids. MySQL cannot read the
//! table that a statement writes, except through a derived table that it cannot merge into the
//! query, such as a table with an aggregate function.

use anyhow::{Context, bail};
use placement_wire::Dialect;
use placement_wire::events::{
    AggregatesValue, AllocationKey, AllocationValue, ClassKey, ConsumerKey, ConsumerValue,
    InventoryKey, InventoryValue, Kind, NO_TYPE, NameValue, ProviderKey, ProviderValue, SetKey,
    TraitKey, TraitsValue,
};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IntoDeserializer, value};
use serde_json::Value;

use crate::content::{AnyChange, AnyEntry};
use crate::render::cell;

/// The traits of a provider; `None` for a trait that the node does not know.
type Traits = TraitsValue<Option<String>>;

/// Statements before the first transaction. They make the client print only errors.
pub(crate) fn session(dialect: Dialect) -> String {
    let quiet = match dialect {
        Dialect::PostgreSql => "\\set QUIET on\n",
        Dialect::MySql | Dialect::Sqlite => "",
    };
    quiet.to_owned() + dialect.session()
}

/// A transaction that applies an entry and changes the token of the database from `from` to `to`.
/// It fails if the database has another token.
///
/// # Errors
/// This version does not know the kind or the format of a change.
pub(crate) fn transaction(
    dialect: Dialect,
    (from, to): (&str, &str),
    entry: Option<&AnyEntry>,
) -> anyhow::Result<String> {
    let (from, to) = (dialect.quoted(from), dialect.quoted(to));
    // If another follower has already advanced the row, the token becomes NULL, which the column
    // forbids.
    let mut sql = format!(
        "BEGIN;\nUPDATE placementd_position SET token = CASE WHEN token = {from} THEN {to} END;\n"
    );
    // Whole seconds, since MySQL would round fractions.
    let at = entry
        .and_then(|entry| entry.at.as_ref()?.get(..19))
        .map(|time| time.replace('T', " "));
    let writer = Writer {
        dialect,
        at: literal(dialect, at.as_deref()),
    };
    for change in entry.iter().flat_map(|entry| &entry.changes) {
        sql += &writer.statements(change)?;
    }
    Ok(sql + "COMMIT;\n")
}

/// A text as a literal, or NULL.
fn literal(dialect: Dialect, text: Option<&str>) -> String {
    text.map_or_else(|| "NULL".to_owned(), |text| dialect.quoted(text))
}

/// Key, old value and new value of a change, parsed by its kind.
///
/// # Errors
/// The change has another format.
fn typed<K: DeserializeOwned, V: DeserializeOwned>(
    change: &AnyChange,
) -> anyhow::Result<(K, Option<V>, Option<V>)> {
    let read = || {
        let value = |value: &Option<Value>| value.as_ref().map(V::deserialize).transpose();
        let (before, after) = (value(&change.before)?, value(&change.after)?);
        serde_json::Result::Ok((K::deserialize(&change.key)?, before, after))
    };
    let kind = &change.kind;
    read().with_context(|| format!("a node sent a change of {kind:?} in an unknown format"))
}

/// Writes the statements of one entry.
struct Writer {
    dialect: Dialect,
    /// The SQL literal of the time of the entry.
    at: String,
}

impl Writer {
    /// The statements for a change.
    fn statements(&self, change: &AnyChange) -> anyhow::Result<String> {
        let kind: Result<Kind, value::Error> =
            Kind::deserialize(change.kind.as_str().into_deserializer());
        let Ok(kind) = kind else {
            let kind = &change.kind;
            bail!("unknown kind of change {kind:?}: placementctl is older than the nodes")
        };
        Ok(match kind {
            Kind::Provider => self.provider(typed(change)?),
            Kind::Inventory => self.inventory(typed(change)?),
            Kind::Trait => match TraitKey::<String>::deserialize(&change.key) {
                Ok(_) => self.named_trait(typed(change)?),
                Err(_) => self.traits(typed(change)?),
            },
            Kind::Aggregate => self.aggregates(typed(change)?),
            Kind::Class => self.class(typed(change)?),
            Kind::Consumer => self.consumer(typed(change)?),
            Kind::Allocation => self.allocation(typed(change)?),
        })
    }

    fn text(&self, text: &str) -> String {
        self.dialect.quoted(text)
    }

    fn optional(&self, text: Option<&String>) -> String {
        literal(self.dialect, text.map(String::as_str))
    }

    /// A subquery for the id of a provider in the database.
    fn host(&self, uuid: Option<&String>) -> String {
        let uuid = self.optional(uuid);
        format!("(SELECT id FROM resource_providers WHERE uuid = {uuid})")
    }

    fn provider(
        &self,
        (key, before, after): (ProviderKey, Option<ProviderValue>, Option<ProviderValue>),
    ) -> String {
        let (uuid, at) = (self.text(&key.uuid), &self.at);
        let Some(after) = after else {
            // InnoDB cannot delete a row that refers to itself.
            return format!(
                "UPDATE resource_providers SET root_provider_id = NULL WHERE uuid = {uuid};\n\
                 DELETE FROM resource_providers WHERE uuid = {uuid};\n"
            );
        };
        let new = match before {
            Some(_) => String::new(),
            None => format!(
                "INSERT INTO resource_providers (uuid, created_at) VALUES ({uuid}, {at});\n"
            ),
        };
        let (name, generation) = (self.text(&after.name), after.generation);
        let parent = self.optional(after.parent_provider_uuid.as_ref());
        // The root is the root of the parent, whose change comes first, or the provider itself.
        new + &format!(
            "UPDATE resource_providers SET name = {name}, generation = {generation}, \
             updated_at = {at}, parent_provider_id = (SELECT number FROM (SELECT MAX(id) AS number \
             FROM resource_providers WHERE uuid = {parent}) AS parents), \
             root_provider_id = COALESCE((SELECT number FROM (SELECT MAX(root_provider_id) AS number \
             FROM resource_providers WHERE uuid = {parent}) AS parents), id) WHERE uuid = {uuid};\n"
        )
    }

    fn inventory(
        &self,
        (key, _, after): (InventoryKey, Option<InventoryValue>, Option<InventoryValue>),
    ) -> String {
        let host = self.host(key.resource_provider.as_ref());
        let (class, at) = (self.optional(key.resource_class.as_ref()), &self.at);
        let class = format!("(SELECT id FROM resource_classes WHERE name = {class})");
        let mut sql = format!(
            "DELETE FROM inventories WHERE resource_provider_id = {host} AND resource_class_id = \
             {class};\n"
        );
        if let Some(InventoryValue {
            total,
            reserved,
            min_unit,
            max_unit,
            step_size,
            allocation_ratio,
        }) = after
        {
            // Formatted as in JSON, such as `16.0`.
            let allocation_ratio = cell(allocation_ratio);
            sql += &format!(
                "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, \
                 max_unit, step_size, allocation_ratio, created_at) VALUES ({host}, \
                 {class}, {total}, {reserved}, \
                 {min_unit}, {max_unit}, {step_size}, {allocation_ratio}, {at});\n"
            );
        }
        sql
    }

    fn named_trait(
        &self,
        (key, _, after): (TraitKey, Option<NameValue>, Option<NameValue>),
    ) -> String {
        let (name, at) = (self.text(&key.r#trait), &self.at);
        let new = after
            .map(|_| format!("INSERT INTO traits (name, created_at) VALUES ({name}, {at});\n"));
        format!("DELETE FROM traits WHERE name = {name};\n") + &new.unwrap_or_default()
    }

    fn traits(&self, (key, _, after): (SetKey, Option<Traits>, Option<Traits>)) -> String {
        let (host, at) = (self.host(key.resource_provider.as_ref()), &self.at);
        let traits = after.map(|after| after.traits).unwrap_or_default();
        let traits = traits.iter().map(|name| {
            let name = self.optional(name.as_ref());
            format!(
                "INSERT INTO resource_provider_traits (resource_provider_id, trait_id, created_at) VALUES \
                 ({host}, (SELECT id FROM traits WHERE name = {name}), {at});\n"
            )
        });
        format!("DELETE FROM resource_provider_traits WHERE resource_provider_id = {host};\n")
            + &traits.collect::<String>()
    }

    fn aggregates(
        &self,
        (key, _, after): (SetKey, Option<AggregatesValue>, Option<AggregatesValue>),
    ) -> String {
        let (host, at) = (self.host(key.resource_provider.as_ref()), &self.at);
        let aggregates = after.map(|after| after.aggregates).unwrap_or_default();
        let aggregates = aggregates.iter().map(|uuid| {
            let uuid = self.text(uuid);
            format!(
                "INSERT INTO placement_aggregates (uuid, created_at) SELECT {uuid}, {at} FROM \
                 (SELECT COUNT(*) AS hits FROM placement_aggregates WHERE uuid = {uuid}) AS counted WHERE hits = 0;\n\
                 INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id, created_at) VALUES \
                 ({host}, (SELECT id FROM placement_aggregates WHERE uuid = {uuid}), {at});\n"
            )
        });
        format!("DELETE FROM resource_provider_aggregates WHERE resource_provider_id = {host};\n")
            + &aggregates.collect::<String>()
    }

    fn class(
        &self,
        (_, before, after): (ClassKey, Option<NameValue>, Option<NameValue>),
    ) -> String {
        let at = &self.at;
        let name = |value: &NameValue| self.text(&value.name);
        match (before.as_ref().map(name), after.as_ref().map(name)) {
            (Some(before), Some(after)) => format!(
                "UPDATE resource_classes SET name = {after}, updated_at = {at} WHERE name = {before};\n"
            ),
            (Some(before), None) => {
                format!("DELETE FROM resource_classes WHERE name = {before};\n")
            }
            // Upstream treats a class with an id below 10000 as a standard one.
            (None, Some(name)) if after.is_some_and(|one| one.name.starts_with("CUSTOM_")) => {
                format!(
                    "INSERT INTO resource_classes (id, name, created_at) SELECT \
                 CASE WHEN MAX(id) < 10000 THEN 10000 ELSE MAX(id) + 1 END, {name}, {at} FROM resource_classes;\n"
                )
            }
            (None, Some(name)) => format!(
                "INSERT INTO resource_classes (id, name, created_at) SELECT \
                 MAX(id) + 1, {name}, {at} FROM resource_classes WHERE id < 10000;\n"
            ),
            (None, None) => String::new(),
        }
    }

    fn consumer(
        &self,
        (key, _, after): (ConsumerKey, Option<ConsumerValue>, Option<ConsumerValue>),
    ) -> String {
        let (uuid, at) = (self.text(&key.consumer), &self.at);
        let mut sql = format!("DELETE FROM consumers WHERE uuid = {uuid};\n");
        if let Some(after) = after {
            let generation = after.consumer_generation;
            let (project, user) = (self.text(&after.project_id), self.text(&after.user_id));
            let kind = Some(&after.consumer_type).filter(|kind| *kind != NO_TYPE);
            let kind = self.optional(kind);
            sql += &format!(
                "INSERT INTO projects (external_id, created_at) SELECT {project}, {at} FROM \
                 (SELECT COUNT(*) AS hits FROM projects WHERE external_id = {project}) AS counted WHERE hits = 0;\n\
                 INSERT INTO users (external_id, created_at) SELECT {user}, {at} FROM \
                 (SELECT COUNT(*) AS hits FROM users WHERE external_id = {user}) AS counted WHERE hits = 0;\n\
                 INSERT INTO consumer_types (name, created_at) SELECT {kind}, {at} FROM \
                 (SELECT COUNT(*) AS hits FROM consumer_types WHERE name = {kind}) AS counted \
                 WHERE hits = 0 AND {kind} IS NOT NULL;\n\
                 INSERT INTO consumers (uuid, generation, project_id, user_id, consumer_type_id, created_at) VALUES \
                 ({uuid}, {generation}, \
                 (SELECT id FROM projects WHERE external_id = {project}), \
                 (SELECT id FROM users WHERE external_id = {user}), \
                 (SELECT id FROM consumer_types WHERE name = {kind}), {at});\n"
            );
        }
        sql
    }

    fn allocation(
        &self,
        (key, _, after): (
            AllocationKey,
            Option<AllocationValue>,
            Option<AllocationValue>,
        ),
    ) -> String {
        let (consumer, at) = (self.text(&key.consumer), &self.at);
        let host = self.host(key.resource_provider.as_ref());
        let amounts = after.map(|after| after.resources).unwrap_or_default();
        let amounts = amounts.iter().map(|(class, units)| {
            let class = self.text(class);
            format!(
                "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used, \
                 created_at) VALUES ({host}, {consumer}, (SELECT id FROM resource_classes WHERE name = {class}), \
                 {units}, {at});\n"
            )
        });
        format!(
            "DELETE FROM allocations WHERE consumer_id = {consumer} AND resource_provider_id = {host};\n"
        ) + &amounts.collect::<String>()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sql(dialect: Dialect, event: Value) -> anyhow::Result<String> {
        let entry = AnyEntry::deserialize(event).unwrap();
        transaction(dialect, ("7.1", "7.2"), Some(&entry))
    }

    #[test]
    fn a_transaction_applies_changes_and_moves_the_token() {
        let key = json!({"consumer": "c'", "resource_provider": "u"});
        let held = json!({"resources": {"VCPU": 2, "CUSTOM_{/key}": 1}});
        let event = json!({"index": "7.2", "verb": "v", "at": "2026-11-27T06:00:00.9Z", "changes": [
            {"kind": "allocation", "key": key, "before": null, "after": held}]});
        let written = sql(Dialect::Sqlite, event).unwrap();
        let lines: Vec<_> = written.lines().collect();
        let [begin, position, delete, insert, other, commit] = lines[..] else {
            panic!("{written}");
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
        let event = json!({"index": "7.2", "verb": "v", "changes": [{"kind": "planet", "key": {}, "before": null, "after": null}]});
        let error = sql(Dialect::MySql, event).unwrap_err();
        assert!(error.to_string().contains("\"planet\""), "{error}");
        for hostile in [
            json!({"x": "1); DROP TABLE traits; --"}),
            json!([1]),
            json!(true),
        ] {
            let after = json!({"name": hostile, "generation": 1});
            let event = json!({"index": "7.2", "verb": "v", "changes": [
                {"kind": "provider", "key": {"uuid": "u"}, "before": null, "after": after}]});
            let error = sql(Dialect::MySql, event).unwrap_err();
            assert!(error.to_string().contains("an unknown format"), "{error}");
        }
    }
}
