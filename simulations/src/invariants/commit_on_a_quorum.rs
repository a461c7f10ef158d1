//! What is committed is on the disks of a quorum of the voters (Raft paper, 5.3; and the promise of
//! the architecture: acknowledged means synced by a majority, of both sets of voters while they
//! change).
//!
//! Looked at when the first node comes to know. The voters are those of the last membership in its
//! log at that place, or of the first that follows: that one is in force before it is committed,
//! and a second one is not written before then.

use super::{Hint, LogInvariant};
use crate::logs::{Happened, Logs, Voters};

/// Its name in complaints.
pub const NAME: &str = "commit on a quorum";

/// See the module.
#[derive(Debug, Default)]
pub struct CommitOnAQuorum {
    furthest: Option<u64>,
}

impl LogInvariant for CommitOnAQuorum {
    fn name(&self) -> &'static str {
        NAME
    }

    fn noted(&mut self, logs: &Logs, hint: &Hint<'_>) -> Result<(), String> {
        let Happened::Committed(upto) = hint.happened else {
            return Ok(());
        };
        if self.furthest >= Some(upto.index) {
            return Ok(());
        }
        self.furthest = Some(upto.index);
        let log = logs.of(hint.node);
        let known = log.voters.range(..=upto.index).next_back();
        // Of what the state covers the log may lack the last membership: it came with a snapshot.
        let covered = log.purged.map_or(upto.index, |purged| purged.index);
        let covered = logs.voters.range(..=covered).next_back();
        let known = known.into_iter().chain(covered);
        let known = known.max_by_key(|(index, _)| **index);
        let later = log.voters.range(upto.index + 1..).take(1);
        let memberships: Vec<&Voters> = known.into_iter().chain(later).map(|one| one.1).collect();
        let has = |node: &u64| logs.of(*node).has_durably(*upto);
        let agrees = |voters: &Voters| {
            let has_majority = |set: &std::collections::BTreeSet<u64>| {
                2 * set.iter().filter(|node| has(node)).count() > set.len()
            };
            voters.iter().all(has_majority)
        };
        if memberships.is_empty() {
            // The first membership is an entry like others.
            return match logs.voters.range(..=upto.index).next_back() {
                None => Ok(()),
                Some(_) => Err(format!(
                    "node {} knows {upto} to be committed, and has no membership",
                    hint.node
                )),
            };
        }
        if memberships.iter().any(|voters| agrees(voters)) {
            return Ok(());
        }
        let all = memberships
            .iter()
            .flat_map(|voters| voters.iter().flatten());
        let there: Vec<&u64> = all.filter(|node| has(node)).collect();
        Err(format!(
            "node {} knows {upto} to be committed, but of the voters {memberships:?} only {there:?} \
             have it on disk",
            hint.node
        ))
    }
}
