//! What a node's disk was given and has synced is there when the log is opened again (the promise of
//! the architecture on which each acknowledgement rests).

use std::collections::BTreeMap;

use super::{Hint, LogInvariant};
use crate::logs::{EntryId, Happened, Logs};

/// Its name in complaints.
pub const NAME: &str = "the log is kept";

/// See the module.
#[derive(Debug, Default)]
pub struct LogIsKept {
    durable: BTreeMap<u64, Option<EntryId>>,
}

impl LogInvariant for LogIsKept {
    fn name(&self) -> &'static str {
        NAME
    }

    fn noted(&mut self, logs: &Logs, hint: &Hint<'_>) -> Result<(), String> {
        let log = logs.of(hint.node);
        let durable = log.durable.and_then(|index| log.entries.get(&index));
        let before = self.durable.insert(hint.node, durable.copied()).flatten();
        let (Happened::Opened(purged, _), Some(before)) = (hint.happened, before) else {
            return Ok(());
        };
        let is_purged = purged.is_some_and(|purged| purged.index >= before.index);
        if is_purged || log.entries.get(&before.index) == Some(&before) {
            return Ok(());
        }
        Err(format!(
            "node {} had {before} on disk, but its log ends with {:?}",
            hint.node,
            log.entries.last_key_value().map(|last| last.1.to_string())
        ))
    }
}
