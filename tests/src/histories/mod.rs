//! Real processes under real faults, with clients that use the whole API. The witness of the
//! simulations checks that each answer follows from the log that the nodes kept.
//!
//! * [`Round`]: one cluster, its clients, its faults, a recovery phase, and the verdict.
//! * [`RoundResult`]: the result of a round.
//! * [`KeptLog`]: the merged log of all nodes.
//! * [`Summary`]: the results of many rounds.

mod board;
mod client;
mod faults;
mod kept_log;
mod round;
mod summary;

pub use faults::Fault;
pub use kept_log::{Entry, KeptLog};
pub use round::{Round, RoundResult, Verdict, judge};
pub use summary::Summary;
