//! Log matching (Raft paper, figure 3): if two logs contain an entry with the same index and term,
//! the logs are identical in all entries up through that index.
//!
//! An entry is identified by its index and its leader (term and node). So it suffices that all
//! nodes hold the same content under one id, after the same preceding entry.

use std::collections::BTreeMap;

use super::{Hint, LogInvariant};
use crate::logs::{EntryId, Happened, Logs, Written};

/// Name of the invariant in violations.
pub const NAME: &str = "log matching";

/// Remembers the content and the predecessor of every entry.
#[derive(Debug, Default)]
pub struct LogMatching {
    /// For each entry: the digest of its content, and the preceding entry once it is known.
    known: BTreeMap<EntryId, (u64, Option<EntryId>)>,
}

impl LogInvariant for LogMatching {
    fn name(&self) -> &'static str {
        NAME
    }

    fn noted(&mut self, logs: &Logs, hint: &Hint<'_>) -> Result<(), String> {
        match hint.happened {
            Happened::Appended(written) => self.look(logs, hint.node, written),
            Happened::Opened(_, entries) => entries
                .iter()
                .try_for_each(|written| self.look(logs, hint.node, written)),
            _ => Ok(()),
        }
    }
}

impl LogMatching {
    fn look(&mut self, logs: &Logs, node: u64, written: &Written) -> Result<(), String> {
        let Written { id, digest, .. } = written;
        let before = logs.of(node).before(id.index);
        let known = self.known.entry(*id).or_insert((*digest, before));
        if known.0 != *digest {
            return Err(format!(
                "node {node} has different content in entry {id} than others"
            ));
        }
        match (known.1, before) {
            (Some(there), Some(here)) if there != here => Err(format!(
                "entry {id} follows {here} on node {node}, and {there} on another"
            )),
            (None, Some(_)) => {
                known.1 = before;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
