//! A watcher that goes on with a token, at any node, is sent each later event, and none is missing
//! before another (docs/api.md: `events`).

/// Its name in complaints.
pub const NAME: &str = "no event is skipped";

/// An event that was not sent before a later one.
pub fn complaint(missing: u64, index: u64) -> String {
    format!("{NAME}: entry {missing} of the log has changed something, and {index} was sent next")
}
