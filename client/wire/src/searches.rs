//! The searches that a node keeps: `GET /placementd/v1/searches`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The answer. `E`: an explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "E: Deserialize<'de>"))]
pub struct SearchList<'a, E> {
    /// Searches that fit the query and do not fit its limit.
    pub left_out: u64,
    /// The newest first.
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

/// An answered `GET /allocation_candidates`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "E: Deserialize<'de>"))]
pub struct Search<'a, E> {
    /// When it was answered, as RFC 3339.
    pub at: Option<Cow<'a, str>>,
    /// Candidates in the answer.
    pub candidates: u64,
    /// Why there are none. Only where searches of one request are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<E>,
    /// The id of the caller's own request, such as Nova's.
    pub global_request_id: Option<Cow<'a, str>>,
    /// The `Placement-Index` of the state that it was answered from.
    pub index: Option<Cow<'a, str>>,
    /// The answer is as long as its limit allows, so that there may be more candidates.
    pub limited: bool,
    /// The microversion of the request.
    pub microversion: Option<Cow<'a, str>>,
    /// Duration in milliseconds.
    pub ms: f64,
    /// The project of the caller.
    pub project_id: Option<Cow<'a, str>>,
    /// The name of that project, if Keystone gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_name: Option<Cow<'a, str>>,
    /// The query; what is too long ends with `…`.
    pub query: Cow<'a, str>,
    /// The condition that leaves no candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The id that the node gave the request.
    pub request_id: Cow<'a, str>,
    /// The caller.
    pub user_id: Option<Cow<'a, str>>,
    /// The name of the caller, if Keystone gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<Cow<'a, str>>,
}

impl<E> Default for Search<'_, E> {
    fn default() -> Self {
        Self {
            at: None,
            candidates: 0,
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
            request_id: Cow::default(),
            user_id: None,
            user_name: None,
        }
    }
}
