//! How long the cluster waits for elections, leaders and voters. Each wait is a multiple of the
//! election timeout, so that all of them scale with the round trips of the cluster.

use std::time::Duration;

/// The waits, one for each purpose.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// Shortest silence of the leader before an election.
    pub(super) election_min: Duration,
    /// Longest silence of the leader before an election.
    pub(super) election_max: Duration,
}

impl Waits {
    /// How long a request for the read index waits for the leader and for voters. A healthy quorum
    /// answers immediately; otherwise the request is repeated.
    pub fn read_index(self) -> Duration {
        self.election_min
    }

    /// How long a new leader waits for the first answers of its voters before it decides which of
    /// them are reachable and have caught up.
    pub fn first_answers(self) -> Duration {
        self.election_max
    }

    /// A node counts as reachable if it answered the leader within this time.
    pub fn reachable(self) -> Duration {
        2 * self.election_max
    }

    /// How long a read that allows a local answer waits for the leader before it is answered from
    /// the local state: longer than an election takes.
    pub fn optional_read(self) -> Duration {
        2 * self.election_max
    }

    /// How long a node that stops or is drained tries to hand leadership over.
    pub fn step_aside(self) -> Duration {
        2 * self.election_max
    }

    /// How long a requested transfer of leadership may take.
    pub fn transfer(self) -> Duration {
        3 * self.election_max
    }

    /// Shortest unreachable time after which the autopilot may move a vote. Before that, a new
    /// leader may not have received an answer from each voter.
    pub fn absence_min(self) -> Duration {
        3 * self.election_max
    }

    /// A leader leads for at least this long before it hands over to a better site: it first has to
    /// reach its voters, and the node at the better site may have returned only briefly.
    pub fn settle(self) -> Duration {
        10 * self.election_max
    }
}
