//! Detects that this node's state differs from the others' state.
//!
//! All nodes apply the same log, so after the same entry their states have the same digest. A bit
//! flip in memory or a bug can make a state differ. Nothing else would reveal this: the node would
//! continue to answer, with wrong data. So each node compares digests with the other voters, and a
//! node that differs from a majority is quarantined. If no majority agrees, it is unknown which
//! state is right, and the difference is only logged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use placement_model::state::Digest;
use tokio::time::sleep;

use crate::running::Running;
use placement_base::log_messages::log;
use placement_peer::transport::method::Method;

/// How often a node compares its state with the others'.
const EVERY: Duration = Duration::from_secs(5);

/// Compares periodically, until this node differs from a majority.
pub(crate) async fn watch(node: Arc<Running>) {
    let replica = &node.replica;
    let checkpoints = replica.views.checkpoints();
    let mut logged = BTreeSet::new();
    let mut latest = None;
    loop {
        // Compare the checkpoint that was the latest in the previous round: the others have reached
        // it by now.
        let index = std::mem::replace(&mut latest, checkpoints.latest());
        if let Some(index) = index
            && let Some(mine) = checkpoints.digest_after(index)
        {
            let mut others = replica.voters();
            others.remove(&replica.me);
            // Nodes that are unreachable or have not reached this checkpoint do not count.
            let theirs: BTreeMap<u64, Option<String>> =
                node.ask(others, Method::Checkpoint, &index).await;
            let theirs: BTreeMap<u64, String> = theirs
                .into_iter()
                .filter_map(|(id, digest)| Some((id, digest?)))
                .collect();
            for (other, _) in theirs.iter().filter(|(_, theirs)| differs(mine, theirs)) {
                if logged.insert(*other) {
                    log!(
                        STATE_DIFFERS,
                        other,
                        index,
                        "another node's state differs from this node's: one of them is wrong"
                    );
                }
            }
            if is_outvoted(replica.voters().len(), mine, &theirs) {
                return replica.quarantine_as_diverged(index);
            }
        }
        sleep(EVERY).await;
    }
}

fn differs(mine: Digest, theirs: &str) -> bool {
    mine.agrees_with(theirs) == Some(false)
}

/// Whether a majority of the voters agrees on a digest that differs from this node's.
fn is_outvoted(voters: usize, mine: Digest, theirs: &BTreeMap<u64, String>) -> bool {
    let mut camps: BTreeMap<&str, usize> = BTreeMap::new();
    for digest in theirs.values().filter(|theirs| differs(mine, theirs)) {
        *camps.entry(digest).or_default() += 1;
    }
    camps.values().any(|size| *size > voters / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(sum: u128) -> Digest {
        Digest { sum, bytes: 0 }
    }

    #[test]
    fn only_an_agreeing_majority_quarantines_a_node() {
        let digests = |all: &[(u64, u128)]| -> BTreeMap<u64, String> {
            let all = all.iter();
            all.map(|(id, sum)| (*id, digest(*sum).to_string()))
                .collect()
        };
        let wrong =
            |voters, theirs: &[(u64, u128)]| is_outvoted(voters, digest(1), &digests(theirs));
        assert!(wrong(3, &[(2, 7), (3, 7)]));
        assert!(wrong(5, &[(2, 7), (3, 7), (4, 1), (5, 7)]));
        assert!(!wrong(3, &[(2, 1), (3, 7)]), "the third is the one");
        assert!(!wrong(3, &[(2, 7), (3, 8)]), "three states");
        assert!(!wrong(3, &[(2, 7)]), "the third is away");
        assert!(!wrong(2, &[(2, 7)]), "one against one");
        let another_form = BTreeMap::from([(2, "99.00".to_owned()), (3, "99.00".to_owned())]);
        assert!(
            !is_outvoted(3, digest(1), &another_form),
            "another version's form"
        );
    }
}
