//! A cluster that is restored from a backup is another one: a node with a token of the cluster that
//! was lost is not let in (docs/runbook.md: tokens end with the cluster that made them).

/// Its name in complaints.
pub const NAME: &str = "a restored cluster is another one";

/// A node that was let in.
pub fn complaint(node: u64) -> String {
    format!("{NAME}: node {node} is a member, with a token of the cluster that was lost")
}
