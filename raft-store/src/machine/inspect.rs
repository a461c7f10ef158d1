//! Reads the state and the snapshots of a stopped node without changing them.

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
    /// Name of the table.
    pub table: &'static str,
    /// Number of readable rows.
    pub rows: u64,
    /// Error of the first unreadable row.
    pub problem: Option<String>,
}

/// A file of the snapshot directory.
#[derive(Debug, Serialize)]
pub struct SnapshotPart {
    /// File name without a directory.
    pub name: String,
    /// File length in bytes.
    pub bytes: u64,
    /// Whether it was received and not installed. The next start installs it if it is newer than
    /// the state, and removes it otherwise.
    pub received: bool,
    /// The last log entry that it covers.
    pub covers: Option<WireLogId>,
    /// Digest of its rows.
    pub digest: Option<String>,
    /// Whether the whole file was read and all checksums match. Unfinished files are not read; the
    /// next start removes them.
    pub verified: bool,
}

impl StateDatabase {
    /// Counts the rows of each table.
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

/// Reads all snapshots of a node, each with its error if it is damaged.
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
