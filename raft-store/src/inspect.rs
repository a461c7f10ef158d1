//! Reads the data directory of a stopped node without changing it; damaged parts are reported and
//! skipped.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use placement_model::types::Timestamp;
use rocksdb::Cache;
use serde::Serialize;

use crate::data_dir::{self, DirLock, LOG_DIR, SNAPSHOT_DIR, STATE_DIR};
use crate::error::{OpenError, Result};
use crate::identity::Identity;
use crate::log::{LogDatabase, LogLine};
use crate::machine::{self, AppliedState, SnapshotError, SnapshotPart, StateDatabase, TablePart};
use crate::options::StoreOptions;
use crate::rocks;
use crate::store::written_in;
use crate::types::Payload;
use crate::wire::{WireLogId, WireMembership, WireVote};

/// Content of a data directory.
#[derive(Debug, Default, Serialize)]
pub struct Inspection {
    /// Path of the directory.
    pub dir: PathBuf,
    /// The node that owns it; `None` if no node does, or if the file `identity` cannot be read.
    pub identity: Option<Identity>,
    /// Number of starts of the node.
    pub boots: u64,
    /// Why the node is quarantined; `None` if it is not.
    pub left: Option<String>,
    /// The entries that an operator skipped.
    pub skipped: Vec<String>,
    /// How this node became the only member of its cluster; empty if it did not.
    pub recovered: Vec<String>,
    /// The log, as far as it can be read.
    pub log: Option<LogPart>,
    /// The state, if it is intact.
    pub state: Option<StatePart>,
    /// The files of the snapshot directory.
    pub snapshots: Vec<SnapshotPart>,
    /// Operations that a crash interrupted and the next start finishes.
    pub unfinished: Vec<String>,
    /// The problems found, in reading order.
    pub problems: Vec<Problem>,
}

/// A problem with a part of a data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A file or directory below the data directory.
    pub part: String,
    /// Description of the problem.
    pub words: String,
}

/// Result of reading the Raft log.
#[derive(Debug, Default, Serialize)]
pub struct LogPart {
    /// The last purged entry: the log begins after it.
    pub purged: Option<WireLogId>,
    /// Id of the last entry.
    pub last: Option<WireLogId>,
    /// The last entry that the node recorded as committed. Later entries may be committed, too.
    pub committed: Option<WireLogId>,
    /// The last vote given.
    pub vote: Option<WireVote>,
    /// Number of readable entries.
    pub entries: u64,
    /// Total length of their rows in bytes.
    pub bytes: u64,
    /// The last membership in the log, and the index of its entry.
    pub membership: Option<(u64, WireMembership)>,
}

/// Result of reading the state.
#[derive(Debug, Serialize)]
pub struct StatePart {
    /// The last entry contained in the rows on disk. The next start applies later entries again.
    pub applied: Option<WireLogId>,
    /// The digest of the rows: equal on all nodes at an equal index.
    pub digest: String,
    /// Feature level of the cluster.
    pub level: u32,
    /// The greatest timestamp of a command, in microseconds since 1970-01-01 UTC.
    pub last_stamp: Option<Timestamp>,
    /// The members after that entry.
    pub membership: WireMembership,
}

impl Inspection {
    fn wrong(&mut self, part: impl Into<String>, words: impl Display) {
        self.problems.push(Problem {
            part: part.into(),
            words: words.to_string(),
        });
    }

    /// The value that was read. After an error, records a problem and returns the default.
    fn or_default<T: Default>(&mut self, part: &str, read: Result<T, impl Display>) -> T {
        self.or_wrong(part, read).unwrap_or_default()
    }

    /// Opens the database in a directory. A missing database is a problem unless the node has never
    /// started.
    fn database<T>(&mut self, name: &str, open: impl FnOnce() -> Result<T>) -> Option<T> {
        if rocks::database_exists(&self.dir.join(name)) {
            return self.or_wrong(name, open());
        }
        if self.boots > 0 {
            self.wrong(name, "it contains no database");
        }
        None
    }

    /// The value that was read. After an error, records a problem and returns `None`.
    fn or_wrong<T>(&mut self, part: &str, read: Result<T, impl Display>) -> Option<T> {
        read.map_err(|error| self.wrong(part, error)).ok()
    }
}

/// Reads a whole data directory.
///
/// # Errors
/// [`OpenError::Missing`], or [`OpenError::Locked`] while the node runs. Every other error is a
/// [`Problem`] in the result.
pub fn inspect(dir: &Path) -> Result<Inspection> {
    let _lock = enter(dir)?;
    let mut found = Inspection {
        dir: dir.to_owned(),
        ..Inspection::default()
    };
    let identity = found.or_wrong("identity", data_dir::identity(dir));
    found.identity = identity.flatten();
    if identity == Some(None) {
        found.wrong("identity", "it is missing: no node owns this directory");
    }
    found.boots = found.or_default("boot", data_dir::boots(dir));
    match data_dir::check_left(dir) {
        Err(OpenError::Left(_, reason)) => {
            found.wrong("left", format!("the node is quarantined: {reason}"));
            found.left = Some(reason);
        }
        other => drop(found.or_wrong("left", other)),
    }
    found.skipped = found.or_default("skipped", data_dir::lines(dir, data_dir::SKIPPED));
    found.recovered = found.or_default("recovered", data_dir::lines(dir, data_dir::RECOVERED));
    let snapshots = machine::snapshots(&dir.join(SNAPSHOT_DIR), found.identity);
    look_at_snapshots(&mut found, snapshots);
    let options = StoreOptions::new(dir);
    let cache = options.cache();
    let applied = look_at_state(&mut found, &options, &cache);
    look_at_log(&mut found, &options, &cache, applied.as_ref());
    check_starts(&mut found, applied.as_ref());
    Ok(found)
}

/// Calls `each` for the existing entries `from..=to` of the log, in order.
///
/// # Errors
/// The errors of [`inspect()`], and any [`OpenError`] if the log cannot be opened.
pub fn inspect_log(dir: &Path, from: u64, to: u64, each: impl FnMut(LogLine)) -> Result<()> {
    let _lock = enter(dir)?;
    let options = StoreOptions::new(dir);
    let log = LogDatabase::open_to_read(&options, &options.cache())?;
    log.lines(from, to).for_each(each);
    Ok(())
}

/// Counts the rows of each table.
///
/// # Errors
/// The errors of [`inspect_log`].
pub fn inspect_rows(dir: &Path) -> Result<Vec<TablePart>> {
    let _lock = enter(dir)?;
    let options = StoreOptions::new(dir);
    let state = StateDatabase::open_to_read(&options, &options.cache())?;
    Ok(state.tables())
}

fn enter(dir: &Path) -> Result<Option<DirLock>> {
    if !dir.is_dir() {
        return Err(OpenError::Missing(dir.to_owned()));
    }
    data_dir::lock_to_read(dir)
}

fn look_at_snapshots(
    found: &mut Inspection,
    snapshots: io::Result<Vec<(SnapshotPart, Option<SnapshotError>)>>,
) {
    let snapshots = match snapshots {
        // A node that has never started has no snapshot directory.
        Err(error) if error.kind() == io::ErrorKind::NotFound && found.boots == 0 => return,
        other => found.or_default(SNAPSHOT_DIR, other),
    };
    for (part, wrong) in snapshots {
        if let Some(error) = wrong {
            found.wrong(format!("{SNAPSHOT_DIR}/{}", part.name), error);
        }
        found.snapshots.push(part);
    }
}

fn look_at_state(
    found: &mut Inspection,
    options: &StoreOptions,
    cache: &Cache,
) -> Option<AppliedState> {
    let state = found.database(STATE_DIR, || StateDatabase::open_to_read(options, cache))?;
    if let Some(name) = found.or_wrong(STATE_DIR, state.installing())? {
        let verified = |part: &SnapshotPart| part.name == name && part.verified;
        if found.snapshots.iter().any(verified) {
            found.unfinished.push(format!(
                "a crash interrupted the installation of {name}; the next start finishes it"
            ));
        } else {
            let words = format!("{name} is partly installed and can no longer be read");
            found.wrong(STATE_DIR, words);
        }
        return None;
    }
    let applied = found.or_wrong(STATE_DIR, state.load())?;
    let unreadable = state.packs(0, u64::MAX, false).find_map(Result::err);
    if let Some(error) = unreadable {
        let words = format!("the ledger cannot be read: {error}");
        found.wrong(STATE_DIR, words);
    }
    let last = applied.last.as_ref().map(WireLogId::from);
    let is_newer = |part: &&SnapshotPart| part.received && part.covers > last;
    if let Some(part) = found.snapshots.iter().find(is_newer) {
        found.unfinished.push(format!(
            "{} was received but not installed before a crash; the next start installs it",
            part.name
        ));
    }
    found.state = Some(StatePart {
        applied: last,
        digest: applied.digest().to_string(),
        level: applied.cluster.level().0,
        last_stamp: applied.last_stamp,
        membership: WireMembership::from(applied.membership.membership()),
    });
    Some(applied)
}

fn look_at_log(
    found: &mut Inspection,
    options: &StoreOptions,
    cache: &Cache,
    applied: Option<&AppliedState>,
) {
    let log = found.database(LOG_DIR, || LogDatabase::open_to_read(options, cache));
    let Some(log) = log else { return };
    let mut part = LogPart::default();
    let mut first = 0;
    if let Some(ends) = found.or_wrong(LOG_DIR, log.ends()) {
        found.or_wrong(LOG_DIR, log.check_nothing_lost(&ends));
        first = ends.purged.map_or(0, |id| id.index + 1);
        part.purged = ends.purged.as_ref().map(WireLogId::from);
        part.last = ends.last.as_ref().map(WireLogId::from);
        part.committed = ends.committed.as_ref().map(WireLogId::from);
        part.vote = ends.vote.as_ref().map(WireVote::from);
    }
    let applied = applied.and_then(|applied| applied.last);
    let mut expected = first;
    let mut before = part.purged;
    for line in log.lines(first, u64::MAX - 1) {
        let index = line.index;
        if index != expected {
            let last = index.wrapping_sub(1);
            found.wrong(LOG_DIR, format!("entries {expected} to {last} are missing"));
        }
        expected = index.saturating_add(1);
        let entry = match line.entry {
            Ok(entry) => entry,
            Err(reason) => {
                found.wrong(LOG_DIR, format!("entry {index}: {reason}"));
                continue;
            }
        };
        part.entries += 1;
        part.bytes += line.bytes as u64;
        let there = entry.log_id;
        let id = WireLogId::from(&there);
        if before.is_some_and(|before| (before.term, before.node) > (id.term, id.node)) {
            let words = format!("entry {there} has an earlier term than the entry before it");
            found.wrong(LOG_DIR, words);
        }
        before = Some(id);
        if let Some(applied) = applied.filter(|applied| applied.index == index)
            && applied != there
        {
            found.unfinished.push(format!(
                "the state contains entry {applied}, but the log contains {there} at the same index: a \
                 crash undid a truncation of the log. The next start discards all entries of the \
                 log, which then begins after the state"
            ));
        }
        if let Payload::Membership(membership) = &entry.payload {
            part.membership = Some((index, WireMembership::from(membership)));
        }
    }
    found.log = Some(part);
}

fn check_starts(found: &mut Inspection, applied: Option<&AppliedState>) {
    let Some(identity) = found.identity else {
        return;
    };
    let log = found.log.as_ref();
    let is_used = log.is_some_and(|log| log.last.is_some() || log.vote.is_some());
    let written = applied.and_then(|applied| written_in(applied, identity));
    let checked = data_dir::check_boots(&found.dir, identity, is_used, written);
    found.or_wrong("boot", checked);
}
