//! Digests at places of the log that are the same for all nodes. By comparing them, nodes notice
//! that one of them has come to another state.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use placement_model::state::Digest;

/// A digest is kept of the state after each so manieth entry.
const EVERY: u64 = 64;
/// How many are kept. Nodes of which one lags by more than all of them compare nothing.
const KEPT: usize = 1024;

/// The latest digests of this node. Cheap to clone; forgotten by a restart.
#[derive(Debug, Clone, Default)]
pub struct Checkpoints {
    digests: Arc<Mutex<BTreeMap<u64, Digest>>>,
}

impl Checkpoints {
    /// Keeps the digest after an entry, if it is one of those that are compared.
    pub(super) fn note(&self, index: u64, digest: impl FnOnce() -> Digest) {
        if !index.is_multiple_of(EVERY) {
            return;
        }
        let mut digests = self.digests.lock();
        digests.insert(index, digest());
        while digests.len() > KEPT {
            digests.pop_first();
        }
    }

    /// The digest after an entry, if it is kept.
    pub fn at(&self, index: u64) -> Option<Digest> {
        self.digests.lock().get(&index).copied()
    }

    /// The latest of them, `most` at most, with their entries.
    pub fn newest(&self, most: usize) -> Vec<(u64, Digest)> {
        let digests = self.digests.lock();
        let newest = digests.iter().rev().take(most);
        newest.map(|(index, digest)| (*index, *digest)).collect()
    }

    /// The latest entry after which the digest is kept.
    pub fn latest(&self) -> Option<u64> {
        let digests = self.digests.lock();
        digests.last_key_value().map(|(index, _)| *index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_the_places_that_all_nodes_have_are_kept() {
        let checkpoints = Checkpoints::default();
        let digest = |index: u64| Digest {
            sum: index.into(),
            bytes: 0,
        };
        let last = EVERY * (KEPT as u64 + 10) + 5;
        for index in 1..=last {
            checkpoints.note(index, || digest(index));
        }
        let latest = EVERY * (KEPT as u64 + 10);
        assert_eq!(checkpoints.at(latest), Some(digest(latest)));
        assert_eq!(checkpoints.at(last), None);
        assert_eq!(checkpoints.at(EVERY), None, "long ago");
        assert_eq!(checkpoints.latest(), Some(latest));
        let newest = checkpoints.newest(2);
        assert_eq!(newest[0].0, latest);
        assert_eq!(newest[1].0, latest - EVERY);
    }
}
