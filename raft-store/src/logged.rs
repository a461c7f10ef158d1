//! A command as stored in the log.

use std::fmt;
use std::sync::Arc;

use placement_model::Stamped;
use serde::{Deserialize, Serialize};

use crate::blob::Blob;

/// A command and its encoded record. The node that received the request encodes the record, which
/// is then copied unchanged into the logs of the leader and of the other nodes. Each node decodes
/// it once. Clones share command and record.
// openraft requires serde for payloads, but does not use it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedCommand {
    stamped: Arc<Stamped>,
    record: Blob,
}

impl LoggedCommand {
    /// `record` is the encoded command of `stamped`.
    pub fn new(stamped: Stamped, record: Blob) -> Self {
        Self {
            stamped: Arc::new(stamped),
            record,
        }
    }

    /// The decoded command with its timestamp.
    pub fn stamped(&self) -> &Stamped {
        &self.stamped
    }

    /// The command as it was encoded.
    pub fn record(&self) -> &Blob {
        &self.record
    }
}

impl fmt::Display for LoggedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stamped.fmt(f)
    }
}
