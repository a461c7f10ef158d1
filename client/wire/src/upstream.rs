//! Responses of the OpenStack Placement API, microversion 1.39, as far as tools and pages read
//! them. The admin listener writes [`Errors`]. Source: the Placement API reference.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::claim_refusal::ClaimRefusal;
use crate::number::Capacity;

/// Response of `GET /`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// A single element, `v1.0`.
    pub versions: Vec<Version>,
}

/// A version of the API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Newest microversion of the service.
    pub max_version: String,
}

/// Body of a 4xx or 5xx response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Errors {
    /// Errors, at least one.
    pub errors: Vec<ErrorDetail>,
}

/// One element of [`Errors`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorDetail {
    /// HTTP status of the response.
    pub status: u16,
    /// The reason phrase of the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Readable text, possibly several lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Error code (from microversion 1.23), such as `placement.concurrent_update`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The id under which the request was logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Details of a refused claim. Upstream does not have them.
    #[serde(flatten)]
    pub claim: Option<ClaimRefusal>,
}

/// Response of `GET /resource_providers`. `L` is the type of links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "L: Default + Deserialize<'de>"))]
pub struct Providers<L = Vec<Link>> {
    /// Providers in no specific order.
    pub resource_providers: Vec<Provider<L>>,
}

impl<L> Default for Providers<L> {
    fn default() -> Self {
        Self {
            resource_providers: Vec::new(),
        }
    }
}

/// A resource provider. `L` is the type of links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "L: Default + Deserialize<'de>"))]
pub struct Provider<L = Vec<Link>> {
    /// UUID of the provider.
    pub uuid: String,
    /// Name, unique in the partition.
    pub name: String,
    /// Increases with each change of its inventories, traits or aggregates.
    pub generation: i64,
    /// UUID of the parent.
    pub parent_provider_uuid: Option<String>,
    /// UUID of the root of its tree; its own if it has no parent.
    pub root_provider_uuid: Option<String>,
    /// Links to its inventories, usages and so on.
    pub links: L,
}

/// A link to a related resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// The relation, such as `inventories`.
    pub rel: String,
    /// Path of the resource.
    pub href: String,
}

/// Response of `GET /allocations/{consumer_uuid}`. Without allocations, all other members are
/// missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Allocations {
    /// Allocations by UUID of the provider.
    pub allocations: BTreeMap<String, Allocation>,
    /// Project of the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// User who owns the consumer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Increases with each write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_generation: Option<i64>,
    /// Consumer type, such as `INSTANCE`; `unknown` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_type: Option<String>,
}

/// Actual or possible allocation of a consumer on one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Allocation {
    /// Generation of the provider; absent in candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Allocated units by resource class.
    pub resources: BTreeMap<String, u64>,
}

/// Response of `GET /allocation_candidates`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Candidates {
    /// Candidates; each can be claimed unchanged.
    pub allocation_requests: Vec<Candidate>,
    /// Summaries by UUID of the provider.
    pub provider_summaries: BTreeMap<String, ProviderSummary>,
}

/// A way to satisfy the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Candidate {
    /// Allocations by UUID of the provider.
    pub allocations: BTreeMap<String, Allocation>,
    /// Providers by suffix of the group that they satisfy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mappings: Option<BTreeMap<String, Vec<String>>>,
}

/// Capacity, usage and traits of a provider in the candidates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderSummary {
    /// Capacity and usage by resource class.
    pub resources: BTreeMap<String, SummaryResource>,
    /// Names of the traits.
    pub traits: Vec<String>,
    /// UUID of the parent.
    pub parent_provider_uuid: Option<String>,
    /// UUID of the root of its tree.
    pub root_provider_uuid: Option<String>,
}

/// Capacity and usage of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryResource {
    /// `(total - reserved) * allocation_ratio`, rounded down.
    pub capacity: Capacity,
    /// Number of allocated units.
    pub used: u64,
}
