//! Latency of reads and writes in round trips between nodes, without the processing time of the
//! nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::losses::{MemberStatus, voters};

/// Round trips between nodes, as measured by both sides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoundTrips(BTreeMap<(u64, u64), Duration>);

impl RoundTrips {
    /// Records the round trip from `from` to `to`, as measured by `from`.
    pub fn note(&mut self, from: u64, to: u64, took: Duration) {
        self.0.insert((from, to), took);
    }

    /// The round trip as measured by one of the two nodes, or the longer of both measurements.
    pub(crate) fn between(&self, one: u64, other: u64) -> Option<Duration> {
        if one == other {
            return Some(Duration::ZERO);
        }
        let measured = [(one, other), (other, one)].map(|pair| self.0.get(&pair));
        measured.into_iter().flatten().max().copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = ((u64, u64), Duration)> {
        self.0.iter().map(|(pair, took)| (*pair, *took))
    }

    /// How long `node` waits until `count` of `others` have answered it.
    fn nearest(&self, node: u64, others: &BTreeSet<u64>, count: usize) -> Option<Duration> {
        let Some(last) = count.checked_sub(1) else {
            return Some(Duration::ZERO);
        };
        let mut waits: Vec<_> = (others.iter())
            .filter_map(|other| self.between(node, *other))
            .collect();
        waits.sort_unstable();
        waits.get(last).copied()
    }
}

/// The reachable voters, and the size of a majority of all voters.
pub(super) struct Voters {
    reachable: BTreeSet<u64>,
    majority: usize,
}

impl Voters {
    pub(super) fn from_members(members: &[MemberStatus]) -> Self {
        let reachable = voters(members).filter(|voter| voter.is_reachable);
        Self {
            reachable: reachable.map(|voter| voter.node).collect(),
            majority: voters(members).count() / 2 + 1,
        }
    }

    /// Latency of a linearizable read at `node`, which asks the leader and the nearest voters at
    /// the same time.
    pub(super) fn read(&self, trips: &RoundTrips, node: u64, leader: u64) -> Option<Duration> {
        let others = &self.reachable - &BTreeSet::from([node, leader]);
        let are_there = self.reachable.len() - others.len();
        let rest = self.majority.saturating_sub(are_there);
        let leader = trips.between(node, leader)?;
        Some(leader.max(trips.nearest(node, &others, rest)?))
    }

    /// Latency of a write through `node`: it goes to the leader, and from there to the nearest
    /// voters.
    pub(super) fn write(&self, trips: &RoundTrips, node: u64, leader: u64) -> Option<Duration> {
        let others = &self.reachable - &BTreeSet::from([leader]);
        let commit = trips.nearest(leader, &others, self.majority.saturating_sub(1))?;
        Some(trips.between(node, leader)? + commit)
    }
}

#[cfg(test)]
mod tests {
    use super::super::losses::tests::standings;
    use super::*;

    /// Nodes 1 and 2 are together, as are 3 and 4; 5 and 6 are alone.
    fn trips() -> RoundTrips {
        let region = |node: u64| node.div_ceil(2).max(node.saturating_sub(2));
        let mut trips = RoundTrips::default();
        for (one, other) in (1..=6).flat_map(|one| (one + 1..=6).map(move |other| (one, other))) {
            let ms = match (region(one), region(other)) {
                (a, b) if a == b => 1,
                (1, 2) => 30,
                (2, _) => 80,
                _ => 100,
            };
            trips.note(one, other, Duration::from_millis(ms));
        }
        trips
    }

    #[test]
    fn reads_and_writes_wait_for_the_nearest_majority() {
        let sites = ["n/*", "n/*", "s/*", "s/*", "w/*", "edge/"];
        let (members, trips) = (standings(&sites), trips());
        let voters = Voters::from_members(&members);
        let ms = |took: Option<Duration>| took.unwrap().as_millis();
        let read = |node| ms(voters.read(&trips, node, 1));
        let write = |node| ms(voters.write(&trips, node, 1));
        assert_eq!([1, 2, 3, 5, 6].map(read), [30, 30, 30, 100, 100]);
        assert_eq!([1, 2, 3, 5, 6].map(write), [30, 31, 60, 130, 130]);
    }

    #[test]
    fn read_at_one_of_three_voters_needs_only_the_leader() {
        let (members, trips) = (standings(&["n/*", "n/*", "s/*"]), trips());
        let voters = Voters::from_members(&members);
        assert_eq!(voters.read(&trips, 3, 1), Some(Duration::from_millis(30)));
        assert_eq!(voters.read(&trips, 1, 1), Some(Duration::from_millis(1)));
    }

    #[test]
    fn costs_without_measurements_are_unknown() {
        let voters = Voters::from_members(&standings(&["n/*", "n/*", "s/*"]));
        assert_eq!(voters.read(&RoundTrips::default(), 3, 1), None);
        assert_eq!(voters.write(&RoundTrips::default(), 1, 1), None);
    }
}
