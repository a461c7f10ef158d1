//! A vote that was called durable is there when the node starts again (Raft paper, figure 2:
//! persistent state). The disk itself says so:
//! [`SimulatedDisk::lost_vote`](placement_machine::SimulatedDisk::lost_vote).

/// Its name in complaints.
pub const NAME: &str = "votes are kept";

/// The complaint about a vote that a disk has lost.
pub fn complaint(node: u64, lost: &str) -> String {
    format!("{NAME}: node {node}: {lost}")
}
