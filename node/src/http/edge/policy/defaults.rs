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

const ADMIN_OR_SERVICE: &str = "rule:admin_or_service_api";

/// Every operation and its rule.
const OPERATIONS: [(&str, &str); 31] = [
    ("placement:resource_providers:list", ADMIN_OR_SERVICE),
    ("placement:resource_providers:create", ADMIN_OR_SERVICE),
    ("placement:resource_providers:show", ADMIN_OR_SERVICE),
    ("placement:resource_providers:update", ADMIN_OR_SERVICE),
    ("placement:resource_providers:delete", ADMIN_OR_SERVICE),
    ("placement:resource_classes:list", ADMIN_OR_SERVICE),
    ("placement:resource_classes:create", ADMIN_OR_SERVICE),
    ("placement:resource_classes:show", ADMIN_OR_SERVICE),
    ("placement:resource_classes:update", ADMIN_OR_SERVICE),
    ("placement:resource_classes:delete", ADMIN_OR_SERVICE),
    (
        "placement:resource_providers:inventories:list",
        ADMIN_OR_SERVICE,
    ),
    (
        "placement:resource_providers:inventories:create",
        ADMIN_OR_SERVICE,
    ),
    (
        "placement:resource_providers:inventories:show",
        ADMIN_OR_SERVICE,
    ),
    (
        "placement:resource_providers:inventories:update",
        ADMIN_OR_SERVICE,
    ),
    (
        "placement:resource_providers:inventories:delete",
        ADMIN_OR_SERVICE,
    ),
    (
        "placement:resource_providers:aggregates:list",
        ADMIN_OR_SERVICE,
    ),
    (
        "placement:resource_providers:aggregates:update",
        ADMIN_OR_SERVICE,
    ),
    ("placement:resource_providers:usages", ADMIN_OR_SERVICE),
    (
        "placement:usages",
        "rule:admin_or_project_reader_or_service_api",
    ),
    ("placement:traits:list", ADMIN_OR_SERVICE),
    ("placement:traits:show", ADMIN_OR_SERVICE),
    ("placement:traits:update", ADMIN_OR_SERVICE),
    ("placement:traits:delete", ADMIN_OR_SERVICE),
    ("placement:resource_providers:traits:list", ADMIN_OR_SERVICE),
    (
        "placement:resource_providers:traits:update",
        ADMIN_OR_SERVICE,
    ),
    (
        "placement:resource_providers:traits:delete",
        ADMIN_OR_SERVICE,
    ),
    ("placement:allocations:manage", ADMIN_OR_SERVICE),
    ("placement:allocations:list", ADMIN_OR_SERVICE),
    ("placement:allocations:update", ADMIN_OR_SERVICE),
    ("placement:allocations:delete", ADMIN_OR_SERVICE),
    (
        "placement:resource_providers:allocations:list",
        ADMIN_OR_SERVICE,
    ),
];

/// Operations that nodes and operators do to the state as a whole.
const SPECIAL: [(&str, &str); 2] = [
    ("placement:allocation_candidates:list", ADMIN_OR_SERVICE),
    ("placement:reshaper:reshape", "rule:service_api"),
];

/// The names of all rules that there are by default.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let base = BASE.iter().map(|(name, ..)| *name);
    base.chain(guards().map(|(name, _)| name))
}

/// The rules that guard an operation each, and how they are spelled.
fn guards() -> impl Iterator<Item = (&'static str, &'static str)> {
    OPERATIONS.into_iter().chain(SPECIAL)
}

/// All rules, and how they are spelled.
pub(super) fn spelled(enforce_new_defaults: bool) -> impl Iterator<Item = (&'static str, String)> {
    let base = BASE.into_iter().map(move |(name, rule, old)| match old {
        Some(old) if !enforce_new_defaults => (name, format!("({rule}) or {old}")),
        _ => (name, rule.to_owned()),
    });
    base.chain(guards().map(|(name, rule)| (name, rule.to_owned())))
}

/// All rules: the defaults, overridden by those of files.
pub(super) fn rules(
    overrides: &BTreeMap<String, Check>,
    enforce_new_defaults: bool,
) -> BTreeMap<String, Check> {
    let defaults = spelled(enforce_new_defaults);
    let mut rules: BTreeMap<String, Check> = defaults
        .map(|(name, rule)| (name.to_owned(), Check::parse(&rule)))
        .collect();
    let overrides = overrides.iter();
    rules.extend(overrides.map(|(name, check)| (name.clone(), check.clone())));
    rules
}
