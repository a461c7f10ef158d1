//! Writes on a copy of the state, and questions about the result: `/placementd/v1/what-if`.

use serde::{Deserialize, Serialize};

use crate::capacity::CapacityReport;
use crate::explain::Explained;

/// The body of `POST`. `B`: the body of a write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhatIf<B> {
    /// Writes, in their order.
    #[serde(default = "Vec::new")]
    pub changes: Vec<Change<B>>,
    /// Questions about the state after all writes.
    #[serde(default)]
    pub ask: Vec<Question>,
}

/// A write of the API, as it would be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change<B> {
    /// `PUT`, `POST` or `DELETE`.
    pub method: String,
    /// Below the API's own prefix, such as `/resource_providers`.
    pub path: String,
    /// JSON.
    pub body: Option<B>,
}

/// A question about a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// How often a request for candidates can be claimed.
    Fit {
        /// The query of `GET /allocation_candidates`.
        query: String,
        /// Claims that are tried.
        at_most: u64,
    },
    /// Why a request for candidates has the answer that it has.
    Explain {
        /// The query of `GET /allocation_candidates`.
        query: String,
    },
    /// Sums over all providers, class by class.
    Capacity {},
}

/// The answer to `POST`. `B`: the body of the answer to a write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome<'a, B> {
    /// Per write.
    pub changes: Vec<Changed<B>>,
    /// Per question.
    pub answers: Vec<Found<'a>>,
}

/// The answer to a write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changed<B> {
    /// The HTTP status.
    pub status: u16,
    /// JSON, if there is a body.
    pub body: Option<B>,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found<'a> {
    /// To [`Question::Fit`].
    Fit(Fit),
    /// To [`Question::Explain`].
    Explain(Box<Explained<'a>>),
    /// To [`Question::Capacity`].
    Capacity(CapacityReport<'a>),
}

/// How often a request can be claimed; the answer to `GET`, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fit {
    /// Claims that succeeded.
    pub count: u64,
    /// No other order of claims fits more. Otherwise the count is a lower bound.
    pub exact: bool,
    /// Claims ended because no candidate was left.
    pub complete: bool,
}
