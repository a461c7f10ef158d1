//! Nodes with the same applied index have the same state (architecture: replicas are compared by
//! digest).

use std::collections::BTreeMap;

use placement_model::state::Digest;

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "equal digests";

/// Remembers the first digest at every index, with its node.
#[derive(Debug, Default)]
pub struct EqualDigest {
    seen: BTreeMap<u64, (u64, Digest)>,
}

impl Invariant for EqualDigest {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let digest = applied.digest;
        let first = self
            .seen
            .entry(applied.index)
            .or_insert((applied.node, digest));
        if first.1 == digest {
            Ok(())
        } else {
            Err(format!(
                "the state is {digest:?}, on node {} it was {:?}",
                first.0, first.1
            ))
        }
    }
}
