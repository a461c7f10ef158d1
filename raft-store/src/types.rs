//! The types that openraft is given, and short names for those it gives back.

use std::fmt;
use std::str::FromStr;

use openraft::alias::{EntryOf, LogIdOf, SnapshotMetaOf, StoredMembershipOf, VoteOf};
use placement_model::Outcome;
use serde::{Deserialize, Serialize};

use crate::logged::LoggedCommand;
use crate::runtime::Runtime;

openraft::declare_raft_types!(
    /// How this project fills in openraft's types.
    pub TypeConfig:
        D = LoggedCommand,
        R = Applied,
        NodeId = u64,
        Node = Member,
        AsyncRuntime = Runtime,
);

/// A node as every member of the cluster knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Member {
    /// Where clients reach it: `http://host:port`.
    pub api: String,
    /// Where the other nodes reach it: `host:port`.
    pub peer: String,
    /// Where operators reach it: `host:port`.
    pub admin: String,
    /// Where it stands, by its own configuration.
    pub site: Box<Site>,
    /// What it is called, by its own configuration.
    pub name: Box<NodeName>,
}

impl Member {
    /// What the node of this number is called.
    pub fn name_of(&self, id: u64) -> NodeName {
        match self.name.as_str() {
            "" => NodeName(format!("node-{id}")),
            _ => (*self.name).clone(),
        }
    }
}

/// The most letters of what nodes, regions and zones are called: headers of each response have some
/// of it.
pub const LABEL_MAX: usize = 64;

/// Whether a node, a region or a zone can be called so, or is not named.
pub fn is_label(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    name.len() <= LABEL_MAX && name.chars().all(fits)
}

/// What a node is called, besides its number. Empty: by its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeName(String);

impl NodeName {
    /// The name; may be empty.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for NodeName {
    type Err = String;

    /// A number would be taken for that of another node.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        if !is_label(text) || is_number {
            return Err(format!(
                "{text:?} is not up to {LABEL_MAX} letters, digits, dots, dashes and underscores, with one that is no digit"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// Where a node stands. Each name is empty if it was not given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Site {
    /// What fails together with no other region.
    pub region: String,
    /// What fails together within it.
    pub zone: String,
}

impl Site {
    /// Whether neither is known.
    pub fn is_unknown(&self) -> bool {
        self.region.is_empty() && self.zone.is_empty()
    }
}

/// `REGION/ZONE`, or the one that is known.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.region.as_str(), self.zone.as_str()) {
            (region, "") => f.write_str(region),
            ("", zone) => f.write_str(zone),
            (region, zone) => write!(f, "{region}/{zone}"),
        }
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (peers: {})", self.api, self.peer)
    }
}

/// What the state machine answers to one log entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Applied {
    /// The entry was a command, and this is the model's answer.
    Outcome(Outcome),
    /// The entry held no command: a new leader's first entry, or a change of members.
    NoCommand,
}

/// A place in the log.
pub type LogId = LogIdOf<TypeConfig>;
/// A log entry.
pub type Entry = EntryOf<TypeConfig>;
/// What a log entry holds.
pub type Payload = openraft::EntryPayload<LoggedCommand, u64, Member>;
/// A vote, or a leader acknowledged by a quorum.
pub type Vote = VoteOf<TypeConfig>;
/// Voters (one set, or two while they change) and learners, with where to reach them.
pub type Membership = openraft::Membership<u64, Member>;
/// A membership with the log entry that set it.
pub type StoredMembership = StoredMembershipOf<TypeConfig>;
/// What a snapshot covers.
pub type SnapshotMeta = SnapshotMetaOf<TypeConfig>;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_number_and_fits_into_a_table() {
        for name in ["", "db-1", "7b", "a.b_c"] {
            assert_eq!(name.parse::<NodeName>().unwrap().as_str(), name);
        }
        for name in ["7", "a b", "ä", &"x".repeat(65)] {
            assert!(name.parse::<NodeName>().is_err(), "{name}");
        }
        assert_eq!(Member::default().name_of(7).as_str(), "node-7");
    }
}
