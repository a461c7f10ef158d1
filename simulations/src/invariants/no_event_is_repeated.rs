//! A watcher that goes on with a token, at any node, is sent no event a second time (docs/api.md:
//! `events`).

/// Its name in complaints.
pub const NAME: &str = "no event is repeated";

/// An event that was sent, though all up to a later one had been.
pub fn complaint(index: u64, last: u64) -> String {
    format!("{NAME}: entry {index} of the log was sent, and {last} had been")
}
