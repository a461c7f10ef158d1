//! A watcher that resumes with a token, at any node, receives no event twice (docs/api.md:
//! `events`).

/// Name of the invariant in violations.
pub const NAME: &str = "no event is repeated";

/// The violation: entry `index` was sent again after `last`.
pub fn complaint(index: u64, last: u64) -> String {
    format!("{NAME}: log entry {index} was sent after entry {last}")
}
