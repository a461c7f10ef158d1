//! Consumers with their allocations, in pages: `GET /placementd/v1/consumers`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::holds::Hold;
use crate::trees::NamedProvider;

/// A page of consumers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerPage<'a> {
    /// Consumers, sorted by UUID.
    pub consumers: Vec<Consumer<'a>>,
    /// Marker for the next page, even if this one is empty; `None` at the end.
    pub next: Option<Cow<'a, str>>,
}

/// A consumer and its allocations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Consumer<'a> {
    /// UUID as spelled by its client.
    pub uuid: Cow<'a, str>,
    /// Consumer type, such as `INSTANCE`.
    pub r#type: Option<Cow<'a, str>>,
    /// Project of the owner.
    pub project_id: Cow<'a, str>,
    /// User who owns the consumer.
    pub user_id: Cow<'a, str>,
    /// Increases with each write of the allocations.
    pub generation: i64,
    /// Time of the last write of the allocations, as RFC 3339.
    pub updated_at: Option<Cow<'a, str>>,
    /// Number of trees with allocations; sharing providers do not count.
    pub trees: u64,
    /// Allocations by provider, in the order of the creation of providers.
    pub allocations: Vec<ConsumerAllocation<'a>>,
    /// The hold, if the allocations are one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// Allocation of a consumer on one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerAllocation<'a> {
    /// Provider of the allocation.
    pub provider: NamedProvider<'a>,
    /// Root of its tree.
    pub root: NamedProvider<'a>,
    /// Allocated units by resource class.
    pub resources: BTreeMap<Cow<'a, str>, u64>,
}
