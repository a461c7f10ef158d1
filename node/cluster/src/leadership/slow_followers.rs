//! Followers that acknowledge log entries late. The leader compares them with its fastest follower,
//! because on a busy host all nodes are slow; and it subtracts the round trip, because a far node
//! is not slow.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::replica::Replica;
use placement_peer::raft::peers::Peers;

/// A follower is slow if it is slower than the fastest follower by this time and this factor.
const SLOW: Duration = Duration::from_millis(200);
const SLOW_FACTOR: u32 = 10;

/// How long a follower takes to acknowledge log entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Time from sending entries to their acknowledgement.
    pub acknowledges: Duration,
    /// The shortest recent round trip of the link.
    pub round_trip: Duration,
}

impl Pace {
    /// Time that the node itself takes.
    fn own(self) -> Duration {
        self.acknowledges.saturating_sub(self.round_trip)
    }
}

/// The pace of each follower that has acknowledged entries in the last minute; empty on a node that
/// does not lead.
pub fn paces(replica: &Replica, peers: &Peers) -> BTreeMap<u64, Pace> {
    if !replica.leads() {
        return BTreeMap::new();
    }
    let typical = peers.acknowledgements.typical().into_iter();
    let pace = |(node, acknowledges)| {
        let round_trip = peers.round_trips.to(node)?.least;
        let pace = Pace {
            acknowledges,
            round_trip,
        };
        Some((node, pace))
    };
    typical.filter_map(pace).collect()
}

/// The slow followers, and the fastest follower.
pub fn slow(paces: &BTreeMap<u64, Pace>) -> (Vec<u64>, Option<u64>) {
    let fastest = paces.iter().min_by_key(|(_, pace)| pace.own());
    let Some((fastest, best)) = fastest.map(|(node, pace)| (*node, pace.own())) else {
        return (Vec::new(), None);
    };
    let limit = (best + SLOW).max(best * SLOW_FACTOR);
    let slow = paces.iter().filter(|(_, pace)| pace.own() > limit);
    (slow.map(|(node, _)| *node).collect(), Some(fastest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow_of<const N: usize>(paces: [(u64, u64, u64); N]) -> Vec<u64> {
        let ms = Duration::from_millis;
        let paces = paces.map(|(node, acknowledges, round_trip)| {
            let pace = Pace {
                acknowledges: ms(acknowledges),
                round_trip: ms(round_trip),
            };
            (node, pace)
        });
        slow(&paces.into()).0
    }

    #[test]
    fn a_follower_is_slow_only_in_comparison_with_another_follower_and_its_link() {
        assert_eq!(slow_of([(2, 2, 0), (3, 640, 0)]), [3]);
        assert_eq!(
            slow_of([(2, 2, 0), (3, 150, 0)]),
            [0u64; 0],
            "a busy moment"
        );
        assert_eq!(slow_of([(2, 90, 0), (3, 640, 0)]), [0u64; 0], "a busy host");
        assert_eq!(
            slow_of([(2, 2, 0), (3, 303, 300)]),
            [0u64; 0],
            "a far region"
        );
        assert_eq!(slow_of([(2, 2, 0), (3, 803, 300)]), [3]);
        assert_eq!(slow_of([(3, 640, 0)]), [0u64; 0], "there is no comparison");
        assert_eq!(slow_of([]), [0u64; 0]);
    }
}
