//! Encoding of values: in the log, in rows, in snapshots and between nodes.
//!
//! Values are records ([`placement_base::record`]). openraft's own serde layouts change between its
//! versions, so its types are first converted to structs of this project.
//!
//! Encoded data must stay readable forever. So variants are only appended, and fields are only
//! added at the end of a struct, with a default. Trailing fields with their default value are
//! omitted. If a record contains a field that a binary does not know, the binary rejects the record
//! as damaged. So a new field gets another value only once the cluster has a feature level at which
//! every node knows the field ([`placement_model::Level`]). If older binaries would misread a
//! change, it needs a new feature level, too, and the next version byte.

mod raft;

pub use crate::blob::Blob;
pub use placement_base::record::{
    RecordVersion, WireError, decode, encode, encode_into, encode_named,
};
pub use raft::{
    WireCommand, WireEntry, WireLogId, WireMembership, WirePayload, WireSnapshotMeta,
    WireStoredMembership, WireVote,
};
