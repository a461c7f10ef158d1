//! Snapshot files: read while sending, written while receiving.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openraft::alias::SnapshotOf;

use super::views::AppliedState;
use crate::files;
use crate::synced_file::SyncedFile;
use crate::types::{SnapshotMeta, TypeConfig};

/// Name prefix of a file that is being received.
pub(super) const INCOMING: &str = "incoming-";

/// A snapshot for openraft: its coverage and its data.
pub type Snapshot = SnapshotOf<TypeConfig, SnapshotData>;

/// The data of a snapshot.
#[derive(Debug, Clone)]
pub enum SnapshotData {
    /// A state of this node in memory. It is written to a file when it is sent.
    State(Arc<AppliedState>),
    /// A file that was received or is being sent.
    File(SnapshotFile),
}

impl AppliedState {
    /// A snapshot of this state in memory.
    pub fn to_snapshot(self: &Arc<Self>) -> Snapshot {
        Snapshot {
            meta: self.covers(),
            snapshot: SnapshotData::State(Arc::clone(self)),
        }
    }
}

/// A snapshot in a file.
#[derive(Debug, Clone)]
pub(crate) struct WrittenSnapshot {
    pub(crate) meta: SnapshotMeta,
    pub(crate) file: SnapshotFile,
}

/// An open snapshot file. The handle stays readable when a newer snapshot replaces the file.
#[derive(Debug, Clone)]
pub struct SnapshotFile {
    pub(super) path: PathBuf,
    file: Arc<File>,
    length: u64,
    /// The content of the file, if it was verified.
    pub(super) verified: Option<Arc<AppliedState>>,
    /// Removes the file when dropped, if the file was received and is not installed.
    _draft: Option<Arc<Draft>>,
}

impl SnapshotFile {
    /// Opens a file for reading.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::from_file(path, File::open(path)?)
    }

    /// Wraps a file that is already open.
    pub(super) fn from_file(path: &Path, file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file: Arc::new(file),
            length,
            verified: None,
            _draft: None,
        })
    }

    /// The same file under its new path.
    pub(super) fn renamed(&self, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            verified: None,
            _draft: None,
            ..self.clone()
        }
    }

    /// Reads the file from its beginning, even if a newer file has replaced it in the directory.
    pub(super) fn reader(&self) -> impl Read + Send + use<> {
        let from_start = FromStart {
            file: Arc::clone(&self.file),
            position: 0,
        };
        BufReader::with_capacity(1 << 20, from_start)
    }

    /// Length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// File name without the directory.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Path of the file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads up to `max` bytes from `offset`; fewer only at the end of the file, none beyond it.
    ///
    /// # Errors
    /// File system errors.
    pub fn read_at(&self, offset: u64, max: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; max.min(left)];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

/// Reads a shared file with its own position and without another descriptor.
struct FromStart {
    file: Arc<File>,
    position: u64,
}

impl Read for FromStart {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(target, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

/// Receives a snapshot in pieces. If it is dropped before [`SnapshotReceiver::finish`], it removes
/// its file.
#[derive(Debug)]
pub struct SnapshotReceiver {
    file: SyncedFile,
    draft: Arc<Draft>,
}

impl SnapshotReceiver {
    /// `number` distinguishes the receivers that were created since the node started.
    pub(super) fn create(dir: &Path, number: u64) -> io::Result<Self> {
        let path = dir.join(format!("{INCOMING}{number}"));
        Ok(Self {
            file: SyncedFile::create(&path)?,
            draft: Arc::new(Draft { path }),
        })
    }

    /// Number of bytes received, which is the offset of the next piece.
    pub fn length(&self) -> u64 {
        self.file.length
    }

    /// Appends the next piece.
    ///
    /// # Errors
    /// File system errors, such as a full disk.
    pub fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)
    }

    /// Syncs the complete file. [`SnapshotDir::verify`](super::SnapshotDir::verify) verifies its
    /// content; if it is not called, the installation does so.
    ///
    /// # Errors
    /// File system errors.
    pub fn finish(self) -> io::Result<SnapshotFile> {
        files::point("a snapshot has come in", &self.draft.path);
        files::sync(&self.file.file)?;
        let file = SnapshotFile::from_file(&self.draft.path, self.file.file)?;
        Ok(SnapshotFile {
            _draft: Some(self.draft),
            ..file
        })
    }
}

/// Removes its file when dropped. After a rename there is nothing to remove.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The next start removes a remaining file.
        let _ = std::fs::remove_file(&self.path);
    }
}
