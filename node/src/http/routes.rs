//! All routes on one page.
//!
//! Each operation says from which microversion on it exists, what it asks of the request's
//! headers, and which policy rule guards it. The first operation that fits method and version
//! serves the request.

use futures::future::BoxFuture;

use super::answer::Answer;
use super::call::Call;
use super::errors::ApiError;
use super::{
    aggregates, allocation_candidates, allocations, inventories, reshaper, resource_classes,
    resource_providers, root, traits, usages,
};

/// A handler.
pub(super) type Handler = for<'a> fn(&'a Call) -> BoxFuture<'a, Result<Answer, ApiError>>;

/// A path and what can be done there.
pub(super) struct Route {
    /// The path, with names in braces.
    pub(super) path: &'static str,
    /// In the order in which `allow` lists them.
    pub(super) operations: &'static [Operation],
}

/// One thing that can be done.
pub(super) struct Operation {
    /// The HTTP method.
    pub(super) method: &'static str,
    /// First minor version that has it.
    pub(super) since: u8,
    /// Last minor version that has it.
    pub(super) until: u8,
    /// What it asks of the request's headers.
    pub(super) needs: Needs,
    /// Whether headers are looked at before the version.
    pub(super) headers_first: bool,
    /// Whether an older version is told 405 rather than 404.
    pub(super) too_old_is_405: bool,
    /// The rule that guards it; `None`: everybody may.
    pub(super) policy: Option<&'static str>,
    /// Whether the rule is about the project in the query rather than the caller's own.
    pub(super) policy_on_queried_project: bool,
    /// Who does it.
    pub(super) run: Handler,
}

/// What an operation asks of a request's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing.
    Nothing,
    /// A JSON answer is acceptable.
    Accept,
    /// The body is JSON.
    Content,
}

const fn operation(method: &'static str, policy: &'static str, run: Handler) -> Operation {
    Operation {
        method,
        since: 0,
        until: u8::MAX,
        needs: Needs::Nothing,
        headers_first: false,
        too_old_is_405: false,
        policy: Some(policy),
        policy_on_queried_project: false,
        run,
    }
}

/// A read with a JSON answer.
const fn get(policy: &'static str, run: Handler) -> Operation {
    Operation {
        needs: Needs::Accept,
        ..operation("GET", policy, run)
    }
}

/// A write with a JSON body.
const fn write(method: &'static str, policy: &'static str, run: Handler) -> Operation {
    Operation {
        needs: Needs::Content,
        ..operation(method, policy, run)
    }
}

/// A removal.
const fn delete(policy: &'static str, run: Handler) -> Operation {
    operation("DELETE", policy, run)
}

impl Operation {
    const fn since(self, since: u8) -> Self {
        Self { since, ..self }
    }

    const fn until(self, until: u8) -> Self {
        Self { until, ..self }
    }

    const fn headers_first(self) -> Self {
        Self {
            headers_first: true,
            ..self
        }
    }

    const fn too_old_is_405(self) -> Self {
        Self {
            too_old_is_405: true,
            ..self
        }
    }

    const fn policy_on_queried_project(self) -> Self {
        Self {
            policy_on_queried_project: true,
            ..self
        }
    }

    const fn for_everybody(self) -> Self {
        Self {
            policy: None,
            ..self
        }
    }
}

/// Makes a handler of an async function.
macro_rules! run {
    ($($handler:ident)::+) => {
        |call| Box::pin($($handler)::+(call))
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
            .since(2),
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
            .since(2),
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
                run!(traits::clear),
            )
            .since(6),
        ],
    },
    Route {
        path: "/allocations",
        operations: &[write(
            "POST",
            "placement:allocations:manage",
            run!(allocations::set_many),
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
                run!(allocations::set),
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
        .since(10)],
    },
    Route {
        path: "/traits",
        operations: &[get("placement:traits:list", run!(traits::list)).since(6)],
    },
    Route {
        path: "/traits/{name}",
        operations: &[
            operation("GET", "placement:traits:show", run!(traits::show)).since(6),
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

impl Route {
    /// The route of a decoded path, with the names in it. A single newline at the end is ignored,
    /// as the reference's expressions end in `$`.
    pub(super) fn find(path: &str) -> Option<(&'static Self, Vec<String>)> {
        let path = path.strip_suffix('\n').unwrap_or(path);
        ROUTES
            .iter()
            .find_map(|route| Some((route, route.names_in(path)?)))
    }

    fn names_in(&self, path: &str) -> Option<Vec<String>> {
        let mut names = Vec::new();
        let mut parts = path.split('/');
        for expected in self.path.split('/') {
            let part = parts.next()?;
            if expected.starts_with('{') && !part.is_empty() {
                names.push(part.to_owned());
            } else if part != expected {
                return None;
            }
        }
        parts.next().is_none().then_some(names)
    }

    /// The methods that this path knows, in any version.
    pub(super) fn allow(&self) -> String {
        let mut methods: Vec<&str> = self
            .operations
            .iter()
            .map(|operation| operation.method)
            .collect();
        methods.dedup();
        methods.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find(path: &str) -> Option<(&'static str, Vec<String>)> {
        Route::find(path).map(|(route, names)| (route.path, names))
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
        assert_eq!(Route::find("/").unwrap().0.allow(), "GET");
        assert_eq!(
            Route::find("/resource_classes/X").unwrap().0.allow(),
            "GET, PUT, DELETE"
        );
    }

    proptest! {
        #[test]
        fn no_path_breaks_the_router(path in ".{0,60}") {
            let _ = Route::find(&path);
        }
    }
}
