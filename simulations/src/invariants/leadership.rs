//! What nodes say of themselves at each step, held against what must hold of it.

use super::Role;
use super::applied_never_falls::SeenNeverFalls;
use super::one_start_per_leader::OneStartPerLeader;
use super::own_vote;
use super::votes_rise::VotesRise;

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
    /// What is wrong.
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
