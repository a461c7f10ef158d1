//! Writes on a copy of the state, and questions about the result: `/placementd/v1/what-if`.

use serde::{Deserialize, Serialize};

use crate::capacity::CapacityReport;
use crate::explain::Explained;

/// Body of `POST`. `B` is the body of a write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhatIf<B> {
    /// Writes in their order.
    #[serde(default = "Vec::new")]
    pub changes: Vec<Change<B>>,
    /// Questions about the state after all writes.
    #[serde(default)]
    pub ask: Vec<Question>,
}

/// A write as sent to the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change<B> {
    /// HTTP method: `PUT`, `POST` or `DELETE`.
    pub method: String,
    /// Path without the prefix of the API, such as `/resource_providers`.
    pub path: String,
    /// Body of the request, JSON.
    pub body: Option<B>,
}

/// A question about a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// How many times a candidate query can be claimed.
    Fit {
        /// Query of `GET /allocation_candidates`.
        query: String,
        /// Maximum number of claims to try.
        at_most: u64,
    },
    /// Explanation of the candidates of a query.
    Explain {
        /// Query of `GET /allocation_candidates`.
        query: String,
    },
    /// Sums over all providers, class by class.
    Capacity {},
}

/// Response to `POST`. `B` is the body of the response to a write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome<'a, B> {
    /// Responses to the writes, in their order.
    pub changes: Vec<WriteResponse<B>>,
    /// Answers to the questions, in their order.
    pub answers: Vec<WhatIfAnswer<'a>>,
}

/// Response to a write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WriteResponse<B> {
    /// HTTP status of the response.
    pub status: u16,
    /// Body of the response, if any.
    pub body: Option<B>,
}

/// Answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhatIfAnswer<'a> {
    /// Answer to [`Question::Fit`].
    Fit(Fit),
    /// Answer to [`Question::Explain`].
    Explain(Box<Explained<'a>>),
    /// Answer to [`Question::Capacity`].
    Capacity(CapacityReport<'a>),
}

/// How many times a request can be claimed; also the response to `GET`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fit {
    /// Number of successful claims.
    pub count: u64,
    /// Whether `count` is the maximum over all orders of claims; otherwise it is a lower bound.
    pub exact: bool,
    /// Whether the claims ended because no candidate remained.
    pub complete: bool,
}
