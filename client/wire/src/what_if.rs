//! Writes on a copy of the state, and questions about the result: `/placementd/v1/what-if`.

use serde::{Deserialize, Serialize};

use crate::capacity::CapacityReport;
use crate::consumers::Consumer;
use crate::explain::Explained;
use crate::trees::NamedProvider;

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
    /// Few consumers whose end would make room for a query.
    Preempt {
        /// Query of `GET /allocation_candidates`.
        query: String,
        /// Types of the consumers that may end, such as `INSTANCE`.
        types: Vec<String>,
        /// Projects of the consumers that may end; empty: all.
        #[serde(default)]
        projects: Vec<String>,
    },
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
    /// Answer to [`Question::Preempt`].
    Preempt(Preemption<'a>),
}

/// Consumers whose end makes room for a query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preemption<'a> {
    /// Whether a plan was found.
    pub possible: bool,
    /// Root of the tree with room after the plan; `None` without a plan, and if there is room now.
    pub provider: Option<NamedProvider<'a>>,
    /// Consumers that would have to end, the largest first.
    pub consumers: Vec<Consumer<'a>>,
    /// Whether no plan has fewer consumers, if each plan ends consumers of a single tree.
    pub exact: bool,
    /// Whether all trees were searched.
    pub complete: bool,
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
