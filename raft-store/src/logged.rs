//! A command as the log holds it.

use std::fmt;
use std::sync::Arc;

use placement_model::Stamped;
use serde::{Deserialize, Serialize};

use crate::blob::Blob;

/// A command with the record that the node wrote that was asked for it. The record travels
/// untouched through the log of the leader to those of the others; what it says is read once on
/// each node. Clones share both.
// openraft asks for serde of what it carries, and nothing uses it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedCommand {
    stamped: Arc<Stamped>,
    record: Blob,
}

impl LoggedCommand {
    /// `record` is the record of the command in `stamped`.
    pub fn new(stamped: Stamped, record: Blob) -> Self {
        Self {
            stamped: Arc::new(stamped),
            record,
        }
    }

    /// The command, as apply decides it.
    pub fn stamped(&self) -> &Stamped {
        &self.stamped
    }

    /// The record of the command.
    pub fn record(&self) -> &Blob {
        &self.record
    }
}

impl fmt::Display for LoggedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stamped.fmt(f)
    }
}
