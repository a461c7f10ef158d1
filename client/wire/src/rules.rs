//! The routes that a policy rule guards: `GET /placementd/v1`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnRoutes<'a> {
    /// Of this service's own routes.
    pub routes: Vec<OwnRoute<'a>>,
    /// The version of these routes.
    pub version: u32,
}

/// An operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnRoute<'a> {
    /// The HTTP method.
    pub method: Cow<'a, str>,
    /// With names of parameters in braces.
    pub path: Cow<'a, str>,
    /// The rule of the policy.
    pub rule: Cow<'a, str>,
}
