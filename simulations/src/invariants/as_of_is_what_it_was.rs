//! A read with `Placement-As-Of` (docs/api.md) shows the state of that moment, as the clients that
//! had followed the events knew it.

/// Name of the invariant in violations.
pub const NAME: &str = "as-of is what it was";

/// The violation: a read as of `index` shows another state.
pub fn complaint(index: u64, path: &str, shown: &str, was: &str) -> String {
    format!("{NAME}: GET {path} as of {index} shows {shown}, but the state was {was}")
}
