//! Whoever leads has voted for itself (Raft paper, 5.2).

use super::Role;

/// Its name in complaints.
pub const NAME: &str = "a leader holds its own vote";

/// Looks at what one node says of itself.
///
/// # Errors
/// What is wrong, in words.
pub fn observe(role: &Role) -> Result<(), String> {
    let Role { node, vote, .. } = role;
    match role.leads && vote.leader_id.node_id != *node {
        true => Err(format!("{NAME}: node {node} leads, but has voted {vote}")),
        false => Ok(()),
    }
}
