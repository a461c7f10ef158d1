//! The directory of snapshots: at most one current snapshot, and drafts.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use placement_model::{Level, State};

use super::snapshot_file::{Snapshot, SnapshotFile, SnapshotReceiver};
use super::snapshot_format::{self, Header, SnapshotError};
use super::views::AppliedState;
use crate::error::OpenError;
use crate::files;
use crate::identity::Identity;
use crate::types::{LogId, SnapshotMeta};

/// The name of the current snapshot, before the entry that it covers.
const SNAPSHOT: &str = "snapshot-";
/// The name of a snapshot that is being built.
const DRAFT: &str = "draft-";

/// The directory of this node's snapshots. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SnapshotDir {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    /// Open all the time, so that no snapshot fails half done for want of a descriptor.
    handle: File,
    identity: Identity,
    current: Mutex<Option<Snapshot>>,
    /// Snapshots that could not be read at the start, until there is another one.
    unread: Mutex<Vec<PathBuf>>,
    /// Receivers so far; names their files.
    receivers: AtomicU64,
}

impl SnapshotDir {
    /// Finds the newest snapshot and removes everything else, but for what cannot be read just now.
    pub(crate) fn open(dir: &Path, identity: Identity) -> Result<Self, OpenError> {
        let handle = File::open(dir).map_err(|error| OpenError::io("open", dir, error))?;
        let inner = Inner {
            dir: dir.to_owned(),
            handle,
            identity,
            current: Mutex::new(None),
            unread: Mutex::default(),
            receivers: AtomicU64::new(0),
        };
        let snapshots = Self {
            inner: Arc::new(inner),
        };
        let names = fs::read_dir(dir)
            .and_then(|entries| entries.collect::<io::Result<Vec<_>>>())
            .map_err(|error| OpenError::io("list", dir, error))?;
        for entry in names {
            let path = entry.path();
            let found = match is_snapshot(&path) {
                true => snapshots.look_at(&path),
                false => Err(SnapshotError::NotASnapshot),
            };
            match found {
                Ok(snapshot) => snapshots.adopt(&snapshot),
                // Too many open files, a sector that may come back: it may be needed yet.
                Err(SnapshotError::Io(error)) => {
                    tracing::warn!(path = %path.display(), %error, "a snapshot cannot be read; it is kept until there is another one");
                    snapshots.inner.unread.lock().push(path);
                }
                // openraft has another one built where it needs it.
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "removing a file that is no snapshot of this node");
                    remove(&path);
                }
            }
        }
        Ok(snapshots)
    }

    /// Starts to receive a snapshot from another node.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn receive(&self) -> io::Result<SnapshotReceiver> {
        let number = self.inner.receivers.fetch_add(1, Ordering::Relaxed);
        SnapshotReceiver::create(&self.inner.dir, number)
    }

    /// The current snapshot.
    pub(super) fn current(&self) -> Option<Snapshot> {
        self.inner.current.lock().clone()
    }

    /// The last entry that the current snapshot covers, and its size in bytes.
    pub fn newest(&self) -> Option<(u64, u64)> {
        let current = self.inner.current.lock();
        let current = current.as_ref()?;
        let covers = current.meta.last_log_id.map_or(0, |id| id.index());
        Some((covers, current.snapshot.length()))
    }

    /// Writes a snapshot of this state, durably. It counts once [`SnapshotDir::accept`] is called.
    pub(super) fn draft(&self, applied: &AppliedState) -> io::Result<SnapshotFile> {
        let name = name(applied.last.as_ref());
        let path = self.inner.dir.join(format!("{DRAFT}{name}"));
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        let written = self.write(&file, applied);
        written
            .and_then(|()| SnapshotFile::of(&path, file))
            .inspect_err(|_| remove(&path))
    }

    fn write(&self, file: &File, applied: &AppliedState) -> io::Result<()> {
        let mut buffered = BufWriter::with_capacity(1 << 20, file);
        snapshot_format::write(&mut buffered, &self.inner.identity, applied)?;
        buffered.flush()?;
        files::sync(file)
    }

    /// Gives a draft up.
    pub(super) fn discard(draft: &SnapshotFile) {
        remove(draft.path());
    }

    /// Makes the draft of this state the current snapshot, unless there is a newer one by now.
    /// Returns the current one.
    pub(super) fn accept(
        &self,
        applied: &AppliedState,
        draft: &SnapshotFile,
    ) -> io::Result<Snapshot> {
        let meta = SnapshotMeta {
            last_log_id: applied.last,
            last_membership: applied.membership.clone(),
        };
        let kept = self
            .keep(&meta, draft)
            .inspect_err(|_| remove(draft.path()))?;
        self.adopt(&kept);
        Ok(self
            .current()
            .expect("once there is a current snapshot, only a newer one replaces it"))
    }

    /// What becomes a snapshot of this state, for tests.
    #[cfg(test)]
    pub(crate) fn build_for_tests(&self, applied: &AppliedState) -> Snapshot {
        let draft = self.draft(applied).unwrap();
        self.accept(applied, &draft).unwrap()
    }

    /// Reads a received snapshot, whole, and checks that it is undamaged, of this cluster, and what
    /// its sender said. The file that is returned is not read once more when it is installed.
    ///
    /// Refused here, a snapshot is merely sent again; refused by the state machine, it ends the
    /// node, as openraft takes every error there for a broken disk.
    ///
    /// # Errors
    /// [`SnapshotError`]; the file is removed.
    pub fn verify(
        &self,
        meta: &SnapshotMeta,
        file: SnapshotFile,
    ) -> Result<SnapshotFile, SnapshotError> {
        let state = self.read(meta, &file)?;
        Ok(file.holding(state))
    }

    /// Reads and checks a snapshot.
    pub(super) fn read(
        &self,
        meta: &SnapshotMeta,
        file: &SnapshotFile,
    ) -> Result<AppliedState, SnapshotError> {
        let (header, state) = snapshot_format::read(&mut file.reader())?;
        header.check(&self.inner.identity)?;
        if header.covers != meta.into() {
            return Err(SnapshotError::OtherCoverage);
        }
        applied_state(header, state)
    }

    /// Renames a draft or a received and verified snapshot to its final name.
    pub(super) fn keep(&self, meta: &SnapshotMeta, file: &SnapshotFile) -> io::Result<Snapshot> {
        let path = self.inner.dir.join(name(meta.last_log_id.as_ref()));
        if file.path() != path {
            fs::rename(file.path(), &path)?;
            files::point("a snapshot is renamed", &path);
            files::sync_open_dir(&self.inner.handle, &self.inner.dir)?;
        }
        for unread in std::mem::take(&mut *self.inner.unread.lock()) {
            if unread != path {
                remove(&unread);
            }
        }
        Ok(Snapshot {
            meta: meta.clone(),
            snapshot: file.renamed(&path),
        })
    }

    /// Reads the snapshot of this name, whole: its installation was interrupted.
    pub(super) fn read_again(&self, name: &str) -> Result<AppliedState, SnapshotError> {
        let file = SnapshotFile::open(&self.inner.dir.join(name))?;
        let (header, state) = snapshot_format::read(&mut file.reader())?;
        header.check(&self.inner.identity)?;
        applied_state(header, state)
    }

    /// Makes a snapshot the current one and removes the one before, unless that is newer.
    pub(super) fn adopt(&self, snapshot: &Snapshot) {
        let mut current = self.inner.current.lock();
        let loser = match current.as_ref() {
            Some(newer) if newer.meta.last_log_id > snapshot.meta.last_log_id => {
                Some(snapshot.snapshot.path().to_owned())
            }
            before => {
                let before = before.map(|before| before.snapshot.path().to_owned());
                *current = Some(snapshot.clone());
                before
            }
        };
        let winner = current.as_ref().map(|snapshot| snapshot.snapshot.path());
        // A transfer of the older one goes on: its handle stays readable.
        if let Some(loser) = loser
            && winner != Some(&loser)
        {
            remove(&loser);
        }
    }

    fn look_at(&self, path: &Path) -> Result<Snapshot, SnapshotError> {
        let file = SnapshotFile::open(path)?;
        let header = snapshot_format::read_header(&mut file.reader())?;
        header.check(&self.inner.identity)?;
        let meta = SnapshotMeta::try_from(header.covers)?;
        Ok(Snapshot {
            meta,
            snapshot: file,
        })
    }
}

/// Whether a file is a snapshot by its name, and no draft.
pub(super) fn is_snapshot(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(SNAPSHOT))
}

/// The name of a snapshot: one for each coverage.
pub(super) fn name(last: Option<&LogId>) -> String {
    match last {
        Some(id) => {
            let leader = id.committed_leader_id();
            format!("{SNAPSHOT}{}-{}-{}", leader.term, leader.node_id, id.index)
        }
        None => format!("{SNAPSHOT}empty"),
    }
}

pub(super) fn applied_state(header: Header, state: State) -> Result<AppliedState, SnapshotError> {
    if state.level() > Level::NEWEST {
        return Err(SnapshotError::NewerLevel(state.level()));
    }
    let meta = SnapshotMeta::try_from(header.covers)?;
    Ok(AppliedState {
        state,
        last: meta.last_log_id,
        membership: meta.last_membership,
        last_stamp: header.last_stamp,
    })
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "a file that is no longer needed cannot be removed");
    }
}
