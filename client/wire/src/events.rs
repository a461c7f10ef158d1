//! What log entries change: `GET /placementd/v1/history`, and the lines of
//! `GET /placementd/v1/events`.
//!
//! Types of names are parameters: a node writes its own, a client reads `String`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The answer of `history`. `E`: an [`Entry`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "E: Deserialize<'de>"))]
pub struct History<'a, E> {
    /// The newest first.
    pub history: Vec<E>,
    /// The token up to which changes are not kept any more.
    pub oldest: Cow<'a, str>,
    /// `before` of the next page; `None` at the end.
    pub next: Option<Cow<'a, str>>,
}

impl<E> Default for History<'_, E> {
    fn default() -> Self {
        Self {
            history: Vec::new(),
            oldest: Cow::default(),
            next: None,
        }
    }
}

/// A log entry. `C`: a [`Change`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry<'a, C> {
    /// The token of the state after it.
    pub index: Cow<'a, str>,
    /// When it was written, as RFC 3339.
    pub at: Option<Cow<'a, str>>,
    /// The command.
    pub verb: Cow<'a, str>,
    /// The request that wrote it.
    pub request_id: Option<Cow<'a, str>>,
    /// In the order of the rows.
    pub changes: Vec<C>,
}

/// The change of one value. `N`: a [`Kind`], or its name; `K`, `V`: the key and the value of that
/// kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change<N, K, V> {
    /// What the value is.
    pub kind: N,
    /// What identifies it among those of its kind.
    pub key: K,
    /// `None`: it did not exist.
    pub before: Option<V>,
    /// `None`: it does not exist any more.
    pub after: Option<V>,
}

/// A value of a snapshot, with its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item<K, V> {
    /// What the value is.
    pub kind: Kind,
    /// What identifies it among those of its kind.
    pub key: K,
    /// What is there.
    pub value: V,
}

/// A line of a stream that is neither an entry nor a value: how far the stream is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark<'a> {
    /// Values of the state at this token follow.
    Snapshot(Cow<'a, str>),
    /// All of them were sent.
    SnapshotEnd(Cow<'a, str>),
    /// What the client has is too old; a snapshot at this token follows.
    Reset(Cow<'a, str>),
    /// Everything up to this token was sent.
    Progress(Cow<'a, str>),
}

/// The last line of a stream that ends early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended<'a> {
    /// Why.
    pub end: End,
    /// The token to go on after; `None` within a snapshot.
    pub next: Option<Cow<'a, str>>,
}

/// Why a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Streams are bounded in time.
    Lifetime,
    /// The node stops, or cannot read what was changed.
    Drain,
    /// The client takes lines too slowly.
    Slow,
    /// What was changed is not kept any more.
    Gone,
    /// The partition was deleted.
    PartitionGone,
    /// A reason that only a newer node knows.
    #[serde(other)]
    Unknown,
}

impl End {
    /// As lines name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lifetime => "lifetime",
            Self::Drain => "drain",
            Self::Slow => "slow",
            Self::Gone => "gone",
            Self::PartitionGone => "partition_gone",
            Self::Unknown => "unknown",
        }
    }
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// [`ProviderKey`], [`ProviderValue`].
    Provider,
    /// [`InventoryKey`], [`InventoryValue`].
    Inventory,
    /// [`TraitKey`], [`NameValue`]; of a provider [`SetKey`], [`TraitsValue`].
    Trait,
    /// [`SetKey`], [`AggregatesValue`].
    Aggregate,
    /// [`ClassKey`], [`NameValue`].
    Class,
    /// [`ConsumerKey`], [`ConsumerValue`].
    Consumer,
    /// [`AllocationKey`], [`AllocationValue`].
    Allocation,
}

/// A provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderKey<U = String> {
    /// The UUID.
    pub uuid: U,
}

/// An inventory of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InventoryKey<U = String, N = String> {
    /// UUID of the provider.
    pub resource_provider: Option<U>,
    /// The resource class.
    pub resource_class: Option<N>,
}

/// The set of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetKey<U = String> {
    /// UUID of the provider.
    pub resource_provider: Option<U>,
}

/// A trait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitKey<N = String> {
    /// The name.
    pub r#trait: N,
}

/// A resource class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassKey<N = String> {
    /// The name.
    pub resource_class: Option<N>,
}

/// A consumer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsumerKey<C = String> {
    /// The UUID.
    pub consumer: C,
}

/// What a consumer holds of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllocationKey<C = String, U = String> {
    /// UUID of the consumer.
    pub consumer: C,
    /// UUID of the provider.
    pub resource_provider: Option<U>,
}

/// A provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderValue<U = String, N = String> {
    /// The UUID.
    pub uuid: U,
    /// Unique in the partition.
    pub name: N,
    /// Rises with each change of what it offers.
    pub generation: i64,
    /// UUID of the parent.
    pub parent_provider_uuid: Option<U>,
}

/// An inventory, in units of its class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct InventoryValue {
    /// Units that exist.
    pub total: u32,
    /// Units that are kept back.
    pub reserved: u32,
    /// The least amount of one allocation.
    pub min_unit: u32,
    /// The greatest amount of one allocation.
    pub max_unit: u32,
    /// Amounts are multiples of this.
    pub step_size: u32,
    /// Capacity is `(total - reserved) * allocation_ratio`.
    pub allocation_ratio: f64,
}

/// The traits of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitsValue<N = String> {
    /// Names.
    pub traits: Vec<N>,
}

/// The aggregates of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AggregatesValue<S = Vec<String>> {
    /// UUIDs.
    pub aggregates: S,
}

/// A trait or a resource class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NameValue<N = String> {
    /// The name.
    pub name: N,
}

/// A consumer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsumerValue<N = String> {
    /// Rises with each write of the allocations.
    pub consumer_generation: i64,
    /// The owner's project.
    pub project_id: N,
    /// The owner.
    pub user_id: N,
    /// Such as `INSTANCE`; [`NO_TYPE`] without one.
    pub consumer_type: N,
}

/// The type of consumers without one.
pub const NO_TYPE: &str = "unknown";

/// What a consumer holds of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllocationValue<R = BTreeMap<String, u64>> {
    /// Units by resource class.
    pub resources: R,
}
