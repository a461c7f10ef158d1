//! Stores outcomes, so that a retry of a request returns the same outcome.

use crate::command::{Command, Stamped};
use crate::outcome::Outcome;
use crate::state::State;
use crate::state::change::{Change, Changes, RowKey, SessionRow};

/// Maximum number of stored outcomes per node, even if the node still waits for more. Beyond this
/// limit the oldest outcome is deleted. A retry of its write is still recognized, and returns
/// [`Outcome::AnsweredBefore`]. All nodes must use the same value; changing it requires a new
/// command.
pub(super) const OUTCOMES_MAX: usize = 16_384;

/// Adds the rows by which a retry of the command is recognized, and deletes rows that are no longer
/// needed.
pub(super) fn remember(state: &State, stamped: &Stamped, outcome: &Outcome, changes: &mut Changes) {
    let Some(id) = &stamped.write_id else { return };
    // No outcome is stored for the number of a removed node.
    if matches!(&stamped.command, Command::RetireNode(retired) if retired.node == id.origin) {
        return;
    }
    let sessions = &state.sessions;
    let old = sessions.row(id.origin);
    let answered_below = match old {
        Some(old) if old.boot == id.boot => old.answered_below.max(id.answered_below),
        _ => id.answered_below,
    };
    let mut row = SessionRow {
        boot: id.boot,
        answered_below,
    };
    let new_boot = old.is_some_and(|old| old.boot != id.boot);
    let mut kept = sessions.count(id.origin);
    for sequence in sessions.sequences(id.origin) {
        let over = kept >= OUTCOMES_MAX;
        if !new_boot && !over && sequence >= row.answered_below {
            break;
        }
        if !new_boot {
            row.answered_below = row.answered_below.max(sequence.saturating_add(1));
        }
        changes.push(Change::Delete(RowKey::Outcome(id.origin, sequence)));
        kept -= 1;
    }
    if old != Some(&row) {
        changes.push(Change::PutSession(id.origin, row));
    }
    changes.push(Change::PutOutcome(id.origin, id.sequence, outcome.clone()));
}
