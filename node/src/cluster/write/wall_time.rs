//! The wall clock of this node, held against those of the other voters.
//!
//! The stamps of the log follow the clock of its leader, and operators and join tokens count on them: a
//! clock that is ahead once would put all later stamps ahead.

use placement_model::types::Timestamp;
use placement_raft_store::coverage::RarePath;

use crate::cluster::running::Running;
use placement_api::world::micros;

/// How far a clock may be ahead of what a majority has reached, in microseconds.
const AHEAD_MAX: i64 = 5_000_000;

impl Running {
    /// The time by this node's clock; where that is too far ahead, the time that the clocks of a majority
    /// of the voters have reached.
    pub(crate) fn wall_time(&self) -> Timestamp {
        let (own, majority) = self.clocks();
        match majority {
            Some(majority) if own.0.saturating_sub(majority.0) > AHEAD_MAX => {
                RarePath::ClockBounded.ran();
                majority
            }
            _ => own,
        }
    }

    /// How far the clock is ahead of what a majority has reached, in microseconds; negative: behind it.
    /// `None` while too few clocks are known.
    pub(crate) fn clock_ahead(&self) -> Option<i64> {
        let (own, majority) = self.clocks();
        majority.map(|majority| own.0.saturating_sub(majority.0))
    }

    /// Why the clock is not used, if so.
    pub(crate) fn clock_problem(&self) -> Option<String> {
        let ahead = self.clock_ahead().filter(|ahead| *ahead > AHEAD_MAX)?;
        Some(format!(
            "its clock is {} s ahead of the clocks of a majority of the voters: while it leads, it stamps writes by \
             those; set the clock of its machine",
            ahead / 1_000_000
        ))
    }

    fn clocks(&self) -> (Timestamp, Option<Timestamp>) {
        let own = micros(self.clock.now());
        let voters = self.replica.voters();
        let clocks = voters.iter().filter_map(|voter| match *voter {
            voter if voter == self.replica.me => Some(own),
            voter => self.peers.round_trips.clock_of(voter),
        });
        (own, reached_by_majority(voters.len(), clocks.collect()))
    }
}

/// The latest time that the clocks of a majority of so many voters have reached. `None` if fewer are known.
fn reached_by_majority(voters: usize, mut clocks: Vec<Timestamp>) -> Option<Timestamp> {
    clocks.sort_unstable_by(|a, b| b.cmp(a));
    clocks.get(voters / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_of_the_voters_has_reached_the_time() {
        let reached = |voters, clocks: &[i64]| {
            let clocks = clocks.iter().map(|clock| Timestamp(*clock)).collect();
            reached_by_majority(voters, clocks).map(|time| time.0)
        };
        assert_eq!(reached(1, &[90]), Some(90));
        assert_eq!(reached(2, &[90, 10]), Some(10));
        assert_eq!(reached(3, &[10, 90, 11]), Some(11));
        assert_eq!(reached(3, &[10, 90]), Some(10), "one is not known");
        assert_eq!(reached(5, &[90, 12, 10, 11, 91]), Some(12));
        assert_eq!(reached(3, &[90]), None);
    }
}
