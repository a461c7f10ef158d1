//! Leader completeness (Raft paper, figure 3): if an entry is committed in a given term, it is
//! present in the logs of the leaders of all higher-numbered terms.
//!
//! The relevant term is the one in which the entry is committed, that is the term of the committing
//! leader, which may be long after the term of the entry (section 5.4.2). A node that votes for
//! itself and commits an entry of its own in that term is that leader. If another node reports the
//! commit first, any leader so far may have committed it.
//!
//! Leaders are ordered by term and node, as openraft orders them. A leader's log is checked when
//! the leader appends its own first entry; entries purged from it are in its state.

use std::collections::BTreeMap;

use super::{LogInvariant, LogObservation};
use crate::logs::{EntryId, LogChange, Logs};

/// Name of the invariant in violations.
pub const NAME: &str = "leader completeness";

/// Term and node of a leader.
type Leader = (u64, u64);

/// Compares the log of each leader with all committed entries.
#[derive(Debug, Default)]
pub struct LeaderCompleteness {
    leaders: BTreeMap<Leader, InitialLog>,
    /// The last vote of each node since its start.
    votes: BTreeMap<u64, Leader>,
    /// Committed entries, with the last leader that can have committed each.
    committed: Vec<(Leader, EntryId)>,
}

/// The log of a leader before its own first entry.
#[derive(Debug)]
struct InitialLog {
    entries: BTreeMap<u64, EntryId>,
    purged: Option<u64>,
}

impl LogInvariant for LeaderCompleteness {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_change(&mut self, logs: &Logs, hint: &LogObservation<'_>) -> Result<(), String> {
        match hint.happened {
            LogChange::Opened(..) => {
                self.votes.remove(&hint.node);
            }
            LogChange::Voted(leader) => {
                self.votes.insert(hint.node, *leader);
            }
            LogChange::Committed(upto) => {
                let by = self.committed_by(hint.node, *upto);
                for id in &hint.committed {
                    self.committed.push((by, *id));
                    for (leader, log) in self.leaders.range((by.0, by.1 + 1)..) {
                        log.check(*leader, *id)?;
                    }
                }
            }
            _ => {}
        }
        let LogChange::Appended(written) = hint.happened else {
            return Ok(());
        };
        let leader = written.id.leader;
        if leader.1 != hint.node || self.leaders.contains_key(&leader) {
            return Ok(());
        }
        let log = logs.node(hint.node);
        let at_first = InitialLog {
            entries: log
                .entries
                .range(..written.id.index)
                .map(|(index, id)| (*index, *id))
                .collect(),
            purged: log.purged.map(|purged| purged.index),
        };
        let mut earlier = self.committed.iter().filter(|(by, _)| *by < leader);
        let checked = earlier.try_for_each(|(_, id)| at_first.check(leader, *id));
        self.leaders.insert(leader, at_first);
        checked
    }
}

impl LeaderCompleteness {
    /// The last leader that can have committed the entries up to `upto`, as `node` reports it.
    fn committed_by(&self, node: u64, upto: EntryId) -> Leader {
        let leads = upto.leader.1 == node && self.votes.get(&node) == Some(&upto.leader);
        let newest = self.leaders.last_key_value().map(|(leader, _)| *leader);
        match newest {
            Some(newest) if !leads => newest.max(upto.leader),
            _ => upto.leader,
        }
    }
}

impl InitialLog {
    fn check(&self, (term, node): Leader, id: EntryId) -> Result<(), String> {
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
