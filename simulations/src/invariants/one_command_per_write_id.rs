//! A write id names one command, in whichever places of the log it stands, and never says of its
//! own write that it was answered (`WriteId`: a retry is recognised by its id alone).

use std::collections::BTreeMap;

use placement_model::Command;

use super::{Applied, Invariant};

/// Its name in complaints.
pub const NAME: &str = "one command per write id";

/// See the module.
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
            return Err(format!("{id:?} calls itself answered"));
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
