//! The last resort for an entry that no node can apply: it is made blank, on every node, by hand.
//!
//! The operator answers for it. What is refused here is what cannot be right on any node: an entry
//! that the state has already, one of another term, one that is no command. That it is done on all
//! nodes or on none cannot be seen from one of them.

use std::path::Path;

use crate::base::Base;
use crate::data_dir;
use crate::error::{OpenError, Result};
use crate::log::LogDatabase;
use crate::machine::{SnapshotDir, StateMachine};
use crate::options::StoreOptions;
use crate::types::{LogId, Payload};

/// Why an entry is not skipped. The log is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SkipError {
    /// The data directory cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It would be wrong.
    #[error("nothing is skipped: {0}")]
    Refused(String),
}

/// An entry that was made blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its place, which it keeps.
    pub id: LogId,
    /// What it was.
    pub command: String,
}

/// Makes the command at `index` blank, in the log of a node that does not run. It keeps its place,
/// so that the log is that of the other nodes if the same is done there.
///
/// # Errors
/// [`SkipError::Open`], among them [`OpenError::Locked`] while the node runs, or
/// [`SkipError::Refused`].
pub fn skip_entry(options: &StoreOptions, index: u64, term: u64) -> Result<Skipped, SkipError> {
    let dir = &options.dir;
    let base = Base::enter(options)?;
    let machine = StateMachine::open(&base, SnapshotDir::open(&base)?)?;
    let applied = machine.views().current().last;
    let (log, _) = LogDatabase::open(options, &base.cache)?;
    let refused = |reason: String| Err(SkipError::Refused(reason));
    if let Some(applied) = applied.filter(|applied| applied.index >= index) {
        return refused(format!(
            "the state of this node has entry {index} already, it is at {applied}"
        ));
    }
    let Some(entry) = log.entry_at(index)? else {
        return refused(format!("the log of this node has no entry {index}"));
    };
    let id = entry.log_id;
    if id.committed_leader_id().term != term {
        return refused(format!("entry {index} is {id}, not of term {term}"));
    }
    let command = match &entry.payload {
        Payload::Normal(logged) => logged.to_string(),
        Payload::Blank => return refused(format!("entry {id} is blank already")),
        Payload::Membership(_) => {
            return refused(format!(
                "entry {id} is a change of the membership, without which the nodes would not agree \
                 on who they are"
            ));
        }
    };
    // First the trace, then the change.
    data_dir::add_line(dir, data_dir::SKIPPED, &format!("entry {id}: {command}"))?;
    log.make_blank(base.version(), id)?;
    Ok(Skipped { id, command })
}

/// What was skipped in a data directory so far, as text.
///
/// # Errors
/// [`OpenError::Io`].
pub fn skipped(dir: &Path) -> Result<Vec<String>> {
    data_dir::lines(dir, data_dir::SKIPPED)
}
