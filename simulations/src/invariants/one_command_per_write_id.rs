//! A write id identifies one command, however often the log contains it, and never marks its own
//! write as answered (`WriteId`: a retry is recognized by its id alone).

use std::collections::BTreeMap;

use placement_model::Command;

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "one command per write id";

/// Remembers the command of every write id.
#[derive(Debug, Default)]
pub struct OneCommandPerWriteId {
    commands: BTreeMap<(u64, u64, u64), (u64, Command)>,
}

impl Invariant for OneCommandPerWriteId {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let Some(id) = applied.stamped.write_id else {
            return Ok(());
        };
        if id.answered_below > id.sequence {
            return Err(format!("{id:?} marks itself as answered"));
        }
        let command = &applied.stamped.command;
        let (place, first) = self
            .commands
            .entry((id.origin, id.boot, id.sequence))
            .or_insert_with(|| (applied.index, command.clone()));
        if first == command {
            return Ok(());
        }
        Err(format!(
            "{id:?} is {command:?}, but at {place} it was {first:?}"
        ))
    }
}
