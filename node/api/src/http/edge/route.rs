//! A route: its path, and for each operation its microversions, the headers it needs and the policy
//! rule that guards it.

use futures::future::BoxFuture;

use super::answer::Answer;
use super::request_context::RequestContext;
use crate::http::errors::ApiError;

pub(crate) type Handler = for<'a> fn(&'a RequestContext) -> BoxFuture<'a, Result<Answer, ApiError>>;

/// A path and its operations.
pub(crate) struct Route {
    /// The path, with parameters in braces.
    pub(crate) path: &'static str,
    /// Operations in the order of the `allow` header.
    pub(crate) operations: &'static [Operation],
}

/// A method of a path, in some microversions.
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    /// First minor version with this operation.
    pub(crate) since: u8,
    /// Last minor version with this operation.
    pub(crate) until: u8,
    /// The headers that it needs.
    pub(crate) needs: RequiredHeaders,
    /// Maximum body size in bytes, if lower than the general limit.
    pub(crate) body_max_bytes: usize,
    /// Whether headers are checked before the version.
    pub(crate) headers_first: bool,
    /// Whether an older version gets 405 rather than 404.
    pub(crate) too_old_is_405: bool,
    /// The policy rule that guards it; `None` if it is open to everyone.
    pub(crate) policy: Option<&'static str>,
    /// The query parameter with the project that the rule is about; `None` if the rule is about the
    /// caller's project.
    pub(crate) queried_project: Option<&'static str>,
    /// A further policy rule. Callers who do not pass it get an answer without the part that it
    /// guards.
    pub(crate) further_rule: Option<&'static str>,
    /// Whether its answer is only advisory: it contains no generation, and no quota depends on it.
    pub(crate) advises: bool,
    /// The function that answers the request.
    pub(crate) run: Handler,
}

/// The headers that an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredHeaders {
    /// No header is required.
    Nothing,
    /// `Accept` must allow JSON.
    Accept,
    /// `Content-Type` must be JSON.
    Content,
    /// No header is required; the handler chooses the type of its answer by the headers.
    Headers,
}

pub(crate) const fn operation(
    method: &'static str,
    needs: RequiredHeaders,
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
        further_rule: None,
        advises: false,
        run,
    }
}

/// A table of routes for look-up by path.
pub(crate) struct Routes(Vec<(Vec<&'static str>, &'static Route)>);

impl Routes {
    pub(crate) fn new(routes: &'static [Route]) -> Self {
        let split = |route: &'static Route| (route.path.split('/').collect(), route);
        Self(routes.iter().map(split).collect())
    }

    /// The operations of this service's own routes, with their paths.
    pub(crate) fn own(&self) -> impl Iterator<Item = (&'static str, &'static Operation)> {
        let routes = self.0.iter().map(|(_, route)| *route);
        let own = routes.filter(|route| route.is_own());
        own.flat_map(|route| route.operations.iter().map(|one| (route.path, one)))
    }

    /// The route of a decoded path, with the values of its parameters. A single trailing newline is
    /// ignored, as upstream's regular expressions end in `$`.
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

/// Whether the path is one of this service's own routes.
pub(crate) fn is_own(path: &str) -> bool {
    path.starts_with("/placementd/")
}

impl Route {
    /// Whether this is one of this service's own routes. Their answers do not depend on the
    /// microversion.
    pub(crate) fn is_own(&self) -> bool {
        is_own(self.path)
    }

    /// The policy rule that guards this method, in any version.
    pub(crate) fn rule(&self, method: &str) -> Option<&'static str> {
        let mut operations = self.operations.iter();
        let found = operations.find(|operation| operation.method == method);
        found?.policy
    }

    /// The methods of this path in any version, as the `allow` header lists them.
    pub(crate) fn allow(&self) -> String {
        let mut methods: Vec<&str> = self
            .operations
            .iter()
            .map(|operation| operation.method)
            .collect();
        methods.dedup();
        methods.join(", ")
    }
}
