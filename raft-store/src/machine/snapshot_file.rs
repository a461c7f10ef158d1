//! Snapshot files: read to be sent, written as they are received.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openraft::alias::SnapshotOf;

use super::views::AppliedState;
use crate::files;
use crate::synced::Synced;
use crate::types::{SnapshotMeta, TypeConfig};

/// What a received file is called until it is installed.
pub(super) const INCOMING: &str = "incoming-";

/// A snapshot as openraft is given it: what it covers, and where it is.
pub type Snapshot = SnapshotOf<TypeConfig, SnapshotData>;

/// Where a snapshot is.
#[derive(Debug, Clone)]
pub enum SnapshotData {
    /// In memory, as a state of this node. It becomes a file when it is sent.
    State(Arc<AppliedState>),
    /// In a file: it has come in, or is being sent.
    File(SnapshotFile),
}

impl AppliedState {
    /// A snapshot of it, in memory.
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
    /// What it covers.
    pub(crate) meta: SnapshotMeta,
    /// Its file.
    pub(crate) file: SnapshotFile,
}

/// A snapshot's file. The handle stays readable when the file is replaced by a newer snapshot.
#[derive(Debug, Clone)]
pub struct SnapshotFile {
    pub(super) path: PathBuf,
    file: Arc<File>,
    length: u64,
    /// What it holds, if it was read and found good.
    pub(super) verified: Option<Arc<AppliedState>>,
    /// Removes a received file that is never installed.
    _draft: Option<Arc<Draft>>,
}

impl SnapshotFile {
    /// Opens a file for reading.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::of(path, File::open(path)?)
    }

    /// A file that is open already.
    pub(super) fn of(path: &Path, file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file: Arc::new(file),
            length,
            verified: None,
            _draft: None,
        })
    }

    /// The same file after it was renamed.
    pub(super) fn renamed(&self, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            verified: None,
            _draft: None,
            ..self.clone()
        }
    }

    /// Reads it from its beginning, also when it was replaced by a newer one in the meantime.
    pub(super) fn reader(&self) -> impl Read + Send + use<> {
        let from_start = FromStart {
            file: Arc::clone(&self.file),
            position: 0,
        };
        BufReader::with_capacity(1 << 20, from_start)
    }

    /// The size in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Its name in its directory.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Up to `max` bytes from `offset` on; fewer only at the end of the file, none behind it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read_at(&self, offset: u64, max: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; max.min(left)];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

/// Reads a file without a descriptor or a position of its own.
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

/// Takes a snapshot in, piece by piece. Dropped before [`SnapshotReceiver::finish`], it leaves
/// nothing behind.
#[derive(Debug)]
pub struct SnapshotReceiver {
    file: Synced,
    draft: Arc<Draft>,
}

impl SnapshotReceiver {
    /// `number` tells the receivers of one start of the node apart.
    pub(super) fn create(dir: &Path, number: u64) -> io::Result<Self> {
        let path = dir.join(format!("{INCOMING}{number}"));
        Ok(Self {
            file: Synced::create(&path)?,
            draft: Arc::new(Draft { path }),
        })
    }

    /// How many bytes have come in; the next piece belongs here.
    pub fn length(&self) -> u64 {
        self.file.length
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// Those of the file system, such as a full disk.
    pub fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)
    }

    /// Everything has come in. What the file holds is verified by
    /// [`SnapshotDir::verify`](super::SnapshotDir::verify) or, at the latest, when it is installed.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn finish(self) -> io::Result<SnapshotFile> {
        files::point("a snapshot has come in", &self.draft.path);
        files::sync(&self.file.file)?;
        let file = SnapshotFile::of(&self.draft.path, self.file.file)?;
        Ok(SnapshotFile {
            _draft: Some(self.draft),
            ..file
        })
    }
}

/// Removes its file when dropped. Once the file is renamed there is nothing to remove.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Whatever stays is removed at the next start.
        let _ = std::fs::remove_file(&self.path);
    }
}
