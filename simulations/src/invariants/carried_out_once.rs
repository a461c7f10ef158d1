//! A write is executed once, however often the log contains it: a repetition changes nothing and
//! gets the first answer, as long as its node may still ask for that answer
//! (`WriteId::answered_below`; architecture: each write exactly once).

use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::WriteId;
use placement_model::state::change::RowKey;
use placement_model::{Change, Command, Outcome};

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "carried out once";

/// Remembers the first outcome of every write id, by node and start.
#[derive(Debug, Default)]
pub struct CarriedOutOnce {
    /// The highest index that was checked.
    looked: u64,
    sessions: BTreeMap<u64, Session>,
    retired: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Session {
    boot: u64,
    answered_below: u64,
    outcomes: BTreeMap<u64, Outcome>,
}

impl Invariant for CarriedOutOnce {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        // Other invariants compare the decisions of nodes. The first node to apply an entry has
        // applied all entries before it.
        if applied.index <= self.looked {
            return Ok(());
        }
        self.looked = applied.index;
        if let Command::RetireNode(retired) = &applied.stamped.command {
            self.retired.insert(retired.node);
        }
        let Some(id) = applied.stamped.write_id else {
            return Ok(());
        };
        if self.retired.contains(&id.origin) {
            return Ok(());
        }
        self.decide(id, applied)
    }
}

impl CarriedOutOnce {
    fn decide(&mut self, id: WriteId, applied: &Applied<'_>) -> Result<(), String> {
        let outcome = applied.outcome;
        let session = self.sessions.entry(id.origin).or_default();
        if id.boot > session.boot {
            *session = Session {
                boot: id.boot,
                ..Session::default()
            };
        }
        let is_over = id.boot < session.boot || id.sequence < session.answered_below;
        if let Some(first) = (id.boot == session.boot)
            .then(|| session.outcomes.get(&id.sequence))
            .flatten()
        {
            let changes = applied.changes.iter().filter(|change| !is_memory(change));
            if changes.count() > 0 {
                return Err(format!("{id:?} was executed again"));
            }
            let forgotten = is_over && *outcome == Outcome::AnsweredBefore;
            return if outcome == first || forgotten {
                Ok(())
            } else {
                Err(format!("{id:?} first got {first:?}, now {outcome:?}"))
            };
        }
        if is_over {
            return match outcome {
                Outcome::AnsweredBefore => Ok(()),
                other => Err(format!("{id:?} is no longer valid, but got {other:?}")),
            };
        }
        if *outcome == Outcome::AnsweredBefore {
            return Err(format!(
                "{id:?} was never decided, but is reported as answered before"
            ));
        }
        session.answered_below = session.answered_below.max(id.answered_below);
        session.outcomes.insert(id.sequence, outcome.clone());
        Ok(())
    }
}

/// Whether the row is only a record of a request and not part of the cloud's data.
fn is_memory(change: &Change) -> bool {
    matches!(change.key(), RowKey::Session(_) | RowKey::Outcome(..))
}
