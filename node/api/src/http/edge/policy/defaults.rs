//! The rules that hold when no file says otherwise.

use std::collections::BTreeMap;

use super::check::Check;

/// Rules that others refer to. With the third column the old defaults, of before the roles
/// `service` and `reader` were known, are allowed as well.
const BASE: [(&str, &str, Option<&str>); 5] = [
    ("admin_api", "role:admin", None),
    ("service_api", "role:service", Some("role:admin")),
    (
        "admin_or_service_api",
        "role:admin or role:service",
        Some("role:admin"),
    ),
    (
        "project_reader_api",
        "role:reader and project_id:%(project_id)s",
        Some("role:admin"),
    ),
    (
        "admin_or_project_reader_or_service_api",
        "role:admin or rule:project_reader_api or role:service",
        Some("role:admin"),
    ),
];

/// Every operation.
const OPERATIONS: [&str; 33] = [
    "placement:resource_providers:list",
    "placement:resource_providers:create",
    "placement:resource_providers:show",
    "placement:resource_providers:update",
    "placement:resource_providers:delete",
    "placement:resource_classes:list",
    "placement:resource_classes:create",
    "placement:resource_classes:show",
    "placement:resource_classes:update",
    "placement:resource_classes:delete",
    "placement:resource_providers:inventories:list",
    "placement:resource_providers:inventories:create",
    "placement:resource_providers:inventories:show",
    "placement:resource_providers:inventories:update",
    "placement:resource_providers:inventories:delete",
    "placement:resource_providers:aggregates:list",
    "placement:resource_providers:aggregates:update",
    "placement:resource_providers:usages",
    "placement:usages",
    "placement:traits:list",
    "placement:traits:show",
    "placement:traits:update",
    "placement:traits:delete",
    "placement:resource_providers:traits:list",
    "placement:resource_providers:traits:update",
    "placement:resource_providers:traits:delete",
    "placement:allocations:manage",
    "placement:allocations:list",
    "placement:allocations:update",
    "placement:allocations:delete",
    "placement:resource_providers:allocations:list",
    "placement:allocation_candidates:list",
    "placement:reshaper:reshape",
];

/// How the rule of an operation is spelled.
fn rule_of(operation: &str) -> &'static str {
    match operation {
        "placement:usages" => "rule:admin_or_project_reader_or_service_api",
        "placement:reshaper:reshape" => "rule:service_api",
        _ => "rule:admin_or_service_api",
    }
}

/// The names of all rules that there are by default.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BASE.iter().map(|(name, ..)| *name).chain(OPERATIONS)
}

/// All rules, and how they are spelled.
pub(super) fn spelled(enforce_new_defaults: bool) -> impl Iterator<Item = (&'static str, String)> {
    let base = BASE.into_iter().map(move |(name, rule, old)| match old {
        Some(old) if !enforce_new_defaults => (name, format!("({rule}) or {old}")),
        _ => (name, rule.to_owned()),
    });
    base.chain(OPERATIONS.map(|name| (name, rule_of(name).to_owned())))
}

/// All rules: the defaults, overridden by those of files.
pub(super) fn rules(
    overrides: impl Iterator<Item = (String, Check)>,
    enforce_new_defaults: bool,
) -> BTreeMap<String, Check> {
    let defaults = spelled(enforce_new_defaults);
    let defaults = defaults.map(|(name, rule)| (name.to_owned(), Check::parse(&rule)));
    defaults.chain(overrides).collect()
}
