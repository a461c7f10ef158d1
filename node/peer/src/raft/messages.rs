//! The bodies of calls between nodes. Each is a record of `raft-store`'s wire format; the protocol
//! version of the connection determines the record version. Fields are only added, and variants are
//! only appended.

use std::collections::BTreeSet;

use placement_model::Level;
use placement_model::command::WriteId;
use placement_model::types::Destination;
use placement_raft_store::Member;
use placement_raft_store::wire::{Blob, WireLogId, WireSnapshotMeta, WireVote};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An operator's request that arrived at another node and is forwarded to this one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// The HTTP method of the request.
    pub method: String,
    /// The path at the listener of the destination.
    pub path: String,
    /// The owner of the operator's certificate, if the operator presented one.
    pub operator: Option<String>,
    /// The headers that are relayed.
    pub headers: Headers,
    /// The body of the request, as bytes.
    pub body: Blob,
}

/// HTTP headers: names and values.
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
    /// All entries up to this one are on disk.
    Flushed(Option<WireLogId>),
    /// The receiver's log does not contain this entry, which precedes the entries of the append.
    Conflict(WireLogId),
    /// The receiver has given a higher vote: another node leads, or is a candidate.
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

/// A part of a snapshot. The first call of a transfer has no data and asks for the offset at which
/// to begin: the receiver may have a part from an earlier transfer. The last call has no data
/// either: its offset is the length of the snapshot, which requests the installation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotCall {
    pub vote: WireVote,
    pub meta: WireSnapshotMeta,
    /// Length of the whole snapshot in bytes.
    pub bytes: u64,
    /// Offset of the data in the snapshot.
    pub offset: u64,
    pub data: Blob,
}

/// The answer to a part of a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum SnapshotReply {
    /// All bytes before `offset` have arrived; the sender continues at `offset`.
    From { offset: u64 },
    /// The snapshot is installed, or was rejected because of a higher vote. Contains the receiver's
    /// current vote.
    Done(WireVote),
    /// The snapshot has arrived completely, but is damaged or belongs to another cluster; nothing
    /// was changed. Contains the reason, as text.
    Refused(String),
    /// The receiver cannot accept the snapshot now: its disk has no room, or its storage has
    /// failed. Contains the reason, as text.
    NotNow(String),
}

/// A write that is forwarded to the leader.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteCall {
    /// Identifies the write to the state machine, in case it is sent twice.
    pub write_id: WriteId,
    /// Id of the HTTP request. `req-UUID` appears in the log files and in the ledger, an id of
    /// another form only in the log files.
    pub request_id: String,
    /// The encoded [`placement_model::Command`]. The node that received the request encodes it
    /// once.
    pub command: Blob,
    /// How long the caller will still wait, in milliseconds.
    pub patience_ms: u32,
    /// The partition, and the version of the routes that selected it.
    pub destination: Destination,
    /// The `traceparent` of the span in which the write is sent.
    pub trace: Option<String>,
}

/// Why the called node does not commit a write, or does not know whether it was committed. A
/// committed write gets no reply: the node that sent it finds it in the log. Texts contain the
/// reason.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum WriteReply {
    /// The called node is not the leader; this call is never committed.
    NotLeader,
    /// The write may or may not be committed.
    Unknown(String),
    /// The called node cannot propose the write; this call is never committed.
    Rejected(String),
    /// The disks have no room for the write; it is not committed.
    NoSpace(String),
    /// Too many writes are waiting already; the write is not committed.
    Busy(String),
    /// The record of the write exceeds the limit of this cluster, so no leader commits it. Both
    /// lengths are in bytes.
    TooLarge { bytes: u64, bytes_max: u64 },
}

/// A read index with its condition: the leader has committed the entries up to `index` if, in each
/// set of `voters`, a majority still holds `vote`, the vote by which it leads.
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
    /// The cluster of the node, if it belongs to one.
    pub cluster: Option<Uuid>,
    /// Whether the node has a Raft log, and so belongs to a formed cluster.
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

/// The request of a node without data to join the cluster.
#[derive(Clone, Serialize, Deserialize)]
pub struct JoinCall {
    /// The node id in its token.
    pub node: u64,
    /// The secret of its token.
    pub token: String,
    /// Distinguishes the node from others with the same token.
    pub nonce: Uuid,
    /// Addresses, site and name of the node, from its own configuration.
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
