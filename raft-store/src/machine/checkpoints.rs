//! State digests at fixed log positions. Nodes compare them to detect that one of them has
//! diverged.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use placement_model::state::Digest;

/// A digest is recorded after every entry whose index is a multiple of this.
const EVERY: u64 = 64;
/// Number of recorded digests. A node that lags further behind has no digest in common with another
/// node.
const KEPT: usize = 1024;

/// The latest digests of this node. Cheap to clone; lost on restart.
#[derive(Debug, Clone, Default)]
pub struct Checkpoints {
    digests: Arc<Mutex<BTreeMap<u64, Digest>>>,
}

impl Checkpoints {
    /// Records the digest after an entry if its index is a checkpoint.
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

    /// The digest after an entry, if recorded.
    pub fn digest_after(&self, index: u64) -> Option<Digest> {
        self.digests.lock().get(&index).copied()
    }

    /// Up to `most` of the latest digests with their indexes, newest first.
    pub fn newest(&self, most: usize) -> Vec<(u64, Digest)> {
        let digests = self.digests.lock();
        let newest = digests.iter().rev().take(most);
        newest.map(|(index, digest)| (*index, *digest)).collect()
    }

    /// The index of the latest recorded digest.
    pub fn latest(&self) -> Option<u64> {
        let digests = self.digests.lock();
        digests.last_key_value().map(|(index, _)| *index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_checkpoints_are_kept() {
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
        assert_eq!(checkpoints.digest_after(latest), Some(digest(latest)));
        assert_eq!(checkpoints.digest_after(last), None);
        assert_eq!(checkpoints.digest_after(EVERY), None, "long ago");
        assert_eq!(checkpoints.latest(), Some(latest));
        let newest = checkpoints.newest(2);
        assert_eq!(newest[0].0, latest);
        assert_eq!(newest[1].0, latest - EVERY);
    }
}
