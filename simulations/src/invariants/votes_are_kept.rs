//! A vote that was acknowledged as durable is present when the node starts again (Raft paper,
//! figure 2: persistent state). The disk detects a loss:
//! [`SimulatedDisk::lost_vote`](placement_machine::SimulatedDisk::lost_vote).

/// Name of the invariant in violations.
pub const NAME: &str = "votes are kept";

/// The violation: a disk has lost a vote.
pub fn complaint(node: u64, lost: &str) -> String {
    format!("{NAME}: node {node}: {lost}")
}
