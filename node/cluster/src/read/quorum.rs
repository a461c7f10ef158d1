//! Proof, from the votes of a quorum, that a leader still led when a read arrived, so that the
//! leader need not ask for the votes itself.
//!
//! Each member of the quorum reads its vote after the read arrived; the leader reads its own when
//! it is asked for its commit index. If all these votes are the vote by which this leader leads,
//! then no newer leader had been elected when the read arrived:
//!
//! * The first newer leader is elected by a quorum of the newest membership in its log. Its log
//!   holds everything that this leader has committed, so that membership is the last one that this
//!   leader knows to be committed, or one that this leader has appended since. The nodes that were
//!   asked are a quorum of both, so one of them has voted for the newer leader.
//! * A node's vote never returns to an earlier term, and is on disk before the candidate receives
//!   it. So a voter that has voted for a newer leader does not show this leader's vote afterwards,
//!   not even after a restart.
//!
//! So everything acknowledged before the read arrived was committed by this leader or by earlier
//! leaders. Once this leader has committed an entry of its own, its commit index covers all of
//! this. No clock is involved.
//!
//! With up to three voters, the leader and the asking voter are a quorum, so asking the leader is
//! enough. Otherwise the asking node asks all voters for their votes while it asks the leader. The
//! read then takes one round trip: to the leader or to the slowest node of the quorum, whichever
//! takes longer. The distance between these two does not matter.

use std::collections::BTreeSet;

use openraft::RaftState;
use placement_model::mutant;
use placement_raft_store::{LogId, Membership, TypeConfig, Vote};

use placement_peer::raft::messages::CommitPoint;

/// Whether two nodes are a quorum of a membership; of a joint membership, a quorum of both
/// configurations.
pub(crate) fn are_quorum(membership: &Membership, pair: [u64; 2]) -> bool {
    let pair = BTreeSet::from(pair);
    (membership.get_joint_config().iter())
        .all(|voters| 2 * voters.intersection(&pair).count() > voters.len())
}

/// Whether the nodes that showed the vote of a commit point are a quorum.
pub(crate) fn is_confirmed(point: &CommitPoint, showed: &BTreeSet<u64>) -> bool {
    (point.voters.iter()).all(|voters| 2 * voters.intersection(showed).count() > voters.len())
}

/// As the leader `me`: the commit point that the asking node confirms. `None` if this node does not
/// lead or has not committed an entry of its own.
pub(crate) fn point(state: &RaftState<TypeConfig>, me: u64) -> Option<CommitPoint> {
    let (vote, members) = (state.vote_ref(), &state.membership_state);
    let mut committed = *state.local_committed()?;
    if mutant!("read-before-the-first-entry") {
        committed = LogId::new(*vote.leader_id(), committed.index());
    }
    let memberships = [members.committed(), members.effective()].map(|one| one.membership());
    point_of(*vote, committed, memberships, me)
}

/// The leader's commit point, from its vote, its commit index, and the newest committed and the
/// newest effective membership.
fn point_of(
    vote: Vote,
    committed: LogId,
    memberships: [&Membership; 2],
    me: u64,
) -> Option<CommitPoint> {
    let leads = vote.is_committed() && vote.leader_id().node_id == me;
    let is_own = committed.committed_leader_id() == vote.leader_id();
    (leads && is_own).then(|| CommitPoint {
        vote: (&vote).into(),
        index: committed.index(),
        voters: (memberships.iter())
            .flat_map(|one| one.get_joint_config().iter().cloned())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use placement_raft_store::Member;
    use placement_raft_store::wire::WireLogId;

    use super::*;

    const LEADER: u64 = 1;

    fn membership(voters: &[&[u64]], learners: &[u64]) -> Membership {
        let voters: Vec<BTreeSet<u64>> = (voters.iter())
            .map(|config| config.iter().copied().collect())
            .collect();
        let members = (voters.iter().flatten().chain(learners))
            .map(|id| (*id, Member::default()))
            .collect::<std::collections::BTreeMap<_, _>>();
        Membership::new(voters, members).unwrap()
    }

    fn entry(term: u64, node: u64) -> LogId {
        let index = 7;
        WireLogId { term, node, index }.into()
    }

    /// The commit point of a leader that has committed an entry of its own.
    fn leading(vote: Vote, members: &Membership) -> Option<CommitPoint> {
        point_of(vote, entry(5, LEADER), [members, members], LEADER)
    }

    fn asked(point: &Option<CommitPoint>, node: u64, vote: Vote) -> Option<u64> {
        let point = point.as_ref()?;
        let pair = BTreeSet::from([LEADER, node]);
        (point.vote == (&vote).into() && is_confirmed(point, &pair)).then_some(point.index)
    }

    #[test]
    fn a_leader_and_one_follower_are_a_quorum_of_three() {
        let vote = Vote::new_committed(5, LEADER);
        let three = membership(&[&[1, 2, 3]], &[4]);
        let leading = leading(vote, &three);
        assert_eq!(asked(&leading, 2, vote), Some(7));
        assert_eq!(asked(&leading, 4, vote), None, "a learner has no vote");
        assert_eq!(asked(&leading, 9, vote), None, "nor has an unknown node");
        for other in [
            Vote::new_committed(4, LEADER),
            Vote::new_committed(6, 3),
            Vote::new(6, 3),
            Vote::new(5, LEADER),
        ] {
            assert_eq!(asked(&leading, 2, other), None, "{other}");
        }
    }

    #[test]
    fn among_five_the_leader_and_two_others_are_enough() {
        let vote = Vote::new_committed(5, LEADER);
        let five = membership(&[&[1, 2, 3, 4, 5]], &[6]);
        let point = leading(vote, &five).unwrap();
        for (showed, is_enough) in [
            (&[1, 2, 3][..], true),
            (&[1, 4, 5], true),
            (&[1, 2], false),
            (&[1, 2, 6], false),
            (&[1, 2, 9], false),
        ] {
            let showed = showed.iter().copied().collect();
            assert_eq!(is_confirmed(&point, &showed), is_enough, "{showed:?}");
        }
    }

    #[test]
    fn node_that_voted_for_another_does_not_lead() {
        let three = membership(&[&[1, 2, 3]], &[]);
        for vote in [
            Vote::new(6, 3),
            Vote::new_committed(6, 3),
            Vote::new(5, LEADER),
        ] {
            let leading = leading(vote, &three);
            assert_eq!(asked(&leading, 2, vote), None, "{vote}");
        }
    }

    #[test]
    fn leader_without_a_committed_entry_of_its_own_has_no_commit_point() {
        let (vote, three) = (
            Vote::new_committed(5, LEADER),
            membership(&[&[1, 2, 3]], &[]),
        );
        for committed in [entry(4, LEADER), entry(5, 0)] {
            let leading = point_of(vote, committed, [&three, &three], LEADER);
            assert_eq!(asked(&leading, 2, vote), None, "{committed}");
        }
    }

    #[test]
    fn both_memberships_count_during_a_change() {
        let vote = Vote::new_committed(5, LEADER);
        let three = membership(&[&[1, 2, 3]], &[]);
        for (other, expected) in [
            (membership(&[&[1, 2]], &[]), Some(7)),
            (membership(&[&[1, 3]], &[]), None),
            (membership(&[&[1, 2, 3, 4]], &[]), None),
            (membership(&[&[1, 2, 3], &[1, 3, 4]], &[]), None),
            (membership(&[&[1, 2, 3], &[1, 2, 4]], &[]), Some(7)),
        ] {
            for memberships in [[&three, &other], [&other, &three]] {
                let leading = point_of(vote, entry(5, LEADER), memberships, LEADER);
                assert_eq!(asked(&leading, 2, vote), expected, "{other:?}");
            }
        }
    }
}
