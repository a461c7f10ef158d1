//! The table of all routes: the routes of the reference (OpenStack Placement) and this service's
//! own.
//!
//! The first operation that matches method and version serves the request.

use super::edge::route::{Operation, RequiredHeaders, Route, operation};
use super::nouns::{
    aggregates, allocation_candidates, allocations, capacity, claims, consumers, events, explain,
    fits, history, holds, inventories, limits, placementd, refuge, reshaper, resource_classes,
    resource_providers, root, searches, traits, trees, usages, what_if,
};
use placement_policy::{Defaults, Policy, PolicyError, PolicySettings};

/// Defines the table of routes, by family. The name of a family is the first part of its policy
/// rules. An operation has a method, the headers that it needs, the rule, the handler, and further
/// fields of [`Operation`].
macro_rules! routes {
    ($($family:ident: $($path:literal {
        $($method:literal $needs:ident $rule:literal $noun:ident::$handler:ident $($field:ident: $value:expr),*;)*
    })*)*) => {
        /// Every route, in the order in which they are looked up.
        pub(super) static ROUTES: &[Route] = &[$($(Route {
            path: $path,
            operations: &[$(Operation {
                $($field: $value,)*
                ..operation(
                    $method,
                    RequiredHeaders::$needs,
                    concat!(stringify!($family), ":", $rule),
                    |context| Box::pin($noun::$handler(context)),
                )
            }),*],
        }),*),*];
    };
}

routes! {
    placement:
    "" {
        "GET" Nothing "" root::show policy: None;
    }
    "/" {
        "GET" Nothing "" root::show policy: None;
    }
    "/resource_classes" {
        "GET" Accept "resource_classes:list" resource_classes::list since: 2, advises: true;
        "POST" Content "resource_classes:create" resource_classes::create since: 2;
    }
    "/resource_classes/{name}" {
        "GET" Accept "resource_classes:show" resource_classes::show since: 2, advises: true;
        "PUT" Content "resource_classes:update" resource_classes::rename since: 2, until: 6;
        "PUT" Nothing "resource_classes:update" resource_classes::ensure since: 7;
        "DELETE" Nothing "resource_classes:delete" resource_classes::delete since: 2;
    }
    "/resource_providers" {
        "GET" Accept "resource_providers:list" resource_providers::list;
        "POST" Content "resource_providers:create" resource_providers::create;
    }
    "/resource_providers/{uuid}" {
        "GET" Accept "resource_providers:show" resource_providers::show;
        "DELETE" Nothing "resource_providers:delete" resource_providers::delete;
        "PUT" Content "resource_providers:update" resource_providers::update;
    }
    "/resource_providers/{uuid}/inventories" {
        "GET" Accept "resource_providers:inventories:list" inventories::list;
        "POST" Content "resource_providers:inventories:create" inventories::create;
        "PUT" Content "resource_providers:inventories:update" inventories::replace;
        "DELETE" Nothing "resource_providers:inventories:delete" inventories::delete_all since: 5, too_old_is_405: true;
    }
    "/resource_providers/{uuid}/inventories/{resource_class}" {
        "GET" Accept "resource_providers:inventories:show" inventories::show;
        "PUT" Content "resource_providers:inventories:update" inventories::update;
        "DELETE" Nothing "resource_providers:inventories:delete" inventories::delete;
    }
    "/resource_providers/{uuid}/usages" {
        "GET" Accept "resource_providers:usages" usages::for_provider;
    }
    "/resource_providers/{uuid}/aggregates" {
        "GET" Accept "resource_providers:aggregates:list" aggregates::list since: 1, headers_first: true;
        "PUT" Content "resource_providers:aggregates:update" aggregates::replace since: 1, headers_first: true;
    }
    "/resource_providers/{uuid}/allocations" {
        "GET" Accept "resource_providers:allocations:list" allocations::for_provider;
    }
    "/resource_providers/{uuid}/traits" {
        "GET" Accept "resource_providers:traits:list" traits::for_provider since: 6;
        "PUT" Content "resource_providers:traits:update" traits::replace since: 6;
        "DELETE" Nothing "resource_providers:traits:delete" traits::delete_all since: 6;
    }
    "/allocations" {
        "POST" Content "allocations:manage" allocations::replace_many since: 13;
    }
    "/allocations/{consumer_uuid}" {
        "GET" Accept "allocations:list" allocations::for_consumer;
        "PUT" Content "allocations:update" allocations::replace;
        "DELETE" Nothing "allocations:delete" allocations::delete;
    }
    "/allocation_candidates" {
        "GET" Accept "allocation_candidates:list" allocation_candidates::list since: 10, advises: true;
    }
    "/traits" {
        "GET" Accept "traits:list" traits::list since: 6, advises: true;
    }
    "/traits/{name}" {
        "GET" Nothing "traits:show" traits::show since: 6, advises: true;
        "PUT" Nothing "traits:update" traits::ensure since: 6;
        "DELETE" Nothing "traits:delete" traits::delete since: 6;
    }
    "/usages" {
        "GET" Accept "usages" usages::for_project since: 9, queried_project: Some("project_id");
    }
    "/reshaper" {
        "POST" Content "reshaper:reshape" reshaper::reshape since: 30;
    }

    // This service's own routes, which answer the same at every microversion.
    placementd:
    "/placementd/v1" {
        "GET" Accept "" placementd::list policy: None;
    }
    "/placementd/v1/capacity" {
        "GET" Accept "capacity" capacity::list;
    }
    "/placementd/v1/claims" {
        "POST" Content "claims:create" claims::create advises: true;
    }
    "/placementd/v1/consumers" {
        "GET" Accept "consumers" consumers::list queried_project: Some("project");
    }
    "/placementd/v1/trees/{uuid}" {
        "GET" Accept "trees" trees::show;
    }
    "/placementd/v1/explain" {
        "GET" Accept "explain" explain::show;
    }
    "/placementd/v1/fits" {
        "GET" Accept "fits" fits::list further_rule: Some("placementd:capacity");
    }
    "/placementd/v1/events" {
        "GET" Headers "events" events::watch queried_project: Some("project");
    }
    "/placementd/v1/history" {
        "GET" Accept "history" history::list queried_project: Some("project");
    }
    "/placementd/v1/holds/{consumer_uuid}" {
        "PUT" Content "holds:update" holds::renew;
    }
    "/placementd/v1/limits" {
        "GET" Accept "limits" limits::show;
        "PUT" Content "limits:update" limits::replace;
    }
    "/placementd/v1/limits/usage" {
        "GET" Accept "limits" limits::usage;
    }
    "/placementd/v1/refuge" {
        "GET" Accept "refuge" refuge::show;
    }
    "/placementd/v1/searches" {
        "GET" Accept "searches" searches::list queried_project: Some("project"), further_rule: Some("placementd:explain");
    }
    "/placementd/v1/what-if" {
        "GET" Accept "what_if" what_if::fit;
        "POST" Content "what_if" what_if::ask body_max_bytes: what_if::BODY_MAX_BYTES, further_rule: Some("placementd:consumers");
    }
}

/// The policy rule of the web interface (`[web] listen`).
pub const WEB: &str = "placementd:web";

/// The default policy, with the rules of all operations and of the web interface.
fn defaults() -> Defaults {
    let operations = || ROUTES.iter().flat_map(|route| route.operations);
    let without_project = operations().filter(|operation| operation.queried_project.is_none());
    Defaults {
        operations: operations()
            .filter_map(|one| one.policy)
            .chain([WEB])
            .collect(),
        without_project: (without_project.filter_map(|one| one.policy))
            .chain([WEB])
            .collect(),
    }
}

/// Reads the default policy and the files that override it. Invalid rules are logged; they grant no
/// access or have no effect.
///
/// # Errors
/// A configured file or directory is unusable, so its restrictions are unknown.
pub fn read_policy(settings: &PolicySettings) -> Result<Policy, PolicyError> {
    Policy::over(defaults(), settings)
}

/// The names and texts of the default rules.
pub fn default_rules(enforce_new_defaults: bool) -> Vec<(&'static str, String)> {
    defaults().spelled(enforce_new_defaults).collect()
}

#[cfg(test)]
mod tests {
    use super::super::edge::route::Routes;
    use super::*;

    fn find(path: &str) -> Option<(&'static str, Vec<String>)> {
        Routes::new(ROUTES)
            .find(path)
            .map(|(route, names)| (route.path, names))
    }

    #[test]
    fn paths_are_found_exactly() {
        assert_eq!(find("").unwrap().0, "");
        assert_eq!(find("/").unwrap().0, "/");
        assert_eq!(
            find("/traits/X").unwrap(),
            ("/traits/{name}", vec!["X".to_owned()])
        );
        assert_eq!(find("/traits\n").unwrap().0, "/traits");
        assert_eq!(
            find("/resource_providers/u/inventories/VCPU").unwrap().1,
            ["u".to_owned(), "VCPU".to_owned()]
        );
        for path in [
            "/traits/",
            "//traits",
            "/traits//X",
            "/resource_providers/u/cows",
            "traits",
            "/Traits",
            "/traits/X/",
        ] {
            assert_eq!(find(path), None, "{path}");
        }
    }

    #[test]
    fn allow_lists_each_method_once() {
        assert_eq!(Routes::new(ROUTES).find("/").unwrap().0.allow(), "GET");
        let (route, _) = Routes::new(ROUTES).find("/resource_classes/X").unwrap();
        assert_eq!(route.allow(), "GET, PUT, DELETE");
    }
}
