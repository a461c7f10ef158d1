//! The audit trail: who requested what, and the outcome. One record for each write, each rejected
//! request and each operator action.
//!
//! A request only puts its record into a bounded queue; a thread writes many records at once. With
//! `[audit] mode = "strict"` a write is acknowledged only after its record is on disk, so that no
//! crash leaves a change without a record. Raft and reads never wait for it. Records describe
//! requests and contain no bodies or tokens.
//!
//! [`identity`] describes callers, and [`access`] writes a log line for each request.

pub mod access;
mod file;
pub mod identity;
mod queue;
mod record;
mod settings;
mod sink;
mod trail;
mod writer;

pub use queue::Numbers;
pub use record::{Caller, Listener, Origin, Outcome, Record, RequestTarget};
pub use settings::{AuditMode, AuditSection, Target};
pub use trail::Audit;
