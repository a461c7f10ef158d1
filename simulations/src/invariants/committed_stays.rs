//! A committed entry stays in the log (state machine safety, Raft paper, figure 3): no node
//! considers another entry committed at that index, and no node truncates it to make room for a
//! leader's entry, unless a snapshot on its disk covers it. [`super::commit_immutable`] checks the
//! same for applied commands; this one includes blank entries and membership changes.

use std::collections::BTreeMap;

use super::{LogInvariant, LogObservation};
use crate::logs::{LogChange, Logs};

/// Name of the invariant in violations.
pub const NAME: &str = "what is committed stays";

/// Checks each new commit index and each truncation.
#[derive(Debug, Default)]
pub struct CommittedStays {
    /// The highest index checked per node.
    looked: BTreeMap<u64, u64>,
}

impl LogInvariant for CommittedStays {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_change(&mut self, logs: &Logs, hint: &LogObservation<'_>) -> Result<(), String> {
        let upto = match hint.happened {
            LogChange::Committed(upto) => upto,
            LogChange::Truncated(_) => return nothing_committed_goes(logs, hint.node),
            LogChange::Opened(..) => {
                self.looked.remove(&hint.node);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let looked = self.looked.insert(hint.node, upto.index).unwrap_or(0);
        let here = logs
            .node(hint.node)
            .entries
            .range(looked.min(upto.index)..=upto.index);
        for (index, id) in here {
            if let Some(first) = logs.committed.get(index).filter(|first| *first != id) {
                return Err(format!(
                    "node {} knows {id} to be committed, but {first} was",
                    hint.node
                ));
            }
        }
        Ok(())
    }
}

fn nothing_committed_goes(logs: &Logs, node: u64) -> Result<(), String> {
    let log = logs.node(node);
    let covered = log.received.iter().map(|upto| upto.index).max();
    let mut gone = log
        .truncated
        .iter()
        .filter(|(index, id)| logs.committed.get(*index) == Some(id) && covered < Some(**index));
    match gone.next() {
        Some((_, id)) => Err(format!("node {node} removes {id}, which was committed")),
        None => Ok(()),
    }
}
