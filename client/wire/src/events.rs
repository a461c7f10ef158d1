//! Changes of log entries: `GET /placementd/v1/history`, and the lines of `GET
//! /placementd/v1/events`.
//!
//! Types of names are parameters: a node writes its own types, a client reads `String`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::holds::Hold;

/// Response of `history`. `E` is an [`Entry`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "E: Deserialize<'de>"))]
pub struct History<'a, E> {
    /// Entries, newest first.
    pub history: Vec<E>,
    /// Token of the last entry whose changes are no longer available.
    pub oldest: Cow<'a, str>,
    /// Time of that entry, as RFC 3339; `None` if all changes are available.
    pub oldest_at: Option<Cow<'a, str>>,
    /// `before` parameter of the next page; `None` at the end.
    pub next: Option<Cow<'a, str>>,
}

impl<E> Default for History<'_, E> {
    fn default() -> Self {
        Self {
            history: Vec::new(),
            oldest: Cow::default(),
            oldest_at: None,
            next: None,
        }
    }
}

/// A log entry. `C` is a [`Change`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry<'a, C> {
    /// Token of the state after the entry.
    pub index: Cow<'a, str>,
    /// Time of the write, as RFC 3339.
    pub at: Option<Cow<'a, str>>,
    /// Name of the command.
    pub verb: Cow<'a, str>,
    /// Id of the request that wrote it.
    pub request_id: Option<Cow<'a, str>>,
    /// Changes in the order of the rows.
    pub changes: Vec<C>,
}

/// The change of one value. `N` is a [`Kind`] or its name; `K` and `V` are the key and the value of
/// that kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change<N, K, V> {
    /// Kind of the value.
    pub kind: N,
    /// Key, unique within the kind.
    pub key: K,
    /// Old value; `None` if it did not exist.
    pub before: Option<V>,
    /// New value; `None` if it was deleted.
    pub after: Option<V>,
}

/// A value of a snapshot, with its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item<K, V> {
    /// Kind of the value.
    pub kind: Kind,
    /// Key, unique within the kind.
    pub key: K,
    /// Value in the snapshot.
    pub value: V,
}

/// A line that describes the position of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark<'a> {
    /// A snapshot of the state at this token follows.
    Snapshot(Cow<'a, str>),
    /// End of the snapshot of this token.
    SnapshotEnd(Cow<'a, str>),
    /// The position of the client is too old; a snapshot at this token follows.
    Reset(Cow<'a, str>),
    /// All changes up to this token were sent.
    Progress(Cow<'a, str>),
}

/// Last line of a stream that the node ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended<'a> {
    /// Why the stream ended.
    pub end: End,
    /// Token to resume after; `None` within a snapshot.
    pub next: Option<Cow<'a, str>>,
}

/// Reason why a node ends a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The maximum lifetime of a stream is reached.
    Lifetime,
    /// The node shuts down, or cannot read changes.
    Drain,
    /// The client reads too slowly.
    Slow,
    /// The next changes are no longer available.
    Gone,
    /// The partition was deleted.
    PartitionGone,
    /// Unknown reason of a newer node.
    #[serde(other)]
    Unknown,
}

impl End {
    /// Name of the reason in JSON.
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

/// Kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Types: [`ProviderKey`] and [`ProviderValue`].
    Provider,
    /// Types: [`InventoryKey`] and [`InventoryValue`].
    Inventory,
    /// Types: [`TraitKey`] and [`NameValue`]; traits of a provider: [`SetKey`] and [`TraitsValue`].
    Trait,
    /// Types: [`SetKey`] and [`AggregatesValue`].
    Aggregate,
    /// Types: [`ClassKey`] and [`NameValue`].
    Class,
    /// Types: [`ConsumerKey`] and [`ConsumerValue`].
    Consumer,
    /// Types: [`AllocationKey`] and [`AllocationValue`].
    Allocation,
}

/// Key of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderKey<U = String> {
    /// UUID of the provider.
    pub uuid: U,
}

/// Key of an inventory of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InventoryKey<U = String, N = String> {
    /// UUID of the provider.
    pub resource_provider: Option<U>,
    /// Name of the resource class.
    pub resource_class: Option<N>,
}

/// Traits or aggregates of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetKey<U = String> {
    /// UUID of the provider.
    pub resource_provider: Option<U>,
}

/// Key of a trait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitKey<N = String> {
    /// Name of the trait.
    pub r#trait: N,
}

/// Key of a resource class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassKey<N = String> {
    /// Name of the resource class.
    pub resource_class: Option<N>,
}

/// Key of a consumer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsumerKey<C = String> {
    /// UUID of the consumer.
    pub consumer: C,
}

/// Allocation of a consumer on a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllocationKey<C = String, U = String> {
    /// UUID of the consumer.
    pub consumer: C,
    /// UUID of the provider.
    pub resource_provider: Option<U>,
}

/// Value of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderValue<U = String, N = String> {
    /// UUID of the provider.
    pub uuid: U,
    /// Name, unique in the partition.
    pub name: N,
    /// Increases with each change of its inventories, traits or aggregates.
    pub generation: i64,
    /// UUID of the parent.
    pub parent_provider_uuid: Option<U>,
}

/// An inventory, in units of its class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct InventoryValue {
    /// Number of existing units.
    pub total: u32,
    /// Number of reserved units.
    pub reserved: u32,
    /// Smallest amount of one allocation.
    pub min_unit: u32,
    /// Largest amount of one allocation.
    pub max_unit: u32,
    /// Allocated amounts are multiples of this.
    pub step_size: u32,
    /// Overcommitment: capacity is `(total - reserved) * allocation_ratio`.
    pub allocation_ratio: f64,
}

/// The traits of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitsValue<N = String> {
    /// Names of the traits.
    pub traits: Vec<N>,
}

/// The aggregates of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AggregatesValue<S = Vec<String>> {
    /// UUIDs of the aggregates.
    pub aggregates: S,
}

/// Value of a trait or a resource class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NameValue<N = String> {
    /// Name of the trait or class.
    pub name: N,
}

/// Value of a consumer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsumerValue<N = String> {
    /// Increases with each write of the allocations.
    pub consumer_generation: i64,
    /// Project of the owner.
    pub project_id: N,
    /// User who owns the consumer.
    pub user_id: N,
    /// Consumer type, such as `INSTANCE`; [`NO_TYPE`] without one.
    pub consumer_type: N,
    /// The hold, if the allocations are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// `consumer_type` of consumers without a type.
pub const NO_TYPE: &str = "unknown";

/// Allocation of a consumer on a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllocationValue<R = BTreeMap<String, u64>> {
    /// Allocated units by resource class.
    pub resources: R,
}
