//! The routes that a policy rule guards: `GET /placementd/v1`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Response of `GET /placementd/v1`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnRoutes<'a> {
    /// Routes that upstream does not have.
    pub routes: Vec<OwnRoute<'a>>,
    /// Version of these routes.
    pub version: u32,
}

/// A route and its policy rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnRoute<'a> {
    /// HTTP method of the route.
    pub method: Cow<'a, str>,
    /// Path with parameter names in braces.
    pub path: Cow<'a, str>,
    /// Name of the policy rule.
    pub rule: Cow<'a, str>,
}
