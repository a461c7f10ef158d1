//! The methods of calls, and the connections that they use.

use serde::Deserialize;

/// The purpose of a connection. Each purpose has its own connection, so that bulk data does not
/// delay urgent messages.
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
    /// Returns the read index. The leader first confirms that it still leads.
    ReadIndex = 7,
    /// A change of the membership, which only the leader can carry out.
    Admin = 8,
    /// Asks a node to introduce itself.
    Probe = 9,
    /// Invites a node to join this cluster.
    Invite = 10,
    /// Returns the digest of the state after an entry.
    Checkpoint = 11,
    /// Returns whether the node's disk is nearly full.
    IsShort = 12,
    /// Returns the number of the last start of a node in which that node has written.
    LastStart = 13,
    /// An operator's request that arrived at another node and is forwarded to this one.
    Operate = 14,
    /// Returns why the node must not become the leader, if there is a reason.
    MayLead = 15,
    /// A node with a token asks to join the cluster.
    Join = 16,
    /// Returns the node's current vote.
    HeldVote = 17,
    /// Returns the leader's commit index and the voters that must confirm it.
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

    /// Whether the call carries out an operator's request on this node or in the cluster. Only
    /// known members may make such a call. Raft's own calls and queries are also accepted from
    /// nodes that this node does not know yet, because its membership may be out of date.
    pub fn is_order(self) -> bool {
        matches!(self, Self::Admin | Self::Operate)
    }

    /// Whether a node that does not belong to the cluster of this node may make this call.
    pub(crate) fn is_introduction(self) -> bool {
        matches!(
            self,
            Self::Probe | Self::Invite | Self::LastStart | Self::Join
        )
    }
}
