//! What nodes say of themselves at each step, held against what must hold of it.

use placement_raft_store::Vote;

use super::applied_never_falls::SeenNeverFalls;
use super::one_start_per_leader::OneStartPerLeader;
use super::own_vote;
use super::votes_rise::VotesRise;

/// What a node says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// The node.
    pub node: u64,
    /// Which of its starts this is, from 1.
    pub start: u64,
    /// The vote that it has made durable.
    pub vote: Vote,
    /// Whether it leads.
    pub leads: bool,
    /// How far its readers see.
    pub applied: Option<u64>,
}

/// All that is looked at in what nodes say of themselves. "One leader per term" is no promise:
/// see [`super::one_committed_leader_per_term`].
#[derive(Debug, Default)]
pub struct Leadership {
    votes: VotesRise,
    leaders: OneStartPerLeader,
    seen: SeenNeverFalls,
}

impl Leadership {
    /// Looks at what one node says of itself.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn observe(&mut self, role: Role) -> Result<(), String> {
        self.votes.observe(&role)?;
        own_vote::observe(&role)?;
        self.seen.observe(&role)?;
        self.leaders.observe(&role)
    }

    /// How many leaders there were.
    pub fn elections(&self) -> usize {
        self.leaders.leaders()
    }
}
