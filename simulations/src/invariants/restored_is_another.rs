//! A cluster restored from a backup is a new cluster: it rejects a node with a join token of the
//! lost cluster (docs/runbook.md: a token is valid only in the cluster that created it).

/// Name of the invariant in violations.
pub const NAME: &str = "a restored cluster is another one";

/// The violation: the node was admitted.
pub fn complaint(node: u64) -> String {
    format!("{NAME}: node {node} joined with a token of the lost cluster")
}
