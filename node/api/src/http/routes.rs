//! All routes on one page.
//!
//! The first operation that fits method and version serves the request.

use super::edge::route::{Operation, Route, delete, get, operation, write};
use super::nouns::{
    aggregates, allocation_candidates, allocations, inventories, reshaper, resource_classes,
    resource_providers, root, traits, usages,
};

/// Each path with its operations: what makes one of them, its policy rule, its handler, and what else holds of it
/// ([`Operation`]).
macro_rules! routes {
    ($($path:literal {
        $($make:ident $(($method:literal))? $rule:literal $noun:ident::$handler:ident $($field:ident: $value:expr),*;)*
    })*) => {
        /// Every route there is.
        pub(super) static ROUTES: &[Route] = &[$(Route {
            path: $path,
            operations: &[$(Operation {
                $($field: $value,)*
                ..$make(
                    $($method,)?
                    concat!("placement:", $rule),
                    |context| Box::pin($noun::$handler(context)),
                )
            }),*],
        }),*];
    };
}

routes! {
    "" {
        operation("GET") "" root::show policy: None;
    }
    "/" {
        operation("GET") "" root::show policy: None;
    }
    "/resource_classes" {
        get "resource_classes:list" resource_classes::list since: 2, advises: true;
        write("POST") "resource_classes:create" resource_classes::create since: 2;
    }
    "/resource_classes/{name}" {
        get "resource_classes:show" resource_classes::show since: 2, advises: true;
        write("PUT") "resource_classes:update" resource_classes::rename since: 2, until: 6;
        operation("PUT") "resource_classes:update" resource_classes::ensure since: 7;
        delete "resource_classes:delete" resource_classes::delete since: 2;
    }
    "/resource_providers" {
        get "resource_providers:list" resource_providers::list;
        write("POST") "resource_providers:create" resource_providers::create;
    }
    "/resource_providers/{uuid}" {
        get "resource_providers:show" resource_providers::show;
        delete "resource_providers:delete" resource_providers::delete;
        write("PUT") "resource_providers:update" resource_providers::update;
    }
    "/resource_providers/{uuid}/inventories" {
        get "resource_providers:inventories:list" inventories::list;
        write("POST") "resource_providers:inventories:create" inventories::create;
        write("PUT") "resource_providers:inventories:update" inventories::replace;
        delete "resource_providers:inventories:delete" inventories::delete_all since: 5, too_old_is_405: true;
    }
    "/resource_providers/{uuid}/inventories/{resource_class}" {
        get "resource_providers:inventories:show" inventories::show;
        write("PUT") "resource_providers:inventories:update" inventories::update;
        delete "resource_providers:inventories:delete" inventories::delete;
    }
    "/resource_providers/{uuid}/usages" {
        get "resource_providers:usages" usages::of_provider;
    }
    "/resource_providers/{uuid}/aggregates" {
        get "resource_providers:aggregates:list" aggregates::list since: 1, headers_first: true;
        write("PUT") "resource_providers:aggregates:update" aggregates::replace since: 1, headers_first: true;
    }
    "/resource_providers/{uuid}/allocations" {
        get "resource_providers:allocations:list" allocations::of_provider;
    }
    "/resource_providers/{uuid}/traits" {
        get "resource_providers:traits:list" traits::of_provider since: 6;
        write("PUT") "resource_providers:traits:update" traits::replace since: 6;
        delete "resource_providers:traits:delete" traits::delete_all since: 6;
    }
    "/allocations" {
        write("POST") "allocations:manage" allocations::replace_many since: 13;
    }
    "/allocations/{consumer_uuid}" {
        get "allocations:list" allocations::of_consumer;
        write("PUT") "allocations:update" allocations::replace;
        delete "allocations:delete" allocations::delete;
    }
    "/allocation_candidates" {
        get "allocation_candidates:list" allocation_candidates::list since: 10, advises: true;
    }
    "/traits" {
        get "traits:list" traits::list since: 6, advises: true;
    }
    "/traits/{name}" {
        operation("GET") "traits:show" traits::show since: 6, advises: true;
        operation("PUT") "traits:update" traits::ensure since: 6;
        delete "traits:delete" traits::delete since: 6;
    }
    "/usages" {
        get "usages" usages::of_project since: 9, policy_on_queried_project: true;
    }
    "/reshaper" {
        write("POST") "reshaper:reshape" reshaper::reshape since: 30;
    }
}

#[cfg(test)]
mod tests {
    use super::super::edge::route::Routes;
    use super::*;

    fn find(path: &str) -> Option<(&'static str, Vec<String>)> {
        Routes::of(ROUTES)
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
        assert_eq!(Routes::of(ROUTES).find("/").unwrap().0.allow(), "GET");
        let (route, _) = Routes::of(ROUTES).find("/resource_classes/X").unwrap();
        assert_eq!(route.allow(), "GET, PUT, DELETE");
    }
}
