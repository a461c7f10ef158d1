//! What was committed at a place of the log stays there (state machine safety, Raft paper, figure
//! 3): no node knows another entry to be committed at that place, and none removes the one that
//! was, to make room for that of a leader, unless a snapshot on its disk covers it.
//! [`super::commit_immutable`] says the same of what is applied; here blank entries and changes of
//! members count too.

use std::collections::BTreeMap;

use super::{Hint, LogInvariant};
use crate::logs::{Happened, Logs};

/// Its name in complaints.
pub const NAME: &str = "what is committed stays";

/// See the module.
#[derive(Debug, Default)]
pub struct CommittedStays {
    /// Up to where each node was looked at.
    looked: BTreeMap<u64, u64>,
}

impl LogInvariant for CommittedStays {
    fn name(&self) -> &'static str {
        NAME
    }

    fn noted(&mut self, logs: &Logs, hint: &Hint<'_>) -> Result<(), String> {
        let upto = match hint.happened {
            Happened::Committed(upto) => upto,
            Happened::Truncated(_) => return nothing_committed_goes(logs, hint.node),
            Happened::Opened(..) => {
                self.looked.remove(&hint.node);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let looked = self.looked.insert(hint.node, upto.index).unwrap_or(0);
        let here = logs
            .of(hint.node)
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
    let log = logs.of(node);
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
