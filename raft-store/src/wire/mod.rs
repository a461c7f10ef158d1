//! How values are written: to the log, to rows, to snapshots and between nodes.
//!
//! A record is one version byte and then MessagePack with named fields. openraft's own serde
//! layouts change between its versions, so its types are converted to structs of ours first.
//! What is written is forever: fields are only added, with a default; variants only appended. A
//! change that older binaries would misread takes the next version byte.

mod raft;
mod record;

pub use raft::{
    WireEntry, WireEntryRef, WireLogId, WireMembership, WirePayload, WirePayloadRef,
    WireSnapshotMeta, WireStoredMembership, WireVote,
};
pub use record::{VERSION, WireError, decode, encode, encode_into};
