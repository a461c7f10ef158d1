//! The wall clock of this node, compared with the clocks of the voters.
//!
//! The leader's clock determines the timestamps in the log, and operators and join tokens rely on
//! them. If a leader's clock is ahead even once, all later timestamps are ahead; while it is
//! behind, the time in the log hardly advances. So if a leader's clock differs from the time on
//! which a majority of the voters agrees, the leader uses that time. Without such a majority it is
//! unknown which clock is wrong. Then each leader uses its own clock, and the nodes report the
//! difference.

use std::fmt;

use placement_base::coverage::RarePath;
use placement_model::types::Timestamp;

use crate::running::Running;
use placement_base::world::micros;

/// Largest difference between clocks that agree, in microseconds.
const AGREE_MAX: u64 = 5_000_000;

/// Result of comparing this node's clock with those of the voters. Differences are in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClockAgreement {
    /// Too few clocks are known, and none of them differs.
    Unknown,
    /// This node's clock agrees with the clocks of a majority of the voters; `ahead` is the largest
    /// difference from one of these clocks.
    Agrees { ahead: i64 },
    /// A majority of the voters agrees on a time that differs from this node's clock.
    Outvoted { ahead: i64 },
    /// This node's clock differs from a voter's clock, and no majority of the voters agrees.
    Disputed { with: u64, ahead: i64 },
}

/// A problem with the clocks, for the log and the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockProblem {
    /// This node's clock is ahead by this many seconds; negative if it is behind.
    Wrong { ahead_s: i64 },
    /// The clocks of two nodes differ by this many seconds, and either may be wrong.
    Differ { nodes: [u64; 2], by_s: u64 },
}

impl fmt::Display for ClockProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong { ahead_s } => write!(
                f,
                "its clock is {} s {} the clocks of a majority of the voters. While the node leads, \
                it stamps writes with the time of that majority instead of its own; correct the \
                clock of its host",
                ahead_s.unsigned_abs(),
                if *ahead_s < 0 { "behind" } else { "ahead of" },
            ),
            Self::Differ {
                nodes: [a, b],
                by_s,
            } => write!(
                f,
                "the clocks of nodes {a} and {b} differ by {by_s} s; it is unknown which one is \
                wrong. Each leader stamps writes with its own clock: compare both clocks with the \
                correct time, and correct the wrong one",
            ),
        }
    }
}

impl ClockProblem {
    /// Whether this is the same problem as before, though the clocks have moved.
    pub(crate) fn is_same_problem(&self, before: Option<Self>) -> bool {
        match (self, before) {
            (Self::Wrong { .. }, Some(Self::Wrong { .. })) => true,
            (Self::Differ { nodes, .. }, Some(Self::Differ { nodes: before, .. })) => {
                *nodes == before
            }
            _ => false,
        }
    }
}

impl Running {
    /// The time of this node's clock or, if a majority of the voters agrees on another time, that
    /// time.
    pub(crate) fn wall_time(&self) -> Timestamp {
        match self.compare_clocks() {
            (own, ClockAgreement::Outvoted { ahead }) => {
                RarePath::ClockBounded.ran();
                Timestamp(own.0.saturating_sub(ahead))
            }
            (own, _) => own,
        }
    }

    /// How far this node's clock is ahead of the voters' clocks, in microseconds; negative if it is
    /// behind. The reference is the majority that agrees or, if no majority agrees, the voter whose
    /// clock differs most from this one. `None` while too few clocks are known.
    pub fn clock_ahead(&self) -> Option<i64> {
        match self.compare_clocks().1 {
            ClockAgreement::Unknown => None,
            ClockAgreement::Agrees { ahead }
            | ClockAgreement::Outvoted { ahead }
            | ClockAgreement::Disputed { ahead, .. } => Some(ahead),
        }
    }

    /// The problem of this node's clock, if it has one.
    pub fn clock_problem(&self) -> Option<ClockProblem> {
        let seconds = |micros: i64| micros / 1_000_000;
        match self.compare_clocks().1 {
            ClockAgreement::Unknown | ClockAgreement::Agrees { .. } => None,
            ClockAgreement::Outvoted { ahead } => Some(ClockProblem::Wrong {
                ahead_s: seconds(ahead),
            }),
            ClockAgreement::Disputed { with, ahead } => {
                let mut nodes = [self.replica.me, with];
                nodes.sort_unstable();
                Some(ClockProblem::Differ {
                    nodes,
                    by_s: seconds(ahead).unsigned_abs(),
                })
            }
        }
    }

    fn compare_clocks(&self) -> (Timestamp, ClockAgreement) {
        let own = micros(self.clock.now());
        let (me, voters) = (self.replica.me, self.replica.voters());
        let others = voters.iter().filter(|voter| **voter != me);
        let known = others.filter_map(|voter| {
            Some((*voter, Timestamp(self.peers.round_trips.clock_of(*voter)?)))
        });
        let standing = compare(own, voters.contains(&me), known.collect(), voters.len());
        (own, standing)
    }
}

/// Compares a node's clock with the known clocks of the other voters, out of `voters` voters.
fn compare(
    own: Timestamp,
    votes: bool,
    others: Vec<(u64, Timestamp)>,
    voters: usize,
) -> ClockAgreement {
    let majority = voters / 2 + 1;
    let ahead_of = |(node, clock): (u64, Timestamp)| (node, own.0.saturating_sub(clock.0));
    let mut others: Vec<_> = others.into_iter().map(ahead_of).collect();
    // Sorted so that the latest clock comes first.
    others.sort_unstable_by_key(|(node, ahead)| (*ahead, *node));
    let distance = |(_, ahead): &(u64, i64)| ahead.unsigned_abs();
    let agreeing: Vec<_> = (others.iter().copied())
        .filter(|other| distance(other) <= AGREE_MAX)
        .collect();
    if agreeing.len() + usize::from(votes) >= majority {
        let (_, ahead) = (agreeing.into_iter().max_by_key(distance)).unwrap_or_default();
        return ClockAgreement::Agrees { ahead };
    }
    let agreed = (others.windows(majority))
        .find(|some| some[majority - 1].1.abs_diff(some[0].1) <= AGREE_MAX);
    if let Some([.., (_, ahead)]) = agreed {
        // The earliest clock of that majority.
        return ClockAgreement::Outvoted { ahead: *ahead };
    }
    match others.into_iter().max_by_key(distance) {
        Some((with, ahead)) if ahead.unsigned_abs() > AGREE_MAX => {
            ClockAgreement::Disputed { with, ahead }
        }
        _ => ClockAgreement::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    /// How node 1, whose clock shows 3600 s, compares with nodes 2, 3, … whose clocks show
    /// `others`, in seconds; `None`: unknown.
    fn standing(voters: usize, others: &[Option<i64>]) -> ClockAgreement {
        let others = (2..).zip(others);
        let known = others.filter_map(|(node, clock)| Some((node, Timestamp((*clock)? * S))));
        compare(Timestamp(3600 * S), true, known.collect(), voters)
    }

    #[test]
    fn majority_of_voters_overrules_a_clock_in_both_directions() {
        let outvoted = |ahead| ClockAgreement::Outvoted { ahead: ahead * S };
        assert_eq!(standing(3, &[Some(10), Some(14)]), outvoted(3590));
        assert_eq!(standing(3, &[Some(7200), Some(7204)]), outvoted(-3600));
        let five = [Some(10), Some(3600), Some(12), Some(11)];
        assert_eq!(standing(5, &five), outvoted(3590));
        // A node without a vote follows two of the three voters.
        let known = vec![(2, Timestamp(10 * S)), (3, Timestamp(10 * S))];
        let learner = compare(Timestamp(3600 * S), false, known, 3);
        assert_eq!(learner, outvoted(3590));
    }

    #[test]
    fn single_other_clock_overrules_nothing() {
        let disputed = |with, ahead| ClockAgreement::Disputed {
            with,
            ahead: ahead * S,
        };
        assert_eq!(standing(3, &[Some(0), None]), disputed(2, 3600));
        assert_eq!(standing(3, &[None, Some(7200)]), disputed(3, -3600));
        assert_eq!(standing(2, &[Some(0)]), disputed(2, 3600));
        // All three differ.
        assert_eq!(standing(3, &[Some(0), Some(1800)]), disputed(2, 3600));
        // Two of four are no majority, nor are two of five.
        assert_eq!(standing(4, &[Some(0), Some(0), None]), disputed(3, 3600));
        let five = [Some(0), Some(0), Some(3600), None];
        assert_eq!(standing(5, &five), disputed(3, 3600));
    }

    #[test]
    fn clock_agrees_with_a_majority_and_is_unknown_without_others() {
        let agrees = |ahead| ClockAgreement::Agrees { ahead: ahead * S };
        assert_eq!(standing(3, &[Some(3596), Some(0)]), agrees(4));
        assert_eq!(standing(3, &[Some(3604), None]), agrees(-4));
        assert_eq!(standing(1, &[]), agrees(0));
        assert_eq!(standing(3, &[None, None]), ClockAgreement::Unknown);
        assert_eq!(
            standing(5, &[Some(3600), None, None, None]),
            ClockAgreement::Unknown
        );
        let far = compare(Timestamp(i64::MAX), true, vec![(2, Timestamp(i64::MIN))], 2);
        assert!(matches!(far, ClockAgreement::Disputed { with: 2, .. }));
    }

    #[test]
    fn problem_names_both_nodes_while_either_may_be_wrong() {
        let differ = ClockProblem::Differ {
            nodes: [1, 2],
            by_s: 3600,
        };
        let words = differ.to_string();
        assert!(words.starts_with(
            "the clocks of nodes 1 and 2 differ by 3600 s; it is unknown which one is wrong"
        ));
        let wrong = |ahead_s| ClockProblem::Wrong { ahead_s };
        assert!(
            wrong(-9)
                .to_string()
                .starts_with("its clock is 9 s behind the clocks of a majority")
        );
        assert!(
            wrong(9)
                .to_string()
                .starts_with("its clock is 9 s ahead of the clocks of a majority")
        );
        assert!(
            wrong(9).is_same_problem(Some(wrong(10))) && !wrong(9).is_same_problem(Some(differ))
        );
    }
}
