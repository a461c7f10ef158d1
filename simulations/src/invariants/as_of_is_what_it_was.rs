//! A read at an earlier moment shows what was there then (docs/api.md: `Placement-As-Of`), as
//! watchers had followed it.

/// Its name in complaints.
pub const NAME: &str = "as-of is what it was";

/// A read that shows something else.
pub fn complaint(index: u64, path: &str, shown: &str, was: &str) -> String {
    format!("{NAME}: GET {path} as of {index} shows {shown}, and there was {was}")
}
