//! A watcher that resumes with a token, at any node, receives every later event, in order and
//! without gaps (docs/api.md: `events`).

/// Name of the invariant in violations.
pub const NAME: &str = "no event is skipped";

/// The violation: `index` was sent without `missing` before it.
pub fn complaint(missing: u64, index: u64) -> String {
    format!("{NAME}: log entry {missing} made a change, but entry {index} was sent next")
}
