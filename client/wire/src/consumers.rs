//! Consumers with what they hold, a page at a time: `GET /placementd/v1/consumers`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::trees::NamedProvider;

/// A page of the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerPage<'a> {
    /// Sorted by UUID.
    pub consumers: Vec<Consumer<'a>>,
    /// The consumer after which the next page begins, even if this one is empty; `None` at the end.
    pub next: Option<Cow<'a, str>>,
}

/// A consumer and its allocations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Consumer<'a> {
    /// The UUID, as its client spelled it.
    pub uuid: Cow<'a, str>,
    /// Such as `INSTANCE`.
    pub r#type: Option<Cow<'a, str>>,
    /// The owner's project.
    pub project_id: Cow<'a, str>,
    /// The owner.
    pub user_id: Cow<'a, str>,
    /// Rises with each write of the allocations.
    pub generation: i64,
    /// When the allocations were written, as RFC 3339.
    pub updated_at: Option<Cow<'a, str>>,
    /// In how many trees it holds something; sharing providers count to no tree.
    pub trees: u64,
    /// Per provider, in the order of the providers' creation.
    pub allocations: Vec<ConsumerAllocation<'a>>,
}

/// What a consumer holds of one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerAllocation<'a> {
    /// The provider.
    pub provider: NamedProvider<'a>,
    /// The root of its tree.
    pub root: NamedProvider<'a>,
    /// Units by resource class.
    pub resources: BTreeMap<Cow<'a, str>, u64>,
}
