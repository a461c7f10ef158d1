//! Where a node is reached.

/// Where others reach a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// The REST API.
    pub api: String,
    /// The other nodes.
    pub peer: String,
    /// Operators.
    pub admin: String,
}
