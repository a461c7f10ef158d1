//! Names of the promises that [`crate::witness`] checks against history and log, with their
//! sources.

/// Reads and answers of writes follow from the log up to the index that the answer names
/// (linearizability: there is one order, and every answer follows from it).
pub const ANSWERS_FOLLOW: &str = "answers follow from the log";
/// An acknowledged write is in the log at the named index (architecture: acknowledged means
/// committed).
pub const ACKNOWLEDGED_IS_THERE: &str = "acknowledged is there";
/// A write that is reported as not committed is never committed (docs/errors.md:
/// `placement.unavailable.nothing_committed` is safe to repeat).
pub const NOTHING_COMMITTED: &str = "nothing committed is true";
/// Each command of a client in the log belongs to exactly one request: one that was answered from
/// this log entry, or one whose client does not know the outcome.
pub const ASKED_FOR: &str = "every command was asked for once";
/// A write of allocations that is sent again with the same request id is executed once, and each
/// attempt that finds it executed gets 204 (docs/api.md: `X-OpenStack-Request-Id`).
pub const REPEATED_ONCE: &str = "a repeated claim is done once";
/// The log order respects the real-time order.
pub const REAL_TIME: &str = "writes stand in the order of their answers";
/// A linearizable read reflects every write acknowledged before the read was sent.
pub const LINEARIZABLE: &str = "linearizable reads";
/// A session read reflects the state at its token or later.
pub const SESSION: &str = "session reads";
/// A bounded read reflects every write acknowledged at least its bound before the read was sent.
pub const BOUNDED: &str = "bounded reads";
/// Each answer names its history and a consistency at least as strong as requested (docs/api.md:
/// `Placement-Index`, `Placement-Effective-Consistency`).
pub const SAYS_WHAT_IT_KEEPS: &str = "answers say what they keep";
/// The results that our client library reports for its requests are correct, and it never asks for
/// an older state than it was shown (`client/DESIGN.md`).
pub const CLIENT: &str = "our client tells the truth";
