//! The state and the snapshots of a node that does not run, looked at and left as they are.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::Path;

use rocksdb::Cache;

use super::database::StateDatabase;
use super::snapshot_dir::{is_received, is_snapshot};
use super::snapshot_format::{self, SnapshotError};
use super::views::AppliedState;
use crate::error::OpenError;
use crate::identity::Identity;
use crate::options::StoreOptions;
use crate::tables::Table;
use crate::types::LogId;

/// A state that is only read.
pub(crate) struct StateInspector(StateDatabase);

impl StateInspector {
    pub(crate) fn open(options: &StoreOptions, cache: &Cache) -> Result<Self, OpenError> {
        StateDatabase::open_to_read(options, cache).map(Self)
    }

    /// The snapshot whose installation a crash has interrupted.
    pub(crate) fn installing(&self) -> Result<Option<String>, OpenError> {
        self.0.installing()
    }

    /// All rows, held against the digest that was written with them.
    pub(crate) fn load(&self) -> Result<AppliedState, OpenError> {
        self.0.load()
    }

    /// Each table by its name: rows that can be read, and the first reason why one cannot.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64, Option<OpenError>)> {
        let tables = Table::ALL.into_iter();
        tables
            .map(|table| {
                let (rows, wrong) = self.0.count(table);
                (table.name(), rows, wrong)
            })
            .collect()
    }
}

/// A file of the directory of snapshots.
pub(crate) struct FoundSnapshot {
    pub(crate) name: OsString,
    /// Whether it has come in, and is installed by the next start if it is newer than the state.
    pub(crate) is_received: bool,
    pub(crate) bytes: u64,
    /// What it covers and its digest, once it was read whole; `None` for what the next start
    /// removes: drafts, and snapshots that have not come in whole.
    pub(crate) holds: Option<Result<(Option<LogId>, String), SnapshotError>>,
}

/// Reads the snapshots of a node, whole.
pub(crate) fn snapshots(dir: &Path, identity: Option<Identity>) -> io::Result<Vec<FoundSnapshot>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let is_received = is_received(&path);
        let holds = (is_received || is_snapshot(&path)).then(|| read(&path, identity));
        found.push(FoundSnapshot {
            name: entry.file_name(),
            is_received,
            bytes: entry.metadata()?.len(),
            holds,
        });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn read(path: &Path, identity: Option<Identity>) -> Result<(Option<LogId>, String), SnapshotError> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let (header, _) = snapshot_format::read(&mut reader)?;
    if let Some(identity) = identity {
        header.check(&identity)?;
    }
    Ok((header.covers.last.map(LogId::from), header.digest))
}
