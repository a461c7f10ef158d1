//! The types that openraft is given, and short names for those it gives back.

use std::fmt;

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
    #[serde(default)]
    pub admin: String,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (peers: {})", self.api, self.peer)
    }
}

/// What the state machine answers to one log entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Applied {
    /// The entry was a command, and this is what the model said.
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
