//! The default policy rules, which apply unless a file overrides them.

use std::collections::{BTreeMap, BTreeSet};

use super::check::Check;

/// Upstream's default rule before it had the roles `service` and `reader`: it allows everything to
/// admins.
const OLD: &str = "role:admin";

/// Base rules, to which the operations' rules refer.
const BASE: [(&str, &str); 5] = [
    ("admin_api", OLD),
    ("service_api", "role:service"),
    ("admin_or_service_api", "role:admin or role:service"),
    (
        "project_reader_api",
        "role:reader and project_id:%(project_id)s",
    ),
    (
        "admin_or_project_reader_or_service_api",
        "role:admin or rule:project_reader_api or role:service",
    ),
];

/// The base rule of this service's own routes, which show the data of many upstream routes. A file
/// that restricts one of the upstream read rules also restricts this service's own routes.
pub(super) const ALL_READS: &str = "all_reads_api";

/// Prefix of the names of upstream's rules for operations.
pub(super) const UPSTREAM: &str = "placement:";

/// Prefix of the names of the rules for this service's own operations.
const OWN: &str = "placementd:";

/// Ends of the names of the rules for this service's own operations that write.
const WRITES: [&str; 2] = [":create", ":update"];

/// Prefixes of the names of operations' rules.
pub(super) const OPERATIONS: [&str; 2] = [UPSTREAM, OWN];

/// The default policy, by the names of the operations' rules.
#[derive(Clone)]
pub struct Defaults {
    /// The rules of all operations.
    pub operations: BTreeSet<&'static str>,
    /// The rules of operations whose requests name no project.
    pub without_project: BTreeSet<&'static str>,
}

/// Whether the upstream rule guards only operations that read.
pub(crate) fn is_read_operation(operation: &str) -> bool {
    let ends = [":list", ":show", ":usages"];
    operation.starts_with(UPSTREAM) && ends.iter().any(|end| operation.ends_with(end))
}

fn is_own_read(operation: &str) -> bool {
    operation.starts_with(OWN) && !is_own_write(operation)
}

/// Whether the rule guards one of this service's own operations that change the state.
pub fn is_own_write(operation: &str) -> bool {
    operation.starts_with(OWN) && WRITES.iter().any(|end| operation.ends_with(end))
}

/// The text of the default rule of an operation.
fn rule_of(operation: &str) -> String {
    let rule = match operation {
        "placement:usages" => "rule:admin_or_project_reader_or_service_api",
        "placement:reshaper:reshape" => "rule:service_api",
        own if is_own_read(own) => "rule:all_reads_api",
        _ => "rule:admin_or_service_api",
    };
    if is_read_operation(operation) || is_own_read(operation) {
        format!("{rule} or role:placement_reader")
    } else {
        rule.to_owned()
    }
}

impl Defaults {
    /// The names of all default rules.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let base = BASE.iter().map(|(name, _)| *name).chain([ALL_READS]);
        base.chain(self.operations.iter().copied())
    }

    /// The rules of this service's own operations whose requests name no project.
    pub(super) fn names_without_project(&self) -> impl Iterator<Item = &'static str> {
        let own = self.without_project.iter().copied();
        own.filter(|name| name.starts_with(OWN)).chain([ALL_READS])
    }

    /// The names and texts of all default rules.
    pub fn spelled(
        &self,
        enforce_new_defaults: bool,
    ) -> impl Iterator<Item = (&'static str, String)> {
        let base = BASE.into_iter().map(move |(name, rule)| match rule {
            rule if enforce_new_defaults || rule == OLD => (name, rule.to_owned()),
            rule => (name, format!("({rule}) or {OLD}")),
        });
        let reads: Vec<_> = self
            .operations
            .iter()
            .filter(|name| is_read_operation(name))
            .map(|name| format!("rule:{name}"))
            .collect();
        let operations = self.operations.iter().map(|name| (*name, rule_of(name)));
        base.chain([(ALL_READS, reads.join(" and "))])
            .chain(operations)
    }

    /// All rules: the defaults with the overrides from files.
    pub(super) fn rules(
        &self,
        overrides: impl Iterator<Item = (String, Check)>,
        enforce_new_defaults: bool,
    ) -> BTreeMap<String, Check> {
        let defaults = self
            .spelled(enforce_new_defaults)
            .map(|(name, rule)| (name.to_owned(), Check::parse(&rule)));
        defaults.chain(overrides).collect()
    }
}
