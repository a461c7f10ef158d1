//! Leader completeness (Raft paper, figure 3): if an entry is committed in a given term, it is present
//! in the logs of the leaders of all higher-numbered terms.
//!
//! Leaders are ordered by term and node here, as openraft orders them. The log of a leader is looked at
//! when it takes its own first entry; what was purged from it is in its state.

use std::collections::BTreeMap;

use super::{Hint, LogInvariant};
use crate::logs::{EntryId, Happened, Logs};

/// Its name in complaints.
pub const NAME: &str = "leader completeness";

/// See the module.
#[derive(Debug, Default)]
pub struct LeaderCompleteness {
    leaders: BTreeMap<(u64, u64), AtFirst>,
}

/// The log of a leader before its own first entry.
#[derive(Debug)]
struct AtFirst {
    entries: BTreeMap<u64, EntryId>,
    purged: Option<u64>,
}

impl LogInvariant for LeaderCompleteness {
    fn name(&self) -> &'static str {
        NAME
    }

    fn noted(&mut self, logs: &Logs, hint: &Hint<'_>) -> Result<(), String> {
        for id in &hint.committed {
            for (leader, log) in self.leaders.range((id.leader.0, id.leader.1 + 1)..) {
                log.check(*leader, *id)?;
            }
        }
        let Happened::Appended(written) = hint.happened else {
            return Ok(());
        };
        let leader = written.id.leader;
        if leader.1 != hint.node || self.leaders.contains_key(&leader) {
            return Ok(());
        }
        let log = logs.of(hint.node);
        let at_first = AtFirst {
            entries: log
                .entries
                .range(..written.id.index)
                .map(|(index, id)| (*index, *id))
                .collect(),
            purged: log.purged.map(|purged| purged.index),
        };
        let mut earlier = logs.committed.values().filter(|id| id.leader < leader);
        let checked = earlier.try_for_each(|id| at_first.check(leader, *id));
        self.leaders.insert(leader, at_first);
        checked
    }
}

impl AtFirst {
    fn check(&self, (term, node): (u64, u64), id: EntryId) -> Result<(), String> {
        if self.purged >= Some(id.index) || self.entries.get(&id.index) == Some(&id) {
            return Ok(());
        }
        Err(match self.entries.get(&id.index) {
            Some(other) => format!(
                "{id} was committed, but node {node} began to lead in term {term} with {other}"
            ),
            None => format!(
                "{id} was committed, but node {node} began to lead in term {term} without it"
            ),
        })
    }
}
