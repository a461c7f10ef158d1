//! Answers of the OpenStack Placement API, in the newest microversion, as far as tools and pages
//! read them. Source: the Placement API reference.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::number::Capacity;

/// `GET /`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// One, `v1.0`.
    pub versions: Vec<Version>,
}

/// A version of the API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The newest microversion.
    pub max_version: String,
}

/// The body of a 4xx or 5xx.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Errors {
    /// At least one.
    pub errors: Vec<ErrorDetail>,
}

/// One error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorDetail {
    /// The HTTP status.
    pub status: u16,
    /// For people; may have several lines.
    pub detail: Option<String>,
}

/// `GET /resource_providers`. `L`: the links of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "L: Default + Deserialize<'de>"))]
pub struct Providers<L = Vec<Link>> {
    /// In no order that is promised.
    pub resource_providers: Vec<Provider<L>>,
}

impl<L> Default for Providers<L> {
    fn default() -> Self {
        Self {
            resource_providers: Vec::new(),
        }
    }
}

/// A resource provider. `L`: the links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "L: Default + Deserialize<'de>"))]
pub struct Provider<L = Vec<Link>> {
    /// The UUID.
    pub uuid: String,
    /// Unique in the partition.
    pub name: String,
    /// Rises with each change of what it offers.
    pub generation: i64,
    /// The provider above it.
    pub parent_provider_uuid: Option<String>,
    /// The top of its tree; itself if it has no parent.
    pub root_provider_uuid: Option<String>,
    /// Where its inventories, usages and so on are.
    pub links: L,
}

/// A link in an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// The relation, such as `inventories`.
    pub rel: String,
    /// The path.
    pub href: String,
}

/// `GET /allocations/{consumer_uuid}`. Without allocations, all other members are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Allocations {
    /// By provider.
    pub allocations: BTreeMap<String, Allocation>,
    /// The owner's project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Rises with each write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_generation: Option<i64>,
    /// Such as `INSTANCE`; `unknown` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_type: Option<String>,
}

/// What a consumer holds of one provider, or would hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Allocation {
    /// The generation of the provider; not in candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Units by resource class.
    pub resources: BTreeMap<String, u64>,
}

/// `GET /allocation_candidates`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Candidates {
    /// Each can be claimed as it is.
    pub allocation_requests: Vec<Candidate>,
    /// By provider.
    pub provider_summaries: BTreeMap<String, ProviderSummary>,
}

/// One way to satisfy a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Candidate {
    /// By provider.
    pub allocations: BTreeMap<String, Allocation>,
    /// Providers by the suffix of the group that they satisfy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mappings: Option<BTreeMap<String, Vec<String>>>,
}

/// What a provider of a candidate has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderSummary {
    /// By resource class.
    pub resources: BTreeMap<String, SummaryResource>,
    /// Names.
    pub traits: Vec<String>,
    /// The provider above it.
    pub parent_provider_uuid: Option<String>,
    /// The top of its tree.
    pub root_provider_uuid: Option<String>,
}

/// Capacity and usage of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryResource {
    /// `(total - reserved) * allocation_ratio`, rounded down.
    pub capacity: Capacity,
    /// Allocated units.
    pub used: u64,
}
