//! Recorded searches of a node: `GET /placementd/v1/searches`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Response of `GET /placementd/v1/searches`. `E` is an explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "E: Deserialize<'de>"))]
pub struct SearchList<'a, E> {
    /// Number of matching searches beyond the limit.
    pub left_out: u64,
    /// Searches, newest first.
    pub searches: Vec<Search<'a, E>>,
}

impl<E> Default for SearchList<'_, E> {
    fn default() -> Self {
        Self {
            left_out: 0,
            searches: Vec::new(),
        }
    }
}

/// An answered `GET /allocation_candidates`, a claim that searched or was refused, or another write
/// of allocations that a limit refused. `E` is an explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "E: Deserialize<'de>"))]
pub struct Search<'a, E> {
    /// Time of the response, as RFC 3339.
    pub at: Option<Cow<'a, str>>,
    /// Number of returned candidates.
    pub candidates: u64,
    /// Outcome of the claim that searched, such as `claimed` or `over_ceiling`, or `over_limit` for
    /// any write that a limit refused; absent if the request was a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<Cow<'a, str>>,
    /// Explanation of a search without candidates. Only in responses to a query for one request id,
    /// and only for callers who pass the policy rule `placementd:explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<E>,
    /// Global request id of the caller, such as Nova.
    pub global_request_id: Option<Cow<'a, str>>,
    /// `Placement-Index` of the state that was searched.
    pub index: Option<Cow<'a, str>>,
    /// Whether the limit of the request was reached, so that there may be more candidates.
    pub limited: bool,
    /// Microversion of the request.
    pub microversion: Option<Cow<'a, str>>,
    /// Duration of the search in milliseconds.
    pub ms: f64,
    /// Project id of the caller.
    pub project_id: Option<Cow<'a, str>>,
    /// Project name, if known from Keystone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_name: Option<Cow<'a, str>>,
    /// Query of the request; ends with `…` if it was truncated. Empty for a claim of given choices
    /// and for other writes.
    pub query: Cow<'a, str>,
    /// Condition that no tree met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// Why the claim or the write was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Cow<'a, str>>,
    /// Request id that the node assigned.
    pub request_id: Cow<'a, str>,
    /// User id of the caller.
    pub user_id: Option<Cow<'a, str>>,
    /// User name, if known from Keystone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<Cow<'a, str>>,
}

impl<E> Default for Search<'_, E> {
    fn default() -> Self {
        Self {
            at: None,
            candidates: 0,
            claim: None,
            explanation: None,
            global_request_id: None,
            index: None,
            limited: false,
            microversion: None,
            ms: 0.0,
            project_id: None,
            project_name: None,
            query: Cow::default(),
            reason: None,
            refusal: None,
            request_id: Cow::default(),
            user_id: None,
            user_name: None,
        }
    }
}
