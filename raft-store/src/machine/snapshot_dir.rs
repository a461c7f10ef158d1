//! The directory of snapshots: at most one current snapshot, what has come in to replace it, and drafts.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use placement_model::{Level, State};

use super::snapshot_file::{Snapshot, SnapshotFile, SnapshotReceiver};
use super::snapshot_format::{self, Header, SnapshotError};
use super::views::AppliedState;
use crate::coverage::RarePath;
use crate::error::OpenError;
use crate::files;
use crate::identity::Identity;
use crate::observer::{LogEvent, LogObserver};
use crate::synced::Synced;
use crate::types::{LogId, SnapshotMeta};

/// The name of the current snapshot, before the entry that it covers.
const SNAPSHOT: &str = "snapshot-";
/// The name of a snapshot that is being built.
const DRAFT: &str = "draft-";
/// The name of one that has come in and was verified, until it is installed. openraft removes entries
/// of the log for it before that, so the next start must find it.
const RECEIVED: &str = "received-";

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
    observer: Option<Arc<dyn LogObserver>>,
}

impl SnapshotDir {
    /// Finds the newest snapshot and removes everything else, but for what cannot be read just now.
    pub(crate) fn open(
        dir: &Path,
        identity: Identity,
        observer: Option<Arc<dyn LogObserver>>,
    ) -> Result<Self, OpenError> {
        let handle = File::open(dir).map_err(|error| OpenError::io("open", dir, error))?;
        let inner = Inner {
            dir: dir.to_owned(),
            handle,
            identity,
            current: Mutex::new(None),
            unread: Mutex::default(),
            receivers: AtomicU64::new(0),
            observer,
        };
        let snapshots = Self {
            inner: Arc::new(inner),
        };
        let names = fs::read_dir(dir)
            .and_then(|entries| entries.collect::<io::Result<Vec<_>>>())
            .map_err(|error| OpenError::io("list", dir, error))?;
        for entry in names {
            let path = entry.path();
            let found = match is_snapshot(&path) || is_received(&path) {
                true => snapshots.look_at(&path),
                false => Err(SnapshotError::NotASnapshot),
            };
            match found {
                Ok(snapshot) => snapshots.adopt(&snapshot),
                Err(error) if is_received(&path) && !error.is_foreign() => {
                    return Err(unreadable(&path, error));
                }
                // Too many open files, a sector that may come back: it may be needed yet.
                Err(SnapshotError::Io(error)) => {
                    tracing::warn!(path = %path.display(), %error, "a snapshot cannot be read; it is kept until there is another one");
                    snapshots.inner.unread.lock().push(path);
                }
                // openraft has another one built where it needs it.
                Err(error) => {
                    if is_snapshot(&path) {
                        RarePath::SnapshotRemoved.ran();
                    }
                    tracing::warn!(path = %path.display(), %error, "removing a file that is no snapshot of this node");
                    remove(&path);
                }
            }
        }
        snapshots
            .name_received()
            .map_err(|error| OpenError::io("rename a snapshot in", dir, error))?;
        Ok(snapshots)
    }

    /// Gives the current snapshot its name if it has come in and was never installed.
    fn name_received(&self) -> io::Result<()> {
        let mut current = self.inner.current.lock();
        let Some(snapshot) = current.as_mut() else {
            return Ok(());
        };
        if is_received(snapshot.snapshot.path()) {
            let path = self.path_of(&snapshot.meta);
            self.rename(&snapshot.snapshot, &path)?;
            snapshot.snapshot = snapshot.snapshot.renamed(&path);
        }
        Ok(())
    }

    fn path_of(&self, meta: &SnapshotMeta) -> PathBuf {
        self.inner.dir.join(name(meta.last_log_id.as_ref()))
    }

    fn observed(&self, event: LogEvent<'_>) {
        if let Some(observer) = &self.inner.observer {
            observer.note(event);
        }
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
        let file = Synced::create(&path)?;
        let written = self.write(file, applied);
        written
            .and_then(|file| SnapshotFile::of(&path, file))
            .inspect_err(|_| remove(&path))
    }

    fn write(&self, file: Synced, applied: &AppliedState) -> io::Result<File> {
        let mut buffered = BufWriter::with_capacity(256 << 10, file);
        snapshot_format::write(&mut buffered, &self.inner.identity, applied)?;
        let file = buffered.into_inner()?.file;
        files::sync(&file)?;
        Ok(file)
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
    /// its sender said. The file that is returned is not read once more when it is installed, and from
    /// now on the next start installs it if this one does not come to it.
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
        let state = (self.read(meta, &file)).inspect_err(|_| RarePath::SnapshotRefused.ran())?;
        let number = self.inner.receivers.fetch_add(1, Ordering::Relaxed);
        let path = self.inner.dir.join(format!("{RECEIVED}{number}"));
        self.rename(&file, &path)?;
        if let Some(last) = meta.last_log_id {
            self.observed(LogEvent::SnapshotReceived(last));
        }
        Ok(file.renamed(&path).holding(state))
    }

    /// Removes a snapshot that was verified, if openraft was handed it and had no need of it.
    pub fn give_up(&self, meta: &SnapshotMeta, path: &Path) {
        if is_received(path) && path.exists() {
            if let Some(last) = meta.last_log_id {
                self.observed(LogEvent::SnapshotGivenUp(last));
            }
            remove(path);
        }
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
        let path = self.path_of(meta);
        if file.path() != path {
            self.rename(file, &path)?;
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

    fn rename(&self, file: &SnapshotFile, path: &Path) -> io::Result<()> {
        fs::rename(file.path(), path)?;
        files::point("a snapshot is renamed", path);
        files::sync_open_dir(&self.inner.handle, &self.inner.dir)
    }

    /// Reads the snapshot of this name, whole: its installation was interrupted, or never begun.
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
pub(crate) fn is_snapshot(path: &Path) -> bool {
    begins_with(path, SNAPSHOT)
}

/// Whether a file is a snapshot by its name that has come in and is not installed.
pub(super) fn is_received(path: &Path) -> bool {
    begins_with(path, RECEIVED)
}

fn begins_with(path: &Path, prefix: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(prefix))
}

/// The log may have been cut for it.
pub(super) fn unreadable(path: &Path, error: SnapshotError) -> OpenError {
    match error {
        SnapshotError::Io(error) => OpenError::io("read", path, error),
        error => OpenError::Damaged {
            path: path.to_owned(),
            reason: format!("it came in to be installed, and {error}"),
        },
    }
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
