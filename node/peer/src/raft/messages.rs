//! The bodies of calls between nodes. Each is a record of `raft-store`'s wire format, in the
//! version that belongs to the connection's protocol version. Fields are only added, variants only
//! appended.

use std::collections::BTreeSet;

use placement_model::Level;
use placement_model::command::WriteId;
use placement_model::types::Destination;
use placement_raft_store::Member;
use placement_raft_store::wire::{Blob, WireLogId, WireSnapshotMeta, WireVote};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An operator's request for one node, received by another node's listener.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// The HTTP method of the request.
    pub method: String,
    /// The path, as at the listener of the destination.
    pub path: String,
    /// The owner of the operator's certificate, if there is one.
    pub operator: Option<String>,
    /// The headers that are relayed.
    pub headers: Headers,
    /// The body of the request, as bytes.
    pub body: Blob,
}

/// HTTP headers, by name.
pub type Headers = Vec<(String, Blob)>;

/// The response to an [`Order`].
#[derive(Debug, Serialize, Deserialize)]
pub struct OrderReply {
    pub status: u16,
    pub body: Blob,
    pub headers: Headers,
}

/// The answer to an append.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum AppendReply {
    /// All entries up to here are on disk.
    Flushed(Option<WireLogId>),
    /// The log has another entry before the first one of the append.
    Conflict(WireLogId),
    /// Another node leads, or is a candidate.
    HigherVote(WireVote),
}

/// Raft's RequestVote and PreVote.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VoteCall {
    pub vote: WireVote,
    pub last: Option<WireLogId>,
    /// Whether the leader itself asked for this election.
    pub transfer: bool,
}

/// The answer to a vote request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VoteReply {
    pub vote: WireVote,
    pub granted: bool,
    pub last: Option<WireLogId>,
}

/// Raft's TimeoutNow: asks a voter to begin an election.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TransferCall {
    pub from: WireVote,
    pub to: u64,
    pub last: Option<WireLogId>,
}

/// A part of a snapshot. The first call has no data and asks for the offset to begin at: the
/// receiver may hold a part from an earlier transfer. The last call has no data either, and its
/// offset at the end requests the installation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotCall {
    pub vote: WireVote,
    pub meta: WireSnapshotMeta,
    /// Length of the whole snapshot.
    pub bytes: u64,
    /// Offset of the data in the snapshot.
    pub offset: u64,
    pub data: Blob,
}

/// The answer to a part of a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum SnapshotReply {
    /// Continue at this byte; everything before has arrived.
    From { offset: u64 },
    /// Installed, or rejected by a higher vote; the vote now.
    Done(WireVote),
    /// It arrived completely, but is damaged or another cluster's; nothing was changed. The reason,
    /// as text.
    Refused(String),
    /// The receiver cannot take it for now: it has no room, or its storage failed. The reason, as
    /// text.
    NotNow(String),
}

/// A write that is forwarded to the leader.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteCall {
    /// Identifies the write to the state machine if it arrives twice.
    pub write_id: WriteId,
    /// Id of the HTTP request: `req-UUID` for the logs and the ledger, or text for the logs.
    pub request_id: String,
    /// The encoded [`placement_model::Command`]. The node that received the request encodes it
    /// once.
    pub command: Blob,
    /// How long the client still waits, in milliseconds.
    pub patience_ms: u32,
    /// The partition, and how the request was routed there.
    pub destination: Destination,
    /// The `traceparent` of the span in which the write is sent.
    pub trace: Option<String>,
}

/// Why a write is not known to be committed. A committed write has no answer: the node that sent it
/// sees it in the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum WriteReply {
    /// Not done, and this call never will be.
    NotLeader,
    /// It may or may not be committed; the reason, as text.
    Unknown(String),
    /// Not done, and this call never will be, since the node that was asked cannot; the reason, as
    /// text.
    Rejected(String),
    /// Not done: the disks have no room for it; the details, as text.
    NoSpace(String),
    /// Not done: too many writes are waiting already; the details, as text.
    Busy(String),
    /// Not done, and no leader of this cluster will: its record exceeds the limit.
    TooLarge { bytes: u64, bytes_max: u64 },
}

/// A proof for reads: the leader has committed up to `index`, if a quorum of each of these sets of
/// voters shows the vote by which it leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitPoint {
    pub vote: WireVote,
    pub index: u64,
    pub voters: Vec<BTreeSet<u64>>,
}

/// The answer of a node to [`Method::Probe`](crate::transport::method::Method::Probe).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Introduction {
    /// Number of the node.
    pub node: u64,
    /// The cluster of the node.
    pub cluster: Option<Uuid>,
    /// Whether the node has a Raft log, so it takes part in a formed cluster.
    pub formed: bool,
    /// URL of its REST API.
    pub api: String,
    /// Its address for other nodes.
    pub peer: String,
    /// Its address for operators.
    pub admin: String,
    /// The highest feature level that the node supports.
    pub level: Level,
}

/// A node without data asks for admission.
#[derive(Clone, Serialize, Deserialize)]
pub struct JoinCall {
    /// The number in its token.
    pub node: u64,
    /// The secret of its token.
    pub token: String,
    /// Distinguishes the node from others with the same token.
    pub nonce: Uuid,
    /// The node's description of itself.
    pub member: Member,
}

/// Omits the token, which is a secret.
impl std::fmt::Debug for JoinCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JoinCall of node {} ({})", self.node, self.member)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use placement_raft_store::Identity;

    use super::*;
    use crate::transport::greeting::samples::check;

    #[test]
    fn messages_are_decoded_as_they_were_encoded() {
        let id = WireLogId {
            term: 3,
            node: 2,
            index: 1,
        };
        let vote = WireVote {
            term: 3,
            node: 2,
            committed: true,
        };
        for (last, cluster) in [(None, None), (Some(id), Some(Uuid::from_u128(7)))] {
            check(&[VoteCall {
                vote,
                last,
                transfer: cluster.is_some(),
            }]);
            check(&[VoteReply {
                vote,
                granted: true,
                last,
            }]);
            check(&[TransferCall {
                from: vote,
                to: 2,
                last,
            }]);
            check(&[Introduction {
                node: 1,
                cluster,
                formed: true,
                api: "http://192.0.2.1:8778".to_owned(),
                peer: "192.0.2.1:8779".to_owned(),
                admin: String::new(),
                level: Level(2),
            }]);
            check(&[AppendReply::Flushed(last), AppendReply::Conflict(id)]);
        }
        let point = CommitPoint {
            vote,
            index: 7,
            voters: vec![BTreeSet::from([1, 2, 3])],
        };
        check(&[Some(point), None]);
        check(&[AppendReply::HigherVote(vote)]);
        check(&[SnapshotCall {
            vote,
            meta: WireSnapshotMeta::default(),
            bytes: 4,
            offset: 0,
            data: Blob(Bytes::from_static(&[0, 1, 200, 255])),
        }]);
        let reason = || "why".to_owned();
        check(&[
            SnapshotReply::From { offset: 4 },
            SnapshotReply::Done(vote),
            SnapshotReply::Refused(reason()),
            SnapshotReply::NotNow(reason()),
        ]);
        check(&[
            WriteReply::NotLeader,
            WriteReply::Unknown(reason()),
            WriteReply::Rejected(reason()),
            WriteReply::NoSpace(reason()),
            WriteReply::Busy(reason()),
            WriteReply::TooLarge {
                bytes: 2,
                bytes_max: 1,
            },
        ]);
        check(&[Ok(1), Err(reason())]);
        check(&[JoinCall {
            node: 4,
            token: "secret".to_owned(),
            nonce: Uuid::from_u128(9),
            member: Member::default(),
        }]);
        check(&[Identity {
            cluster: Uuid::from_u128(7),
            epoch: 1,
            node: 4,
        }]);
        check(
            &[(250, 0), (250, 7), (250, 3 << 16)].map(|(patience_ms, partition)| WriteCall {
                trace: (partition == 7).then(|| "00-a-b-01".to_owned()),
                write_id: WriteId {
                    origin: 1,
                    boot: 2,
                    sequence: 3,
                    answered_below: 3,
                },
                request_id: "req-1".to_owned(),
                command: Blob(Bytes::from_static(&[2, 0])),
                patience_ms,
                destination: Destination::from(partition),
            }),
        );
    }
}
