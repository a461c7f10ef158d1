//! Encoding of values: in the log, in rows, in snapshots and between nodes.
//!
//! Values are records ([`placement_base::record`]). openraft's own serde layouts change between its
//! versions, so its types are first converted to structs of this project.
//!
//! Encoded data must stay readable forever. So variants are only appended, and fields are only
//! added at the end of a struct, with a default. Trailing fields with their default are omitted: a
//! binary that does not know a field rejects the record as damaged. So code sets a new field to
//! another value only from a new feature level of the cluster on ([`placement_model::Level`]). A
//! change that older binaries would misread needs a new feature level, too, and the next version
//! byte.

mod raft;

pub use crate::blob::Blob;
pub use placement_base::record::{
    RecordVersion, WireError, decode, encode, encode_into, encode_named,
};
pub use raft::{
    WireCommand, WireEntry, WireLogId, WireMembership, WirePayload, WireSnapshotMeta,
    WireStoredMembership, WireVote,
};
