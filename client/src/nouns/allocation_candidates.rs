//! Typed methods of `/allocation_candidates`.

use std::collections::BTreeMap;

use serde::Deserialize;
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::nouns::allocations::{Allocation, Claim};
use crate::request::ApiRequest;

/// A query for candidates; parameters keep their order.
#[derive(Debug, Clone)]
#[must_use]
pub struct CandidateQuery(ApiRequest);

impl CandidateQuery {
    /// Requests amounts in the unnumbered group, such as `[("VCPU", 2), ("MEMORY_MB", 1024)]`.
    pub fn resources(amounts: &[(&str, u64)]) -> Self {
        let amounts: Vec<_> = amounts
            .iter()
            .map(|(class, amount)| format!("{class}:{amount}"))
            .collect();
        Self(ApiRequest::get("/allocation_candidates")).with("resources", &amounts.join(","))
    }

    /// Adds any parameter, such as `required`, `member_of`, `in_tree`, `resources1`.
    pub fn with(self, key: &str, value: &str) -> Self {
        Self(self.0.query(key, value))
    }

    /// Limits the number of candidates.
    pub fn limit(self, limit: u64) -> Self {
        self.with("limit", &limit.to_string())
    }

    /// Path and encoded query.
    pub fn path(&self) -> String {
        self.0.path_and_query.clone()
    }

    /// The GET request of this query.
    pub fn request(&self) -> ApiRequest {
        self.0.clone()
    }
}

/// Candidates, and the summaries of their providers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AllocationCandidates {
    /// Candidates; each can be claimed unchanged.
    pub allocation_requests: Vec<AllocationRequest>,
    /// Summaries by UUID of the provider.
    pub provider_summaries: BTreeMap<Uuid, ProviderSummary>,
}

/// One candidate: a way to satisfy the request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AllocationRequest {
    /// Allocations by UUID of the provider.
    pub allocations: BTreeMap<Uuid, Allocation>,
    /// Providers by the suffix of the request group that they satisfy (from 1.34).
    #[serde(default)]
    pub mappings: BTreeMap<String, Vec<Uuid>>,
}

impl AllocationRequest {
    /// A claim of this candidate for a new consumer of this project and user.
    pub fn claim(&self, project_id: &str, user_id: &str) -> Claim {
        Claim {
            allocations: self.allocations.clone(),
            mappings: self.mappings.clone(),
            ..Claim::by(project_id, user_id)
        }
    }
}

/// Capacity, usage and traits of a provider.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ProviderSummary {
    /// Capacity and usage by resource class.
    pub resources: BTreeMap<String, SummaryResource>,
    /// Names of the traits (from 1.17).
    #[serde(default)]
    pub traits: Vec<String>,
    /// UUID of the parent (from 1.29).
    pub parent_provider_uuid: Option<Uuid>,
    /// UUID of the root of its tree (from 1.29).
    pub root_provider_uuid: Option<Uuid>,
}

/// Capacity and usage of one class.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct SummaryResource {
    /// `(total - reserved) * allocation_ratio`, rounded down: an integer that may exceed any
    /// integer type.
    pub capacity: f64,
    /// Allocated units, over all consumers.
    pub used: i64,
}

impl Client {
    /// Sends `GET /allocation_candidates` with this query.
    pub async fn allocation_candidates(
        &self,
        query: &CandidateQuery,
    ) -> Result<AllocationCandidates, Error> {
        self.fetch(query.request()).await
    }
}
