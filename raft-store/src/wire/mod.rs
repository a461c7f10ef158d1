//! How values are written: to the log, to rows, to snapshots and between nodes.
//!
//! A record is one version byte and then MessagePack. openraft's own serde layouts change between
//! its versions, so its types are converted to structs of ours first.
//!
//! What is written is forever. Variants are only appended. Fields are only added at the end of a
//! struct, with a default, and are left out where they have it, but only behind the last one that
//! does not have it: a binary that does not know a field finds the record damaged. So whatever
//! gives a new field another value than the default waits for a feature level of the cluster
//! ([`placement_model::Level`]), and so does a change that older binaries would misread: it takes
//! the next version byte.

mod raft;
mod record;

pub use crate::blob::Blob;
pub use raft::{
    WireCommand, WireEntry, WireLogId, WireMembership, WirePayload, WireSnapshotMeta,
    WireStoredMembership, WireVote,
};
pub use record::{RecordVersion, WireError, decode, encode, encode_into, encode_named};
