//! The bodies of calls between nodes. Each is a record of `raft-store`'s wire format, in the
//! version that belongs to the connection's protocol version. Fields are only added, variants only
//! appended.

use std::collections::BTreeSet;

use bytes::{Buf, BufMut, Bytes};
use openraft::raft::AppendEntriesRequest;
use placement_base::runtime;
use placement_model::Level;
use placement_model::command::WriteId;
use placement_model::types::Destination;
use placement_raft_store::wire::{
    self, Blob, RecordVersion, WireEntry, WireError, WireLogId, WireSnapshotMeta, WireVote,
};
use placement_raft_store::{Entry, Member, TypeConfig};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::frame::FRAME_BYTES_MAX;

/// The protocol versions that this binary supports. The feature `rehearsal` is one ahead.
pub(crate) const VERSIONS: std::ops::RangeInclusive<u16> =
    1..=if cfg!(feature = "rehearsal") { 2 } else { 1 };

/// The record version that belongs to a protocol version.
pub(crate) fn records(protocol: u16) -> RecordVersion {
    match protocol {
        0..=1 => RecordVersion::FIRST,
        _ => RecordVersion::NEWEST,
    }
}

/// Bytes of a message in one piece. An introduction is short and sent whole.
pub(crate) fn piece_bytes(is_introduction: bool) -> usize {
    match is_introduction {
        true => FRAME_BYTES_MAX,
        false => runtime::limits().piece,
    }
}

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
    /// Raft's RequestVote, with a [`VoteCall`].
    Vote = 2,
    /// Raft's PreVote, with a [`VoteCall`].
    PreVote = 3,
    /// Raft's TimeoutNow, with a [`TransferCall`].
    TransferLeader = 4,
    /// A part of a snapshot.
    Snapshot = 5,
    /// A write for the leader.
    Write = 6,
    /// The leader's confirmed read index.
    ReadIndex = 7,
    /// An operator's request for the leader.
    Admin = 8,
    /// Asks a node for its [`Introduction`].
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
    /// A node with a token asks for admission: [`JoinCall`].
    Join = 16,
    /// The vote that the node has made.
    HeldVote = 17,
    /// As the leader, the commit index and the voters: [`CommitPoint`].
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

/// The first message of a caller. It and its answer have named fields, because no version is
/// settled yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// Oldest protocol version that the caller supports.
    pub oldest: u16,
    /// Newest protocol version that the caller supports.
    pub newest: u16,
    /// The caller's cluster, if it belongs to one.
    pub cluster: Option<Uuid>,
    /// The caller's node number.
    pub from: u64,
    /// The node that it means to call; `None` if it knows only an address.
    pub to: Option<u64>,
    /// Whether this is only an introduction: the clusters may differ.
    pub introduction: bool,
    /// The highest feature level that the caller supports.
    pub level: Level,
    /// The caller's region; messages between regions are packed.
    pub region: String,
}

/// The answer to a hello.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Welcome {
    /// The version that both sides use from here on.
    pub version: u16,
    /// Number of the called node.
    pub node: u64,
    /// The highest feature level that the called node supports.
    pub level: Level,
    /// Region of the called node.
    pub region: String,
}

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
    /// The body.
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

/// The failure of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The reason, as text.
    pub(crate) message: String,
    /// Whether the call could not be decoded.
    pub(crate) unreadable: bool,
    /// Whether the caller was removed from the cluster.
    pub(crate) removed: bool,
}

/// Raft's AppendEntries, without the entries, which follow one by one.
#[derive(Debug, Serialize, Deserialize)]
struct AppendHead {
    vote: WireVote,
    previous: Option<WireLogId>,
    committed: Option<WireLogId>,
    entries: u32,
    /// Requests with the same number are handled in the order in which they are sent.
    stream: Option<u64>,
}

/// Encodes an append with as many of `entries` as fit into `bytes_max`, but at least one if there
/// are any. Returns the body and the number of entries in it.
pub(crate) fn encode_append(
    version: RecordVersion,
    request: &AppendEntriesRequest<TypeConfig>,
    entries: &[Entry],
    previous: Option<WireLogId>,
    stream: Option<u64>,
    bytes_max: usize,
) -> (Vec<u8>, usize) {
    let mut records: Vec<u8> = Vec::new();
    let mut taken = 0;
    for entry in entries {
        let start = records.len();
        records.put_u32(0);
        wire::encode_into(&mut records, version, &WireEntry::from(entry));
        if taken > 0 && records.len() > bytes_max {
            records.truncate(start);
            break;
        }
        let length = u32::try_from(records.len() - start - 4)
            .expect("an entry is limited by the longest request body");
        records[start..start + 4].copy_from_slice(&length.to_be_bytes());
        taken += 1;
    }
    let head = AppendHead {
        vote: (&request.vote).into(),
        previous,
        committed: request.leader_commit.as_ref().map(WireLogId::from),
        entries: u32::try_from(taken).expect("openraft bounds the entries of a request"),
        stream,
    };
    let head = wire::encode(version, &head);
    let mut body = Vec::with_capacity(4 + head.len() + records.len());
    body.put_u32(u32::try_from(head.len()).expect("a head has few fields"));
    body.extend_from_slice(&head);
    body.extend_from_slice(&records);
    (body, taken)
}

/// A decoded append of [`encode_append`], whose entries are still encoded.
#[derive(Debug)]
pub(crate) struct Append {
    head: AppendHead,
    entries: Bytes,
}

impl Append {
    /// Decodes the head, but not the entries.
    pub(crate) fn read(mut body: Bytes) -> Result<Self, WireError> {
        let head = wire::decode(&take(&mut body)?)?;
        Ok(Self {
            head,
            entries: body,
        })
    }

    /// The stream's number; `None` for a heartbeat.
    pub(crate) fn stream(&self) -> Option<u64> {
        self.head.stream
    }

    /// Length of the encoded entries.
    pub(crate) fn entries_bytes(&self) -> usize {
        self.entries.len()
    }

    /// Decodes the entries into openraft's request.
    pub(crate) fn into_request(self) -> Result<AppendEntriesRequest<TypeConfig>, WireError> {
        let (head, mut body) = (self.head, self.entries);
        let mut entries = Vec::with_capacity((head.entries as usize).min(4096));
        for _ in 0..head.entries {
            let entry: WireEntry = wire::decode(&take(&mut body)?)?;
            entries.push(entry.into_entry()?);
        }
        Ok(AppendEntriesRequest {
            vote: head.vote.into(),
            prev_log_id: head.previous.map(Into::into),
            entries,
            leader_commit: head.committed.map(Into::into),
        })
    }
}

fn take(body: &mut Bytes) -> Result<Bytes, WireError> {
    let short = || WireError::Damaged("the message ends early".to_owned());
    if body.len() < 4 {
        return Err(short());
    }
    let length = body.get_u32() as usize;
    if body.len() < length {
        return Err(short());
    }
    Ok(body.split_to(length))
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

/// The answer of a node to [`Method::Probe`].
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

/// Greetings of nodes 1 and 2.
#[cfg(test)]
pub(super) mod samples {
    use super::*;

    pub(crate) fn hello() -> Hello {
        Hello {
            oldest: *VERSIONS.start(),
            newest: *VERSIONS.end(),
            cluster: None,
            from: 1,
            to: Some(2),
            introduction: false,
            level: Level::FIRST,
            region: String::new(),
        }
    }

    pub(crate) fn welcome() -> Welcome {
        Welcome {
            version: *VERSIONS.end(),
            node: 2,
            level: Level::FIRST,
            region: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use placement_raft_store::Identity;
    use serde::de::DeserializeOwned;

    use super::*;

    /// Decoding returns each message from both encodings.
    fn check<T: Serialize + DeserializeOwned + Debug>(messages: &[T]) {
        for message in messages {
            let written = [RecordVersion::FIRST, RecordVersion::NEWEST]
                .map(|version| wire::encode(version, message))
                .into_iter()
                .chain([wire::encode_named(message)]);
            for bytes in written {
                let read: T = wire::decode(&bytes).unwrap();
                assert_eq!(format!("{read:?}"), format!("{message:?}"));
            }
        }
    }

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
            check(&[Hello {
                cluster,
                to: last.map(|id| id.node),
                introduction: true,
                region: "north".to_owned(),
                ..samples::hello()
            }]);
            check(&[AppendHead {
                vote,
                previous: last,
                committed: last,
                entries: 2,
                stream: last.map(|id| id.index),
            }]);
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
        check(&[samples::welcome()]);
        let point = CommitPoint {
            vote,
            index: 7,
            voters: vec![BTreeSet::from([1, 2, 3])],
        };
        check(&[Some(point), None]);
        check(&[Failure {
            message: "why".to_owned(),
            unreadable: true,
            removed: true,
        }]);
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

    /// The first message of a connection may gain fields: no version is settled yet.
    #[test]
    fn hello_with_fields_of_a_later_version_is_read() {
        #[derive(Serialize)]
        struct Later {
            later: Vec<u16>,
            #[serde(flatten)]
            hello: Hello,
        }
        let later = Later {
            later: vec![5],
            hello: Hello {
                newest: 9,
                from: 4,
                ..samples::hello()
            },
        };
        let hello: Hello = wire::decode(&wire::encode_named(&later)).unwrap();
        assert_eq!((hello.newest, hello.from), (9, 4));
    }
}
