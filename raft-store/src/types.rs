//! The types that openraft is configured with, and aliases for its types.

use std::fmt;
use std::str::FromStr;

use openraft::alias::{EntryOf, LogIdOf, SnapshotMetaOf, StoredMembershipOf, VoteOf};
use placement_model::Outcome;
use serde::{Deserialize, Serialize};

use crate::logged::LoggedCommand;
use crate::runtime::Runtime;

openraft::declare_raft_types!(
    /// The project's types for openraft.
    pub TypeConfig:
        D = LoggedCommand,
        R = Applied,
        NodeId = u64,
        Node = Member,
        AsyncRuntime = Runtime,
);

/// A node, as known to every member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Member {
    /// URL for clients: `http://host:port`.
    pub api: String,
    /// Address for other nodes: `host:port`.
    pub peer: String,
    /// Address for operators: `host:port`.
    pub admin: String,
    /// Its location, from its own configuration.
    pub site: Box<Site>,
    /// Its name, from its own configuration.
    pub name: Box<NodeName>,
}

impl Member {
    /// The name of the node with this id: the configured name, or `node-ID`.
    pub fn name_of(&self, id: u64) -> NodeName {
        match self.name.as_str() {
            "" => NodeName(format!("node-{id}")),
            _ => (*self.name).clone(),
        }
    }
}

/// Maximum length of the names of nodes, regions and zones, in bytes. It is short because each
/// response has some of these names in a header.
pub const LABEL_MAX: usize = 64;

/// Whether a text is a valid or empty name of a node, region or zone.
pub fn is_label(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    name.len() <= LABEL_MAX && name.chars().all(fits)
}

/// The name of a node. If it is empty, the node is called `node-ID`.
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

    /// Rejects numbers, which could be mistaken for ids of other nodes.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        if !is_label(text) || is_number {
            return Err(format!(
                "{text:?} is not a name: up to {LABEL_MAX} letters, digits, dots, dashes and underscores, at least one of them not a digit"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// The location of a node. A name is empty if it is not configured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Site {
    /// Region: fails independently of other regions.
    pub region: String,
    /// Zone: fails as a unit within its region.
    pub zone: String,
}

/// Formats as `REGION/ZONE`, or as the only name that is configured.
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

/// The state machine's answer to a log entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Applied {
    /// The entry was a command; this is the model's answer.
    Outcome(Outcome),
    /// The entry contained no command: a new leader's first entry, or a membership change.
    NoCommand,
}

/// Id of a log entry: leader and index.
pub type LogId = LogIdOf<TypeConfig>;
/// An entry of the log.
pub type Entry = EntryOf<TypeConfig>;
/// The content of a log entry.
pub type Payload = openraft::EntryPayload<LoggedCommand, u64, Member>;
/// A vote, or a leader acknowledged by a quorum.
pub type Vote = VoteOf<TypeConfig>;
/// Voters (one set, or two during a change) and learners, with their addresses.
pub type Membership = openraft::Membership<u64, Member>;
/// A membership with the log entry that set it.
pub type StoredMembership = StoredMembershipOf<TypeConfig>;
/// The coverage of a snapshot.
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
