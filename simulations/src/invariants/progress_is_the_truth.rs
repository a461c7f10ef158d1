//! When a stream reports progress up to an index, it has sent all changes up to there, and together
//! they give the state at that index, whichever nodes sent them (docs/api.md: `events`).

/// Name of the invariant in violations.
pub const NAME: &str = "progress is the truth";

/// The violation at a reported index.
pub fn complaint(to: u64, wrong: &str) -> String {
    format!("{NAME}: at {to}: {wrong}")
}
