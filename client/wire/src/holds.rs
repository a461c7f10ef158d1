//! Holds: allocations that are kept for other consumers, or for a limited time.

use serde::{Deserialize, Serialize};

/// The hold that a claim makes. Without `lease_s` and `due`, only a write ends it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewHold {
    /// UUIDs of the consumers that the room is kept for. A write that gives one of them allocations
    /// ends the hold.
    #[serde(rename = "for", default, skip_serializing_if = "Vec::is_empty")]
    pub kept_for: Vec<String>,
    /// The hold ends after this many seconds unless it is renewed or confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_s: Option<u32>,
    /// From this time on, as RFC 3339, the hold is overdue; it does not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
}

/// Body of `PUT /placementd/v1/holds/{consumer}`: the new end of a hold, as in [`NewHold`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldTerm {
    /// The hold ends this many seconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_s: Option<u32>,
    /// From this time on, as RFC 3339, the hold is overdue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
}

/// The hold of a consumer. Without `lease_until` and `due`, only a write ends it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hold {
    /// UUIDs of the consumers that the room is kept for.
    #[serde(rename = "for")]
    pub kept_for: Vec<String>,
    /// When the hold ends unless it is renewed or confirmed, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<String>,
    /// When the hold becomes overdue, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
}
