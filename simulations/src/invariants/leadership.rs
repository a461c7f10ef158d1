//! Invariants of the roles that nodes report at each step of time.

use super::Role;
use super::applied_never_falls::SeenNeverFalls;
use super::one_start_per_leader::OneStartPerLeader;
use super::own_vote;
use super::votes_rise::VotesRise;

/// Checks of reported roles. "One leader per term" is not promised: see
/// [`super::one_committed_leader_per_term`].
#[derive(Debug, Default)]
pub struct Leadership {
    votes: VotesRise,
    leaders: OneStartPerLeader,
    seen: SeenNeverFalls,
}

impl Leadership {
    /// Checks the role that one node reports.
    ///
    /// # Errors
    /// Description of the violation.
    pub fn observe(&mut self, role: Role) -> Result<(), String> {
        self.votes.observe(&role)?;
        own_vote::observe(&role)?;
        self.seen.observe(&role)?;
        self.leaders.observe(&role)
    }

    /// Number of leaders so far.
    pub fn elections(&self) -> usize {
        self.leaders.leaders()
    }
}
