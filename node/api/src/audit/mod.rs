//! The audit trail: who asked for what, and what became of it. One record for each write, for each
//! refused request and for each operator's action.
//!
//! A request only puts its record into a bounded queue; a thread writes many of them at once. With
//! `[audit] mode = "strict"` a write is acknowledged when its record is on the disk, so that no
//! crash leaves a change without its record. Raft and reads wait for nothing here. Records hold
//! what was asked, never a body or a token.

mod file;
mod queue;
mod record;
mod settings;
mod sink;
mod trail;
mod writer;

pub use queue::Numbers;
pub use record::{Asked, Caller, Listener, Origin, Outcome, Record};
pub use settings::{AuditMode, AuditSection, Target};
pub use trail::Audit;
