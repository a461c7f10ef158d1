//! openraft's types as this project encodes them.

use std::collections::{BTreeMap, BTreeSet};

use openraft::entry::RaftEntry;
use openraft::vote::leader_id_adv::LeaderId;
use openraft::vote::{RaftLeaderId, RaftVote};
use placement_base::record::{RecordVersion, WireError, decode, encode};
use placement_model::Stamped;
use placement_model::command::WriteId;
use placement_model::mutant;
use placement_model::types::{Destination, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::blob::Blob;
use crate::logged::LoggedCommand;
use crate::types::{
    Entry, LogId, Member, Membership, Payload, SnapshotMeta, StoredMembership, Vote,
};

/// Id of a log entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WireLogId {
    /// Term of the leader that proposed the entry.
    pub term: u64,
    /// Node id of that leader.
    pub node: u64,
    /// Index of the entry.
    pub index: u64,
}

impl From<&LogId> for WireLogId {
    fn from(id: &LogId) -> Self {
        let leader = id.committed_leader_id();
        Self {
            term: leader.term,
            node: leader.node_id,
            index: id.index(),
        }
    }
}

impl From<WireLogId> for LogId {
    fn from(id: WireLogId) -> Self {
        Self::new(LeaderId::new(id.term, id.node), id.index)
    }
}

/// A vote, or a leader acknowledged by a quorum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WireVote {
    /// The term of the vote.
    pub term: u64,
    /// Node id of the candidate.
    pub node: u64,
    /// Whether a quorum has granted it.
    pub committed: bool,
}

impl From<&Vote> for WireVote {
    fn from(vote: &Vote) -> Self {
        let leader = vote.leader_id();
        Self {
            term: leader.term,
            node: leader.node_id,
            committed: vote.is_committed(),
        }
    }
}

impl From<WireVote> for Vote {
    fn from(vote: WireVote) -> Self {
        Self::from_leader_id(LeaderId::new(vote.term, vote.node), vote.committed)
    }
}

/// The members of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WireMembership {
    /// One set of voters, or two during a change; empty before the cluster is formed.
    pub voters: Vec<BTreeSet<u64>>,
    /// Every member, voters and learners.
    pub members: BTreeMap<u64, Member>,
}

impl From<&Membership> for WireMembership {
    fn from(membership: &Membership) -> Self {
        let members = (membership.nodes()).map(|(id, member)| (*id, member.clone()));
        Self {
            voters: membership.get_joint_config().clone(),
            members: members.collect(),
        }
    }
}

impl TryFrom<WireMembership> for Membership {
    type Error = WireError;

    fn try_from(wire: WireMembership) -> Result<Self, WireError> {
        Self::new(wire.voters, wire.members)
            .map_err(|error| WireError::Damaged(format!("an invalid membership: {error}")))
    }
}

/// A membership with the log entry that set it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WireStoredMembership {
    /// The log entry; `None` before the first membership.
    pub set_by: Option<WireLogId>,
    /// The membership set by that entry.
    pub membership: WireMembership,
}

impl From<&StoredMembership> for WireStoredMembership {
    fn from(stored: &StoredMembership) -> Self {
        Self {
            set_by: stored.log_id().as_ref().map(WireLogId::from),
            membership: stored.membership().into(),
        }
    }
}

impl TryFrom<WireStoredMembership> for StoredMembership {
    type Error = WireError;

    fn try_from(mut wire: WireStoredMembership) -> Result<Self, WireError> {
        if mutant!("count-learners") && wire.set_by.is_some() {
            wire.membership.voters = vec![wire.membership.members.keys().copied().collect()];
        }
        Ok(Self::new(
            wire.set_by.map(LogId::from),
            wire.membership.try_into()?,
        ))
    }
}

/// The coverage of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WireSnapshotMeta {
    /// The last covered entry.
    pub last: Option<WireLogId>,
    /// The membership at that entry.
    pub membership: WireStoredMembership,
}

impl From<&SnapshotMeta> for WireSnapshotMeta {
    fn from(meta: &SnapshotMeta) -> Self {
        Self {
            last: meta.last_log_id.as_ref().map(WireLogId::from),
            membership: (&meta.last_membership).into(),
        }
    }
}

impl TryFrom<WireSnapshotMeta> for SnapshotMeta {
    type Error = WireError;

    fn try_from(wire: WireSnapshotMeta) -> Result<Self, WireError> {
        Ok(Self {
            last_log_id: wire.last.map(LogId::from),
            last_membership: wire.membership.try_into()?,
        })
    }
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireEntry {
    /// Id of the entry.
    pub id: WireLogId,
    /// Content of the entry.
    pub payload: WirePayload,
}

/// The content of a log entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum WirePayload {
    /// A new leader's first entry.
    Blank,
    /// A command of a client or an operator.
    Command(WireCommand),
    /// A change of the membership.
    Membership(WireMembership),
}

/// A command in a log entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireCommand {
    /// Timestamp that the leader assigned.
    pub at: Timestamp,
    /// Id of the write, which contains the number of the node that received it.
    pub write_id: Option<WriteId>,
    /// The record of the [`Command`](placement_model::Command), as the receiving node encoded it.
    pub command: Blob,
    /// The partition, and the version of the routes that selected it.
    pub destination: Destination,
    /// Id of the HTTP request.
    pub request_id: Option<Uuid>,
}

impl LoggedCommand {
    /// Encodes a new command.
    pub fn encoded(version: RecordVersion, stamped: Stamped) -> Self {
        let record = encode(version, &stamped.command);
        Self::new(stamped, Blob(record.into()))
    }
}

impl From<&Entry> for WireEntry {
    fn from(entry: &Entry) -> Self {
        let payload = match &entry.payload {
            Payload::Blank => WirePayload::Blank,
            Payload::Normal(logged) => WirePayload::Command(WireCommand {
                at: logged.stamped().at,
                write_id: logged.stamped().write_id,
                command: logged.record().clone(),
                destination: Destination {
                    partition: logged.stamped().partition,
                    routes: logged.stamped().routes,
                },
                request_id: logged.stamped().request_id,
            }),
            Payload::Membership(membership) => WirePayload::Membership(membership.into()),
        };
        Self {
            id: (&entry.log_id).into(),
            payload,
        }
    }
}

impl WireEntry {
    /// Converts the entry to openraft's type.
    ///
    /// # Errors
    /// [`WireError`] for an unreadable command or an invalid membership.
    pub fn into_entry(self) -> Result<Entry, WireError> {
        let payload = match self.payload {
            WirePayload::Blank => Payload::Blank,
            WirePayload::Command(wire) => {
                let stamped = Stamped {
                    at: wire.at,
                    write_id: wire.write_id,
                    command: decode(&wire.command.0)?,
                    partition: wire.destination.partition,
                    routes: wire.destination.routes,
                    request_id: wire.request_id,
                };
                Payload::Normal(LoggedCommand::new(stamped, wire.command))
            }
            WirePayload::Membership(membership) => Payload::Membership(membership.try_into()?),
        };
        Ok(Entry::new(self.id.into(), payload))
    }
}
