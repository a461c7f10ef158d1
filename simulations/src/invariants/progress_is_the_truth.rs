//! A stream that says how far it is has sent all up to there, and all that it has sent together is
//! what was there at that moment, whichever nodes sent it (docs/api.md: `events`).

/// Its name in complaints.
pub const NAME: &str = "progress is the truth";

/// What is wrong at a place that a stream has come to.
pub fn complaint(to: u64, wrong: &str) -> String {
    format!("{NAME}: at {to}: {wrong}")
}
