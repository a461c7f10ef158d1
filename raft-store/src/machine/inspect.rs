//! The state and the snapshots of a node that does not run, read and not changed.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::database::StateDatabase;
use super::snapshot_dir::{is_received, is_snapshot};
use super::snapshot_file::SnapshotFile;
use super::snapshot_format::{self, Header, SnapshotError};
use crate::identity::Identity;
use crate::tables::Table;
use crate::wire::WireLogId;

/// A table of the state.
#[derive(Debug, Serialize)]
pub struct TablePart {
    /// Its name.
    pub table: &'static str,
    /// Rows that can be read.
    pub rows: u64,
    /// Why a row cannot be read, for the first such.
    pub problem: Option<String>,
}

/// A file of the directory of snapshots.
#[derive(Debug, Serialize)]
pub struct SnapshotPart {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Whether it has come in and was not installed: the next start does that if it is newer than
    /// the state, and removes it otherwise.
    pub received: bool,
    /// The last entry that it covers.
    pub covers: Option<WireLogId>,
    /// The digest of its rows.
    pub digest: Option<String>,
    /// Whether it was read whole and every checksum is right. A draft, which the next start
    /// removes, was not looked at.
    pub verified: bool,
}

impl StateDatabase {
    /// How many rows each table has.
    pub(crate) fn tables(&self) -> Vec<TablePart> {
        let part = |table: Table| {
            let (mut rows, mut problem) = (0, None);
            for row in self.rows_of(table) {
                match row {
                    Ok(_) => rows += 1,
                    Err(error) => problem = problem.or(Some(error.to_string())),
                }
            }
            let table = table.name();
            TablePart {
                table,
                rows,
                problem,
            }
        };
        Table::ALL.into_iter().map(part).collect()
    }
}

/// Reads the snapshots of a node, whole, with what is wrong with each.
pub(crate) fn snapshots(
    dir: &Path,
    identity: Option<Identity>,
) -> io::Result<Vec<(SnapshotPart, Option<SnapshotError>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let received = is_received(&path);
        let is_whole = received || is_snapshot(&path);
        let (header, wrong) = match is_whole.then(|| read(&path, identity)) {
            Some(Ok(header)) => (Some(header), None),
            other => (None, other.and_then(Result::err)),
        };
        let part = SnapshotPart {
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: entry.metadata()?.len(),
            received,
            covers: header.as_ref().and_then(|header| header.covers.last),
            verified: header.is_some(),
            digest: header.map(|header| header.digest),
        };
        found.push((part, wrong));
    }
    found.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    Ok(found)
}

fn read(path: &Path, identity: Option<Identity>) -> Result<Header, SnapshotError> {
    let (header, _) = snapshot_format::read(&mut SnapshotFile::open(path)?.reader())?;
    identity.map_or(Ok(()), |identity| header.check(&identity))?;
    Ok(header)
}
