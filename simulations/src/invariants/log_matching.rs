//! Log matching (Raft paper, figure 3): if two logs contain an entry with the same index and term,
//! the logs are identical in all entries up through that index.
//!
//! An entry is identified by its index and its leader (term and node). So it suffices that all
//! nodes hold the same content under one id, after the same preceding entry.

use std::collections::BTreeMap;

use super::{LogInvariant, LogObservation};
use crate::logs::{EntryId, LogChange, Logs, WrittenEntry};

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

    fn check_change(&mut self, logs: &Logs, hint: &LogObservation<'_>) -> Result<(), String> {
        match hint.happened {
            LogChange::Appended(written) => self.check_entry(logs, hint.node, written),
            LogChange::Opened(_, entries) => entries
                .iter()
                .try_for_each(|written| self.check_entry(logs, hint.node, written)),
            _ => Ok(()),
        }
    }
}

impl LogMatching {
    fn check_entry(
        &mut self,
        logs: &Logs,
        node: u64,
        written: &WrittenEntry,
    ) -> Result<(), String> {
        let WrittenEntry { id, digest, .. } = written;
        let before = logs.node(node).before(id.index);
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
