//! A committed entry is on the disks of a quorum of the voters (Raft paper, 5.3). The architecture
//! promises that an acknowledged write is synced by a majority, in both sets of voters while they
//! change.
//!
//! The check runs when the first node learns of the commit. The quorum may be of the last
//! membership that this node knows up to the committed index, or of the first membership after it
//! in the node's log. The latter may be in effect already, because a membership takes effect before
//! it is committed; a further one is not written before then.

use super::{LogInvariant, LogObservation};
use crate::logs::{LogChange, Logs, Voters};

/// Name of the invariant in violations.
pub const NAME: &str = "commit on a quorum";

/// Checks each new commit index against the disks of the voters.
#[derive(Debug, Default)]
pub struct CommitOnAQuorum {
    furthest: Option<u64>,
}

impl LogInvariant for CommitOnAQuorum {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_change(&mut self, logs: &Logs, hint: &LogObservation<'_>) -> Result<(), String> {
        let LogChange::Committed(upto) = hint.happened else {
            return Ok(());
        };
        if self.furthest >= Some(upto.index) {
            return Ok(());
        }
        self.furthest = Some(upto.index);
        let log = logs.node(hint.node);
        let known = log.voters.range(..=upto.index).next_back();
        // If the last membership came with a snapshot, only the state has it and the log lacks it.
        let covered = log.purged.map_or(upto.index, |purged| purged.index);
        let covered = logs.voters.range(..=covered).next_back();
        let known = known
            .into_iter()
            .chain(covered)
            .max_by_key(|(index, _)| **index);
        let later = log.voters.range(upto.index + 1..).take(1);
        let memberships: Vec<&Voters> = known.into_iter().chain(later).map(|one| one.1).collect();
        let has = |node: &u64| logs.node(*node).has_durably(*upto);
        let agrees = |voters: &Voters| {
            let has_majority = |set: &std::collections::BTreeSet<u64>| {
                2 * set.iter().filter(|node| has(node)).count() > set.len()
            };
            voters.iter().all(has_majority)
        };
        if memberships.is_empty() {
            // The first membership is a normal entry.
            return match logs.voters.range(..=upto.index).next_back() {
                None => Ok(()),
                Some(_) => Err(format!(
                    "node {} knows {upto} to be committed, but has no membership",
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
