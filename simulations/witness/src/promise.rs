//! What [`crate::witness`] reads off the history and the log: the names of these promises, and
//! where they come from.

/// A read shows, and a write is answered, what follows from the log up to the place that the answer
/// names (linearizability: one order, and every answer is the one of that order).
pub const ANSWERS_FOLLOW: &str = "answers follow from the log";
/// What was acknowledged is in the log, at the place that was named (the architecture: acknowledged
/// is committed).
pub const ACKNOWLEDGED_IS_THERE: &str = "acknowledged is there";
/// What is answered as not committed never is (docs/errors.md:
/// `placement.unavailable.nothing_committed` is safe to repeat).
pub const NOTHING_COMMITTED: &str = "nothing committed is true";
/// Each command of the log was asked for, by one request that may have had an effect.
pub const ASKED_FOR: &str = "every command was asked for once";
/// What happened before in real time stands before in the log.
pub const REAL_TIME: &str = "writes stand in the order of their answers";
/// A linearizable read is at or after whatever was acknowledged before it was asked for.
pub const LINEARIZABLE: &str = "linearizable reads";
/// A session read is at or after its token.
pub const SESSION: &str = "session reads";
/// A bounded read is at or after whatever was acknowledged so long before it was asked for.
pub const BOUNDED: &str = "bounded reads";
/// Each answer names the history that it is of, and says that it keeps what was asked for, or more
/// (docs/api.md: `Placement-Index`, `Placement-Effective-Consistency`).
pub const SAYS_WHAT_IT_KEEPS: &str = "answers say what they keep";
/// What our own client says of all its requests together is so, and it asks no node for less than
/// it was shown (`client/DESIGN.md`).
pub const CLIENT: &str = "our client tells the truth";
