//! Synced log entries are present when the log is opened again (the architecture's promise on which
//! each acknowledgement rests).

use super::{LogInvariant, LogObservation};
use crate::logs::{LogChange, Logs};

/// Name of the invariant in violations.
pub const NAME: &str = "the log is kept";

/// Compares the log before and after each start of a node.
#[derive(Debug, Default)]
pub struct LogIsKept;

impl LogInvariant for LogIsKept {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_change(&mut self, logs: &Logs, hint: &LogObservation<'_>) -> Result<(), String> {
        let (LogChange::Opened(purged, _), Some(before)) =
            (hint.happened, logs.before_opening(hint.node))
        else {
            return Ok(());
        };
        let Some(durable) = before.durable else {
            return Ok(());
        };
        let log = logs.node(hint.node);
        let begins = purged.map_or(0, |purged| purged.index + 1).min(durable);
        for (index, id) in before.entries.range(begins..=durable) {
            let is_purged = purged.is_some_and(|purged| purged.index >= *index);
            if !is_purged && log.entries.get(index) != Some(id) {
                return Err(format!(
                    "node {} had {id} on disk, but now has {:?}",
                    hint.node,
                    log.entries.get(index).map(ToString::to_string)
                ));
            }
        }
        Ok(())
    }
}
