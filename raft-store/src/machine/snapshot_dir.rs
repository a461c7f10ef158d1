//! The directory of snapshots. It contains the snapshot that is being sent, and received snapshots.
//! A start uses only complete received snapshots that were not installed.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use placement_model::{Cluster, Level};

use super::snapshot_file::{SnapshotFile, SnapshotReceiver, WrittenSnapshot};
use super::snapshot_format::{self, Header, SnapshotError};
use super::views::AppliedState;
use crate::base::Base;
use crate::data_dir::SNAPSHOT_DIR;
use crate::error::{OpenError, Result};
use crate::files;
use crate::identity::Identity;
use crate::observer::LogEvent;
use crate::options::StoreOptions;
use crate::synced_file::SyncedFile;
use crate::types::{LogId, SnapshotMeta};
use placement_base::coverage::RarePath;
use placement_base::log_messages::log;

/// Name prefix of a snapshot to send; the id of the last covered entry follows.
const SNAPSHOT: &str = "snapshot-";
/// Name prefix of a received and verified snapshot until it is installed. openraft purges the log
/// that the snapshot covers before the installation, so the next start must find the file.
const RECEIVED: &str = "received-";

/// The directory of this node's snapshots. Cheap to clone.
#[derive(Clone)]
pub struct SnapshotDir {
    inner: Arc<Inner>,
}

struct Inner {
    dir: PathBuf,
    /// Kept open, so that a snapshot does not fail if the process has no file descriptors left.
    handle: File,
    identity: Identity,
    written: Mutex<Option<WrittenSnapshot>>,
    /// The log may be purged up to this entry; snapshots that end before it are useless.
    cut: Mutex<Option<LogId>>,
    /// Number of receivers so far; part of their file names.
    receivers: AtomicU64,
    options: StoreOptions,
}

impl SnapshotDir {
    /// Removes unfinished files. Finished files stay until [`SnapshotDir::clear`].
    pub(crate) fn open(base: &Base) -> Result<Self> {
        let dir = base.options.dir.join(SNAPSHOT_DIR);
        let handle = fs::create_dir_all(&dir)
            .and_then(|()| File::open(&dir))
            .map_err(|error| OpenError::io("open", &dir, error))?;
        let inner = Inner {
            dir,
            handle,
            identity: base.identity,
            written: Mutex::default(),
            cut: Mutex::default(),
            receivers: AtomicU64::new(0),
            options: base.options.clone(),
        };
        let snapshots = Self {
            inner: Arc::new(inner),
        };
        for path in snapshots.files()? {
            if !is_snapshot(&path) && !is_received(&path) {
                log!(
                    FOREIGN_FILE_REMOVED,
                    path = %path.display(),
                    "removing a file that is not a snapshot of this node"
                );
                remove(&path);
            }
        }
        Ok(snapshots)
    }

    /// The newest received snapshot. The log that it covers may have been purged.
    pub(super) fn received(&self) -> Result<Option<WrittenSnapshot>> {
        let mut newest: Option<WrittenSnapshot> = None;
        for path in self.files()?.iter().filter(|path| is_received(path)) {
            match self.look_at(path) {
                Ok(one) => {
                    let both = newest.into_iter().chain([one]);
                    newest = both.max_by_key(|one| one.meta.last_log_id);
                }
                Err(error) if error.is_foreign() => {
                    log!(
                        FOREIGN_FILE_REMOVED,
                        path = %path.display(),
                        %error,
                        "removing a file that is not a snapshot of this node"
                    );
                    remove(path);
                }
                Err(error) => return Err(unreadable(path, error)),
            }
        }
        Ok(newest)
    }

    /// Removes every snapshot before openraft is started: the rows contain them durably.
    pub(super) fn clear(&self) -> Result<()> {
        for path in self.files()? {
            remove(&path);
        }
        Ok(())
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let dir = &self.inner.dir;
        let entries = fs::read_dir(dir).and_then(|entries| {
            let paths = entries.map(|entry| Ok(entry?.path()));
            paths.collect::<io::Result<Vec<_>>>()
        });
        entries.map_err(|error| OpenError::io("list", dir, error))
    }

    /// Starts receiving a snapshot from another node.
    ///
    /// # Errors
    /// File system errors.
    pub fn receive(&self) -> io::Result<SnapshotReceiver> {
        let number = self.inner.receivers.fetch_add(1, Ordering::Relaxed);
        SnapshotReceiver::create(&self.inner.dir, number)
    }

    /// The written snapshot, unless the log after it may have been purged.
    pub(super) fn written(&self) -> Option<WrittenSnapshot> {
        let written = self.inner.written.lock().clone();
        let cut = *self.inner.cut.lock();
        written.filter(|written| written.meta.last_log_id >= cut)
    }

    /// Records that the log may be purged up to `last`, and removes the written snapshot. If a
    /// snapshot of an older state is still being written, it is sent once and then not used again.
    pub(super) fn cut_up_to(&self, last: Option<LogId>) {
        let mut cut = self.inner.cut.lock();
        *cut = last.max(*cut);
        drop(cut);
        self.discard();
    }

    /// Removes the written snapshot. A running transfer continues: its handle stays readable.
    pub(super) fn discard(&self) {
        if let Some(written) = self.inner.written.lock().take() {
            remove(written.file.path());
        }
    }

    /// Writes a snapshot of a state for sending. A receiver may resume a transfer of the same
    /// snapshot. The file need not survive a restart.
    pub(crate) fn write_down(&self, applied: &AppliedState) -> io::Result<WrittenSnapshot> {
        let meta = applied.covers();
        if let Some(written) = self.written().filter(|written| written.meta == meta) {
            return Ok(written);
        }
        let path = self.inner.dir.join(name(applied.last.as_ref()));
        let file = (self.write(&path, applied)).inspect_err(|_| remove(&path))?;
        let written = WrittenSnapshot { meta, file };
        let before = self.inner.written.lock().replace(written.clone());
        // A transfer of the former snapshot continues: its handle stays readable.
        if let Some(before) = before.filter(|before| before.file.path() != path) {
            remove(before.file.path());
        }
        Ok(written)
    }

    fn write(&self, path: &Path, applied: &AppliedState) -> io::Result<SnapshotFile> {
        let mut buffered = BufWriter::with_capacity(256 << 10, SyncedFile::create(path)?);
        snapshot_format::write(&mut buffered, &self.inner.identity, applied)?;
        SnapshotFile::from_file(path, buffered.into_inner()?.file)
    }

    /// Reads a whole received snapshot and checks that it is undamaged, belongs to this cluster,
    /// and covers what its sender announced. The installation does not read the returned file
    /// again. If the node crashes before the installation, the next start installs the file.
    ///
    /// A snapshot that is rejected here is sent again. If the state machine rejected it later, the
    /// node would stop, because openraft treats every error of the state machine as a broken disk.
    ///
    /// # Errors
    /// [`SnapshotError`]; the file is removed.
    pub fn verify(
        &self,
        meta: &SnapshotMeta,
        file: SnapshotFile,
    ) -> Result<SnapshotFile, SnapshotError> {
        let state = (self.read(meta, &file)).inspect_err(|_| RarePath::SnapshotRefused.ran())?;
        let mut file = self.keep(&file)?;
        file.verified = Some(Arc::new(state));
        if let Some(last) = meta.last_log_id {
            self.inner
                .options
                .observed(LogEvent::SnapshotReceived(last));
        }
        Ok(file)
    }

    /// Removes a verified snapshot that openraft did not need.
    pub fn give_up(&self, meta: &SnapshotMeta, path: &Path) {
        if is_received(path) && path.exists() {
            if let Some(last) = meta.last_log_id {
                self.inner.options.observed(LogEvent::SnapshotGivenUp(last));
            }
            remove(path);
        }
    }

    /// Reads a snapshot and checks it against `meta`.
    pub(super) fn read(
        &self,
        meta: &SnapshotMeta,
        file: &SnapshotFile,
    ) -> Result<AppliedState, SnapshotError> {
        let found = self.read_whole(file)?;
        if found.covers() == *meta {
            Ok(found)
        } else {
            Err(SnapshotError::OtherCoverage)
        }
    }

    fn read_whole(&self, file: &SnapshotFile) -> Result<AppliedState, SnapshotError> {
        let (header, state) = snapshot_format::read(&mut file.reader())?;
        header.check(&self.inner.identity)?;
        applied_state(header, state)
    }

    /// Renames a received file so that the next start finds it. Does nothing if it has such a name
    /// already.
    pub(super) fn keep(&self, file: &SnapshotFile) -> io::Result<SnapshotFile> {
        if is_received(file.path()) {
            return Ok(file.renamed(file.path()));
        }
        let number = self.inner.receivers.fetch_add(1, Ordering::Relaxed);
        let path = self.inner.dir.join(format!("{RECEIVED}{number}"));
        fs::rename(file.path(), &path)?;
        files::point("a snapshot is renamed", &path);
        files::sync_open_dir(&self.inner.handle, &self.inner.dir)?;
        Ok(file.renamed(&path))
    }

    /// Reads a whole snapshot whose installation was interrupted or has not begun.
    pub(super) fn read_again(&self, name: &str) -> Result<AppliedState, SnapshotError> {
        self.read_whole(&SnapshotFile::open(&self.inner.dir.join(name))?)
    }

    fn look_at(&self, path: &Path) -> Result<WrittenSnapshot, SnapshotError> {
        let file = SnapshotFile::open(path)?;
        let header = snapshot_format::read_header(&mut file.reader())?;
        header.check(&self.inner.identity)?;
        let meta = SnapshotMeta::try_from(header.covers)?;
        Ok(WrittenSnapshot { meta, file })
    }
}

/// Whether the file name is for a snapshot to send.
pub(super) fn is_snapshot(path: &Path) -> bool {
    begins_with(path, SNAPSHOT)
}

/// Whether the file name is for a received snapshot that is not installed.
pub(super) fn is_received(path: &Path) -> bool {
    begins_with(path, RECEIVED)
}

fn begins_with(path: &Path, prefix: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(prefix))
}

/// The error for an unreadable received snapshot. The start fails, because the log that the
/// snapshot covers may have been purged.
pub(super) fn unreadable(path: &Path, error: SnapshotError) -> OpenError {
    match error {
        SnapshotError::Io(error) => OpenError::io("read", path, error),
        error => OpenError::damaged(
            path,
            format!("it was received but cannot be installed: {error}"),
        ),
    }
}

/// The file name of a snapshot: unique for each covered entry.
pub(super) fn name(last: Option<&LogId>) -> String {
    match last {
        Some(id) => {
            let leader = id.committed_leader_id();
            format!("{SNAPSHOT}{}-{}-{}", leader.term, leader.node_id, id.index)
        }
        None => format!("{SNAPSHOT}empty"),
    }
}

pub(super) fn applied_state(
    header: Header,
    cluster: Cluster,
) -> Result<AppliedState, SnapshotError> {
    if cluster.level() > Level::NEWEST {
        return Err(SnapshotError::NewerLevel(cluster.level()));
    }
    let meta = SnapshotMeta::try_from(header.covers)?;
    Ok(AppliedState {
        cluster: cluster.into(),
        last: meta.last_log_id,
        membership: meta.last_membership.into(),
        last_stamp: header.last_stamp,
    })
}

pub(super) fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        log!(FILE_NOT_REMOVED, path = %path.display(), %error, "cannot remove an unneeded file");
    }
}
