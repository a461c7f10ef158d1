//! The numbers of calls, and the connections that they use.

use serde::Deserialize;

/// Separate connections by purpose, so that bulk data does not delay urgent messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Votes, heartbeats and read indexes.
    Control,
    /// Log entries, in streams.
    Log,
    /// Writes and operators' requests that are forwarded.
    Forward,
    /// Snapshots, in parts of limited length.
    Snapshot,
}

/// The methods of calls. Numbers are never reused, and increase from 1 without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[repr(u8)]
pub enum Method {
    /// Raft's AppendEntries: entries or a heartbeat.
    Append = 1,
    /// Raft's RequestVote.
    Vote = 2,
    /// Raft's PreVote.
    PreVote = 3,
    /// Raft's TimeoutNow.
    TransferLeader = 4,
    /// A part of a snapshot.
    Snapshot = 5,
    /// A write for the leader.
    Write = 6,
    /// The leader's confirmed read index.
    ReadIndex = 7,
    /// An operator's request for the leader.
    Admin = 8,
    /// Asks a node to introduce itself.
    Probe = 9,
    /// Invites a node to join this cluster.
    Invite = 10,
    /// The digest of the state after an entry.
    Checkpoint = 11,
    /// Whether the node's disk is nearly full.
    IsShort = 12,
    /// The last start of a node in which it has written.
    LastStart = 13,
    /// An operator's request for one node, received by another.
    Operate = 14,
    /// Whether the node is willing to lead.
    MayLead = 15,
    /// A node with a token asks for admission.
    Join = 16,
    /// The vote that the node has made.
    HeldVote = 17,
    /// As the leader, the commit index and the voters.
    ReadPoint = 18,
}

impl Method {
    /// The connection that the method uses. Heartbeats are appends on the connection for urgent
    /// messages.
    pub(crate) fn lane(self) -> Lane {
        match self {
            Self::Append => Lane::Log,
            Self::Snapshot => Lane::Snapshot,
            Self::Write | Self::Admin | Self::Operate | Self::Join => Lane::Forward,
            _ => Lane::Control,
        }
    }

    /// Whether the call carries out an operator's request on this node or in the cluster. Raft's
    /// own calls and queries are also accepted from nodes that this node does not know yet: it may
    /// lag behind in the membership.
    pub fn is_order(self) -> bool {
        matches!(self, Self::Admin | Self::Operate)
    }

    /// Whether nodes that do not belong to one cluster yet may make this call.
    pub(crate) fn is_introduction(self) -> bool {
        matches!(
            self,
            Self::Probe | Self::Invite | Self::LastStart | Self::Join
        )
    }
}
