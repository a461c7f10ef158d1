//! Conversion between the database of OpenStack Placement ("upstream") and the model.
//!
//! * [`import()`] reads a dump as a state, with a report.
//! * [`content_digest`] computes a digest to compare the content of partitions.
//! * [`export()`] writes a state as `INSERT`s for an empty upstream database.

mod check;
mod compare;
mod digest;
mod dump;
mod export;
mod findings;
mod import;
mod report;
mod scan;
mod schema;
mod sql;
mod state;

pub use digest::content_digest;
pub use dump::DumpError;
pub use export::{Export, export};
pub use findings::Findings;
pub use import::{Import, ImportError, import};
pub use placement_wire::Dialect;
pub use report::Report;
