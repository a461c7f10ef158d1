//! A route: its path, and for each operation the microversions that have it, the headers it needs,
//! and the policy rule that guards it.

use futures::future::BoxFuture;

use super::answer::Answer;
use super::request_context::RequestContext;
use crate::http::errors::ApiError;

pub(crate) type Handler = for<'a> fn(&'a RequestContext) -> BoxFuture<'a, Result<Answer, ApiError>>;

/// A path and its operations.
pub(crate) struct Route {
    /// The path, with names in braces.
    pub(crate) path: &'static str,
    /// In the order in which `allow` lists them.
    pub(crate) operations: &'static [Operation],
}

/// A method of a path, in some microversions.
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    /// First minor version that has it.
    pub(crate) since: u8,
    /// Last minor version that has it.
    pub(crate) until: u8,
    /// Which headers it needs.
    pub(crate) needs: Needs,
    /// Longest body, where that is less than others may have.
    pub(crate) body_max_bytes: usize,
    /// Whether headers are looked at before the version.
    pub(crate) headers_first: bool,
    /// Whether an older version is answered 405 rather than 404.
    pub(crate) too_old_is_405: bool,
    /// The policy rule that guards it; `None`: anyone may.
    pub(crate) policy: Option<&'static str>,
    /// The parameter of the query with the project that the rule is about; `None`: it is about the
    /// caller's own.
    pub(crate) queried_project: Option<&'static str>,
    /// Whether its answer only advises: it returns no generation, and no quota is reckoned from it.
    pub(crate) advises: bool,
    /// The handler.
    pub(crate) run: Handler,
}

/// The headers that an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing.
    Nothing,
    /// A JSON answer is acceptable.
    Accept,
    /// The body is JSON.
    Content,
    /// Nothing; which of several types it answers follows from them.
    Headers,
}

pub(crate) const fn operation(
    method: &'static str,
    needs: Needs,
    policy: &'static str,
    run: Handler,
) -> Operation {
    Operation {
        method,
        since: 0,
        until: u8::MAX,
        needs,
        body_max_bytes: usize::MAX,
        headers_first: false,
        too_old_is_405: false,
        policy: Some(policy),
        queried_project: None,
        advises: false,
        run,
    }
}

/// Routes in which a path can be looked up.
pub(crate) struct Routes(Vec<(Vec<&'static str>, &'static Route)>);

impl Routes {
    pub(crate) fn of(routes: &'static [Route]) -> Self {
        let split = |route: &'static Route| (route.path.split('/').collect(), route);
        Self(routes.iter().map(split).collect())
    }

    /// This service's own operations, with their paths.
    pub(crate) fn own(&self) -> impl Iterator<Item = (&'static str, &'static Operation)> {
        let routes = self.0.iter().map(|(_, route)| *route);
        let own = routes.filter(|route| route.is_own());
        own.flat_map(|route| route.operations.iter().map(|one| (route.path, one)))
    }

    /// The route of a decoded path, with the names in the path. A single newline at the
    /// end is ignored, as the reference's expressions end in `$`.
    pub(crate) fn find(&self, path: &str) -> Option<(&'static Route, Vec<String>)> {
        let path = path.strip_suffix('\n').unwrap_or(path);
        let parts: Vec<&str> = path.split('/').collect();
        let is_name = |expected: &&str| expected.starts_with('{');
        let fits = |(expected, part): (&&str, &&str)| {
            part == expected || is_name(expected) && !part.is_empty()
        };
        let (expected, route) = self.0.iter().find(|(expected, _)| {
            expected.len() == parts.len() && expected.iter().zip(&parts).all(fits)
        })?;
        let pairs = expected.iter().zip(&parts);
        let named = pairs.filter(|(expected, _)| is_name(expected));
        Some((route, named.map(|(_, part)| (*part).to_owned()).collect()))
    }
}

/// Whether a route of this path is this service's own.
pub(crate) fn is_own(path: &str) -> bool {
    path.starts_with("/placementd/")
}

impl Route {
    /// Whether it is this service's own and not the reference's: its answers do not depend on the
    /// microversion.
    pub(crate) fn is_own(&self) -> bool {
        is_own(self.path)
    }

    /// The policy rule that guards this method, in whichever version.
    pub(crate) fn rule(&self, method: &str) -> Option<&'static str> {
        let mut operations = self.operations.iter();
        let found = operations.find(|operation| operation.method == method);
        found?.policy
    }

    /// The methods that this path knows, in any version.
    pub(crate) fn allow(&self) -> String {
        let methods = self.operations.iter().map(|operation| operation.method);
        let mut methods: Vec<&str> = methods.collect();
        methods.dedup();
        methods.join(", ")
    }
}
