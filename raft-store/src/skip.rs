//! The last resort for an entry that no node can apply: an operator replaces it by a blank one on
//! every node.
//!
//! One node cannot check that the operator does this on all nodes, so the operator is responsible
//! for it. The call rejects entries that must never be skipped: entries that the state already
//! contains, entries of another term, and entries without a command.

use std::path::Path;

use crate::base::Base;
use crate::data_dir;
use crate::error::{OpenError, Result};
use crate::log::LogDatabase;
use crate::machine::{SnapshotDir, StateMachine};
use crate::options::StoreOptions;
use crate::types::{LogId, Payload};

/// Why an entry is not skipped. The log is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SkipError {
    /// The data directory cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Skipping would be unsafe.
    #[error("nothing is skipped: {0}")]
    Refused(String),
}

/// Description of a skipped entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedEntry {
    /// Its log id, which the blank entry keeps.
    pub id: LogId,
    /// The skipped command, as text.
    pub command: String,
}

/// Replaces the command at `index` by a blank entry, in the log of a stopped node. The log id
/// stays, so that the logs of all nodes agree if the same is done on each.
///
/// # Errors
/// [`SkipError::Open`], including [`OpenError::Locked`] while the node runs, or
/// [`SkipError::Refused`].
pub fn skip_entry(
    options: &StoreOptions,
    index: u64,
    term: u64,
) -> Result<SkippedEntry, SkipError> {
    let dir = &options.dir;
    let base = Base::enter(options)?;
    let machine = StateMachine::open(&base, SnapshotDir::open(&base)?)?;
    let applied = machine.views().current().last;
    let (log, _) = LogDatabase::open(options, &base.cache)?;
    let refused = |reason: String| Err(SkipError::Refused(reason));
    if let Some(applied) = applied.filter(|applied| applied.index >= index) {
        return refused(format!(
            "the state of this node already contains entry {index}; its last entry is {applied}"
        ));
    }
    let Some(entry) = log.entry_at(index)? else {
        return refused(format!("the log of this node has no entry {index}"));
    };
    let id = entry.log_id;
    if id.committed_leader_id().term != term {
        return refused(format!(
            "entry {index} has the log id {id}, which is not of term {term}"
        ));
    }
    let command = match &entry.payload {
        Payload::Normal(logged) => logged.to_string(),
        Payload::Blank => return refused(format!("entry {id} is blank already")),
        Payload::Membership(_) => {
            return refused(format!(
                "entry {id} changes the membership; without it the nodes would disagree about the \
                 members"
            ));
        }
    };
    // The action is recorded before the log is changed.
    data_dir::add_line(dir, data_dir::SKIPPED, &format!("entry {id}: {command}"))?;
    log.make_blank(base.version(), id)?;
    Ok(SkippedEntry { id, command })
}

/// The entries skipped in a data directory so far, as text.
///
/// # Errors
/// [`OpenError::Io`].
pub fn skipped(dir: &Path) -> Result<Vec<String>> {
    data_dir::lines(dir, data_dir::SKIPPED)
}
