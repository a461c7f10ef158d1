//! Why a claim was refused.

use serde::{Deserialize, Serialize};

/// Why a claim was refused: further members of the error in a response with 409.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ClaimRefusal {
    /// `placement.claim.no_room`: the first choices, each with its own reason.
    NoRoom {
        /// At most four reasons.
        reasons: Vec<Reason>,
    },
    /// The error `placement.claim.over_ceiling`.
    OverCeiling {
        /// Index of the ceiling.
        ceiling: u32,
        /// Usage of the consumers that count, without this claim.
        used: u64,
        /// Units or consumers that the claim adds.
        requested: u64,
        /// The largest permitted sum.
        limit: u64,
    },
    /// The error `placement.claim.group`.
    Group {
        /// Index of the group: those of `apart`, followed by those of `together`.
        group: u32,
        /// Root of the tree where the rule is broken.
        provider: String,
        /// Number of members that would be in this tree.
        members: u32,
    },
}

/// Why a choice has no room.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reason {
    /// Index of the choice.
    pub choice: u32,
    /// `capacity`, `constraints`, `inventory`, `provider` (unknown), `resource_class` (unknown),
    /// `over_ceiling` or `group`.
    pub code: String,
    /// UUID of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Name of the resource class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_class: Option<String>,
    /// Units that the claim requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<u64>,
    /// Free units of the inventory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
}
