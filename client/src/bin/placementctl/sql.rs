//! What a log entry has changed, as SQL for the database of openstack-placement 16.0.0.
//!
//! Rows are found by their UUIDs and names, as their numbers are the database's own. MySQL does not read the table that a statement
//! writes, except through a derived table that it cannot merge, such as one of an aggregate.

use std::fmt::Write;

use anyhow::bail;
use clap::ValueEnum;
use serde_json::Value;

use crate::render::{list, pairs};

/// A database that upstream runs on, and its SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// For `mysql --skip-reconnect`.
    Mysql,
    /// For `psql`.
    Postgresql,
    /// For `sqlite3 -bail`.
    Sqlite,
}

impl Dialect {
    /// What stands before all transactions. The database's client has to end at the first error.
    pub(crate) fn session(self) -> &'static str {
        match self {
            Self::Mysql => {
                "SET NAMES utf8mb4;\n\
                 SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO';\n"
            }
            Self::Postgresql => {
                "\\set ON_ERROR_STOP on\n\\set QUIET on\nSET client_encoding = 'UTF8';\n"
            }
            Self::Sqlite => "",
        }
    }

    /// A text without line breaks, as some clients change those. What a database cannot hold, it refuses: PostgreSQL a NUL.
    fn text(self, text: &str) -> String {
        let quoted = text.replace('\'', "''");
        match self {
            Self::Sqlite if text.contains(char::is_control) => {
                let bytes: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
                format!("CAST(X'{bytes}' AS TEXT)")
            }
            Self::Sqlite => format!("'{quoted}'"),
            Self::Mysql | Self::Postgresql => {
                let escapes = [('\\', "\\\\"), ('\0', "\\0"), ('\r', "\\r"), ('\n', "\\n")];
                let escape = |text: String, (plain, escaped)| text.replace(plain, escaped);
                let prefix = if self == Self::Mysql { "" } else { "E" };
                format!("{prefix}'{}'", escapes.into_iter().fold(quoted, escape))
            }
        }
    }

    fn value(self, value: &Value) -> String {
        match value {
            Value::Null => "NULL".to_owned(),
            Value::String(text) => self.text(text),
            number => number.to_string(),
        }
    }

    /// The number of a row.
    fn id(self, table: &str, column: &str, value: &Value) -> String {
        let value = self.value(value);
        format!("(SELECT id FROM {table} WHERE {column} = {value})")
    }
}

/// A transaction that brings a database from one token to another, with what an event has changed; it fails if the database is elsewhere.
///
/// # Errors
/// If this version does not know something that was changed.
pub(crate) fn transaction(
    dialect: Dialect,
    (from, to): (&str, &str),
    event: &Value,
) -> anyhow::Result<String> {
    let at = event["at"].as_str().and_then(|at| at.get(..19));
    let at = at.map_or("NULL".to_owned(), |at| dialect.text(&at.replace('T', " ")));
    let sql = String::from("BEGIN;\n");
    let mut entry = Entry { dialect, at, sql };
    let [from, to] = [from, to].map(|token| dialect.text(token));
    // Another follower that was faster has changed the row, and it cannot be NULL.
    entry.add(&format!(
        "UPDATE placementd_position SET token = CASE WHEN token = {from} THEN {to} END"
    ));
    for change in list(&event["changes"]) {
        entry.change(change)?;
    }
    entry.add("COMMIT");
    Ok(entry.sql)
}

/// The statements of one log entry.
struct Entry {
    dialect: Dialect,
    /// When it was, in whole seconds.
    at: String,
    sql: String,
}

impl Entry {
    fn add(&mut self, statement: &str) {
        self.sql += statement;
        self.sql += ";\n";
    }

    /// Puts or deletes the row that a condition finds.
    fn row(&mut self, table: &str, condition: &str, change: &Value, columns: &[(&str, String)]) {
        let at = &self.at;
        let statement = match (&change["before"], &change["after"]) {
            (_, Value::Null) => format!("DELETE FROM {table} WHERE {condition}"),
            (Value::Null, _) => {
                let (names, values): (Vec<_>, Vec<_>) = columns.iter().cloned().unzip();
                let (names, values) = (names.join(", "), values.join(", "));
                format!("INSERT INTO {table} ({names}, created_at) VALUES ({values}, {at})")
            }
            _ => {
                let mut set = String::new();
                for (name, value) in columns {
                    let _ = write!(set, "{name} = {value}, ");
                }
                format!("UPDATE {table} SET {set}updated_at = {at} WHERE {condition}")
            }
        };
        self.add(&statement);
    }

    /// Makes a row for a text, unless there is one.
    fn ensure(&mut self, table: &str, column: &str, text: &Value) {
        let (text, at) = (self.dialect.value(text), &self.at);
        self.add(&format!(
            "INSERT INTO {table} ({column}, created_at) SELECT {text}, {at} FROM \
             (SELECT COUNT(*) AS hits FROM {table} WHERE {column} = {text}) AS counted WHERE hits = 0"
        ));
    }

    fn change(&mut self, change: &Value) -> anyhow::Result<()> {
        let key = &change["key"];
        let host = self
            .dialect
            .id("resource_providers", "uuid", &key["resource_provider"]);
        match change["kind"].as_str().unwrap_or_default() {
            "provider" => self.provider(change),
            "inventory" => self.inventory(&host, change),
            "trait" if key["trait"].is_string() => self.named_trait(change),
            "trait" => {
                let table = ("resource_provider_traits", "trait_id");
                self.set(&host, table, ("traits", "name"), &change["after"]["traits"]);
            }
            "aggregate" => {
                let aggregates = &change["after"]["aggregates"];
                for aggregate in list(aggregates) {
                    self.ensure("placement_aggregates", "uuid", aggregate);
                }
                let table = ("resource_provider_aggregates", "aggregate_id");
                self.set(&host, table, ("placement_aggregates", "uuid"), aggregates);
            }
            "class" => self.class(change),
            "consumer" => self.consumer(change),
            "allocation" => self.allocation(&host, change),
            kind => {
                bail!("placementctl is older than the nodes: it does not know changes of {kind:?}")
            }
        }
        Ok(())
    }

    /// With its root, which is the parent's. What is below a provider that moves comes behind it.
    fn provider(&mut self, change: &Value) {
        let (table, after) = ("resource_providers", &change["after"]);
        let value = |value| self.dialect.value(value);
        let (uuid, name, generation) = (
            value(&change["key"]["uuid"]),
            value(&after["name"]),
            value(&after["generation"]),
        );
        let of_parent = |column| match &after["parent_provider_uuid"] {
            Value::Null => None,
            parent => Some(format!(
                "(SELECT number FROM (SELECT MAX({column}) AS number FROM {table} WHERE uuid = {}) AS parents)",
                value(parent)
            )),
        };
        let parent = of_parent("id").unwrap_or("NULL".to_owned());
        let root = of_parent("root_provider_id").unwrap_or("id".to_owned());
        let condition = format!("uuid = {uuid}");
        match (&change["before"], after) {
            (Value::Null, _) => self.row(table, &condition, change, &[("uuid", uuid)]),
            // InnoDB does not delete a row that refers to itself.
            (_, Value::Null) => self.add(&format!(
                "UPDATE {table} SET root_provider_id = NULL WHERE {condition}"
            )),
            _ => {}
        }
        let columns = [
            ("name", name),
            ("generation", generation),
            ("parent_provider_id", parent),
            ("root_provider_id", root),
        ];
        let present = Value::from_iter([("before", after.clone()), ("after", after.clone())]);
        self.row(table, &condition, &present, &columns);
    }

    fn inventory(&mut self, host: &str, change: &Value) {
        let class = &change["key"]["resource_class"];
        let class = self.dialect.id("resource_classes", "name", class);
        let condition = format!("resource_provider_id = {host} AND resource_class_id = {class}");
        let amounts = [
            "total",
            "reserved",
            "min_unit",
            "max_unit",
            "step_size",
            "allocation_ratio",
        ];
        let amounts = amounts.map(|name| (name, self.dialect.value(&change["after"][name])));
        let ids = [
            ("resource_provider_id", host.to_owned()),
            ("resource_class_id", class),
        ];
        let columns = [&ids[..], &amounts[..]].concat();
        self.row("inventories", &condition, change, &columns);
    }

    fn named_trait(&mut self, change: &Value) {
        let name = &change["key"]["trait"];
        match &change["after"] {
            Value::Null => {
                let condition = format!("name = {}", self.dialect.value(name));
                self.row("traits", &condition, change, &[]);
            }
            _ => self.ensure("traits", "name", name),
        }
    }

    /// Replaces what a provider has of another table.
    fn set(&mut self, host: &str, table: (&str, &str), of: (&str, &str), names: &Value) {
        let ((table, id), (named, name), at) = (table, of, &self.at);
        let (delete, names) = (
            format!("DELETE FROM {table} WHERE resource_provider_id = {host}"),
            list(names).iter().map(|name| self.dialect.value(name)),
        );
        let names = names.collect::<Vec<_>>().join(", ");
        let insert = format!(
            "INSERT INTO {table} (resource_provider_id, {id}, created_at) \
             SELECT {host}, id, {at} FROM {named} WHERE {name} IN ({names})"
        );
        self.add(&delete);
        if !names.is_empty() {
            self.add(&insert);
        }
    }

    /// Upstream takes a class with a number below 10000 for a standard one.
    fn class(&mut self, change: &Value) {
        let (table, after) = ("resource_classes", &change["after"]["name"]);
        let name = self.dialect.value(after);
        if !change["before"].is_null() {
            let old = self.dialect.value(&change["before"]["name"]);
            return self.row(table, &format!("name = {old}"), change, &[("name", name)]);
        }
        let is_custom = after
            .as_str()
            .is_some_and(|name| name.starts_with("CUSTOM_"));
        let (next, of) = match is_custom {
            true => (
                "CASE WHEN MAX(id) < 10000 THEN 10000 ELSE MAX(id) + 1 END",
                "",
            ),
            false => ("MAX(id) + 1", " WHERE id < 10000"),
        };
        let at = &self.at;
        self.add(&format!(
            "INSERT INTO {table} (id, name, created_at) SELECT {next}, {name}, {at} FROM {table}{of}"
        ));
    }

    fn consumer(&mut self, change: &Value) {
        let (uuid, after) = (
            self.dialect.value(&change["key"]["consumer"]),
            &change["after"],
        );
        let condition = format!("uuid = {uuid}");
        let generation = self.dialect.value(&after["consumer_generation"]);
        let mut columns = vec![("uuid", uuid), ("generation", generation)];
        for (column, table, name, text) in [
            (
                "project_id",
                "projects",
                "external_id",
                &after["project_id"],
            ),
            ("user_id", "users", "external_id", &after["user_id"]),
            (
                "consumer_type_id",
                "consumer_types",
                "name",
                &after["consumer_type"],
            ),
        ] {
            let is_none = text.is_null() || table == "consumer_types" && text == "unknown";
            if !is_none {
                self.ensure(table, name, text);
            }
            let id = match is_none {
                true => "NULL".to_owned(),
                false => self.dialect.id(table, name, text),
            };
            columns.push((column, id));
        }
        self.row("consumers", &condition, change, &columns);
    }

    fn allocation(&mut self, host: &str, change: &Value) {
        let consumer = self.dialect.value(&change["key"]["consumer"]);
        self.add(&format!(
            "DELETE FROM allocations WHERE consumer_id = {consumer} AND resource_provider_id = {host}"
        ));
        for (class, units) in pairs(&change["after"]["resources"]) {
            let class = self
                .dialect
                .id("resource_classes", "name", &Value::from(&**class));
            let at = &self.at;
            self.add(&format!(
                "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used, created_at) \
                 VALUES ({host}, {consumer}, {class}, {units}, {at})"
            ));
        }
    }
}
