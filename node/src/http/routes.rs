//! All routes on one page.
//!
//! The first operation that fits method and version serves the request.

use super::edge::route::{Operation, Route, delete, get, operation, write};
use super::nouns::{
    aggregates, allocation_candidates, allocations, inventories, reshaper, resource_classes,
    resource_providers, root, traits, usages,
};

/// Makes a handler of an async function.
macro_rules! run {
    ($($handler:ident)::+) => {
        |context| Box::pin($($handler)::+(context))
    };
}

/// Every route there is.
pub(super) static ROUTES: [Route; 19] = [
    Route {
        path: "",
        operations: ROOT,
    },
    Route {
        path: "/",
        operations: ROOT,
    },
    Route {
        path: "/resource_classes",
        operations: &[
            get(
                "placement:resource_classes:list",
                run!(resource_classes::list),
            )
            .since(2)
            .advises(),
            write(
                "POST",
                "placement:resource_classes:create",
                run!(resource_classes::create),
            )
            .since(2),
        ],
    },
    Route {
        path: "/resource_classes/{name}",
        operations: &[
            get(
                "placement:resource_classes:show",
                run!(resource_classes::show),
            )
            .since(2)
            .advises(),
            write(
                "PUT",
                "placement:resource_classes:update",
                run!(resource_classes::rename),
            )
            .since(2)
            .until(6),
            operation(
                "PUT",
                "placement:resource_classes:update",
                run!(resource_classes::ensure),
            )
            .since(7),
            delete(
                "placement:resource_classes:delete",
                run!(resource_classes::delete),
            )
            .since(2),
        ],
    },
    Route {
        path: "/resource_providers",
        operations: &[
            get(
                "placement:resource_providers:list",
                run!(resource_providers::list),
            ),
            write(
                "POST",
                "placement:resource_providers:create",
                run!(resource_providers::create),
            ),
        ],
    },
    Route {
        path: "/resource_providers/{uuid}",
        operations: &[
            get(
                "placement:resource_providers:show",
                run!(resource_providers::show),
            ),
            delete(
                "placement:resource_providers:delete",
                run!(resource_providers::delete),
            ),
            write(
                "PUT",
                "placement:resource_providers:update",
                run!(resource_providers::update),
            ),
        ],
    },
    Route {
        path: "/resource_providers/{uuid}/inventories",
        operations: &[
            get(
                "placement:resource_providers:inventories:list",
                run!(inventories::list),
            ),
            write(
                "POST",
                "placement:resource_providers:inventories:create",
                run!(inventories::create),
            ),
            write(
                "PUT",
                "placement:resource_providers:inventories:update",
                run!(inventories::replace),
            ),
            delete(
                "placement:resource_providers:inventories:delete",
                run!(inventories::delete_all),
            )
            .since(5)
            .too_old_is_405(),
        ],
    },
    Route {
        path: "/resource_providers/{uuid}/inventories/{resource_class}",
        operations: &[
            get(
                "placement:resource_providers:inventories:show",
                run!(inventories::show),
            ),
            write(
                "PUT",
                "placement:resource_providers:inventories:update",
                run!(inventories::update),
            ),
            delete(
                "placement:resource_providers:inventories:delete",
                run!(inventories::delete),
            ),
        ],
    },
    Route {
        path: "/resource_providers/{uuid}/usages",
        operations: &[get(
            "placement:resource_providers:usages",
            run!(usages::of_provider),
        )],
    },
    Route {
        path: "/resource_providers/{uuid}/aggregates",
        operations: &[
            get(
                "placement:resource_providers:aggregates:list",
                run!(aggregates::list),
            )
            .since(1)
            .headers_first(),
            write(
                "PUT",
                "placement:resource_providers:aggregates:update",
                run!(aggregates::replace),
            )
            .since(1)
            .headers_first(),
        ],
    },
    Route {
        path: "/resource_providers/{uuid}/allocations",
        operations: &[get(
            "placement:resource_providers:allocations:list",
            run!(allocations::of_provider),
        )],
    },
    Route {
        path: "/resource_providers/{uuid}/traits",
        operations: &[
            get(
                "placement:resource_providers:traits:list",
                run!(traits::of_provider),
            )
            .since(6),
            write(
                "PUT",
                "placement:resource_providers:traits:update",
                run!(traits::replace),
            )
            .since(6),
            delete(
                "placement:resource_providers:traits:delete",
                run!(traits::delete_all),
            )
            .since(6),
        ],
    },
    Route {
        path: "/allocations",
        operations: &[write(
            "POST",
            "placement:allocations:manage",
            run!(allocations::replace_many),
        )
        .since(13)],
    },
    Route {
        path: "/allocations/{consumer_uuid}",
        operations: &[
            get("placement:allocations:list", run!(allocations::of_consumer)),
            write(
                "PUT",
                "placement:allocations:update",
                run!(allocations::replace),
            ),
            delete("placement:allocations:delete", run!(allocations::delete)),
        ],
    },
    Route {
        path: "/allocation_candidates",
        operations: &[get(
            "placement:allocation_candidates:list",
            run!(allocation_candidates::list),
        )
        .since(10)
        .advises()],
    },
    Route {
        path: "/traits",
        operations: &[get("placement:traits:list", run!(traits::list))
            .since(6)
            .advises()],
    },
    Route {
        path: "/traits/{name}",
        operations: &[
            operation("GET", "placement:traits:show", run!(traits::show))
                .since(6)
                .advises(),
            operation("PUT", "placement:traits:update", run!(traits::ensure)).since(6),
            delete("placement:traits:delete", run!(traits::delete)).since(6),
        ],
    },
    Route {
        path: "/usages",
        operations: &[get("placement:usages", run!(usages::of_project))
            .since(9)
            .policy_on_queried_project()],
    },
    Route {
        path: "/reshaper",
        operations: &[write(
            "POST",
            "placement:reshaper:reshape",
            run!(reshaper::reshape),
        )
        .since(30)],
    },
];

const ROOT: &[Operation] = &[operation("GET", "", run!(root::show)).for_everybody()];

#[cfg(test)]
mod tests {
    use super::super::edge::route::Routes;
    use super::*;
    use proptest::prelude::*;

    fn find(path: &str) -> Option<(&'static str, Vec<String>)> {
        Routes::of(&ROUTES)
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
        assert_eq!(Routes::of(&ROUTES).find("/").unwrap().0.allow(), "GET");
        assert_eq!(
            Routes::of(&ROUTES)
                .find("/resource_classes/X")
                .unwrap()
                .0
                .allow(),
            "GET, PUT, DELETE"
        );
    }

    proptest! {
        #[test]
        fn no_path_breaks_the_router(path in ".{0,60}") {
            let _ = Routes::of(&ROUTES).find(&path);
        }
    }
}
