//! Real processes under real faults, with clients that use the whole API, judged by the witness of
//! the simulations: each answer follows from the log that the nodes kept.
//!
//! * [`Round`]: one cluster, its clients, its faults, a recovery phase, and the verdict.
//! * [`Course`]: what came of it. [`KeptLog`]: the log that the nodes kept, all of them together.
//!   [`Summary`]: what many came to.

mod board;
mod client;
mod faults;
mod kept_log;
mod round;
mod summary;

pub use faults::Fault;
pub use kept_log::{Entry, KeptLog};
pub use round::{Course, Round, Verdict, judge};
pub use summary::Summary;
