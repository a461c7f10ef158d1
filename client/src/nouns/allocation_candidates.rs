//! `/allocation_candidates`.

use std::collections::BTreeMap;

use serde::Deserialize;
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::nouns::allocations::{Allocation, Claim};
use crate::request::ApiRequest;

/// A question for candidates: query parameters in the order given.
#[derive(Debug, Clone)]
#[must_use]
pub struct CandidateQuery(ApiRequest);

impl CandidateQuery {
    /// Asks for amounts in the unnumbered group, such as `[("VCPU", 2), ("MEMORY_MB", 1024)]`.
    pub fn resources(amounts: &[(&str, u64)]) -> Self {
        let amounts = amounts.iter();
        let amounts = amounts.map(|(class, amount)| format!("{class}:{amount}"));
        let amounts: Vec<_> = amounts.collect();
        Self(ApiRequest::get("/allocation_candidates")).with("resources", &amounts.join(","))
    }

    /// Adds any parameter, such as `required`, `member_of`, `in_tree`, `resources1`.
    pub fn with(self, key: &str, value: &str) -> Self {
        Self(self.0.query(key, value))
    }

    /// At most this many.
    pub fn limit(self, limit: u64) -> Self {
        self.with("limit", &limit.to_string())
    }

    /// Path and query, as they go over the wire.
    pub fn path(&self) -> String {
        self.0.path_and_query.clone()
    }

    /// The request for it.
    pub fn request(&self) -> ApiRequest {
        self.0.clone()
    }
}

/// The answer: ways to satisfy the request, and the state of the providers they use.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AllocationCandidates {
    /// Each can be claimed unchanged.
    pub allocation_requests: Vec<AllocationRequest>,
    /// By provider.
    pub provider_summaries: BTreeMap<Uuid, ProviderSummary>,
}

/// One way to satisfy the request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AllocationRequest {
    /// By provider.
    pub allocations: BTreeMap<Uuid, Allocation>,
    /// Group of the request to the providers that satisfy it (from 1.34).
    #[serde(default)]
    pub mappings: BTreeMap<String, Vec<Uuid>>,
}

impl AllocationRequest {
    /// Claims the candidate unchanged, for a new consumer of this project and user.
    pub fn claim(&self, project_id: &str, user_id: &str) -> Claim {
        Claim {
            allocations: self.allocations.clone(),
            mappings: self.mappings.clone(),
            ..Claim::by(project_id, user_id)
        }
    }
}

/// What a provider in the answer has and uses.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ProviderSummary {
    /// By resource class.
    pub resources: BTreeMap<String, SummaryResource>,
    /// Names (from 1.17).
    #[serde(default)]
    pub traits: Vec<String>,
    /// The provider above it (from 1.29).
    pub parent_provider_uuid: Option<Uuid>,
    /// The top of its tree (from 1.29).
    pub root_provider_uuid: Option<Uuid>,
}

/// Capacity and usage of one class.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct SummaryResource {
    /// `(total - reserved) * allocation_ratio`, rounded down: an integer that may be too large
    /// for any integer type.
    pub capacity: f64,
    /// Allocated.
    pub used: i64,
}

impl Client {
    /// `GET /allocation_candidates`.
    pub async fn allocation_candidates(
        &self,
        query: &CandidateQuery,
    ) -> Result<AllocationCandidates, Error> {
        self.fetch(query.request()).await
    }
}
