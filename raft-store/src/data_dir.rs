//! The files of a data directory: its owner, the count of its starts, its lock.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::error::{OpenError, Result};
use crate::files;
use crate::identity::Identity;
use crate::wire::{self, RecordVersion, WireError};

/// The directory of the log, in a data directory.
pub const LOG_DIR: &str = "log";
/// The directory of the state, in a data directory.
pub const STATE_DIR: &str = "state";
pub(crate) const SNAPSHOT_DIR: &str = "snapshots";
const LOCK: &str = "lock";
const IDENTITY: &str = "identity";
const BOOT: &str = "boot";
/// What tells this node from others while it joins.
const JOIN_NONCE: &str = "join-nonce";
/// Why this node is quarantined.
const LEFT: &str = "left";
/// A restore has begun here, and has not succeeded.
const RESTORING: &str = "restore-unfinished";
/// The entries that were made blank by hand, one in a line.
pub(crate) const SKIPPED: &str = "skipped";

/// How this node came to be the only one of its cluster: in each line the cluster that it belonged
/// to before, and words.
pub(crate) const RECOVERED: &str = "recovered";

/// Reads which node owns the directory; `None` if none does yet.
///
/// # Errors
/// [`OpenError::NewerFormat`], [`OpenError::Damaged`] or [`OpenError::Io`].
pub fn identity(dir: &Path) -> Result<Option<Identity>> {
    match record(dir, IDENTITY) {
        Err(OpenError::NewerRecord(_, WireError::Newer(version))) => {
            Err(OpenError::NewerFormat(dir.to_owned(), version))
        }
        found => found,
    }
}

/// A file of a data directory, if it is there.
pub(crate) fn read(dir: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    let path = dir.join(name);
    files::if_there(fs::read(&path)).map_err(|error| OpenError::io("read", &path, error))
}

/// The record in a file of a data directory, if it is there.
fn record<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<Option<T>> {
    let bytes = read(dir, name)?;
    let record = bytes.map(|bytes| wire::decode(&bytes)).transpose();
    record.map_err(|error| OpenError::unreadable(&dir.join(name), &error))
}

/// Makes a directory that no node owns, if it is not there, and locks it.
fn make_and_lock(dir: &Path) -> Result<DirLock> {
    make_durably(dir).map_err(|error| OpenError::io("create", dir, error))?;
    let held = lock(dir)?;
    match identity(dir)? {
        Some(found) => Err(OpenError::Exists(dir.to_owned(), found)),
        None => Ok(held),
    }
}

/// Makes `dir` the data directory of a new node: when a cluster is formed, or a node joins one.
///
/// # Errors
/// [`OpenError::Exists`] if a node owns it already, [`OpenError::NotEmpty`] if it holds other
/// files, [`OpenError::Locked`], or [`OpenError::Io`].
pub fn create(dir: &Path, identity: Identity) -> Result<()> {
    let _lock = make_and_lock(dir)?;
    check_restored(dir)?;
    if dir.join(LOG_DIR).exists() || dir.join(STATE_DIR).exists() {
        return Err(OpenError::NotEmpty(dir.to_owned()));
    }
    write_identity(dir, identity)
}

/// Notes, durably, that a directory is to be filled by a restore: until that has succeeded, no
/// empty node is made of it.
///
/// # Errors
/// [`OpenError::Exists`] if a node owns it already, [`OpenError::Locked`], or [`OpenError::Io`].
pub fn begin_restore(dir: &Path) -> Result<()> {
    let _lock = make_and_lock(dir)?;
    let words = b"`placementd restore` has begun here and has not succeeded\n";
    write_durably(dir, RESTORING, words)
}

/// The directory is a restored node's.
pub(crate) fn end_restore(dir: &Path) -> Result<()> {
    let path = dir.join(RESTORING);
    // Where a loss of power brings it back, the directory has an owner, and it says nothing.
    let removed = files::if_there(fs::remove_file(&path));
    (removed.map(drop)).map_err(|error| OpenError::io("remove", &path, error))
}

/// Refuses a directory in which a restore has begun and has not succeeded.
///
/// # Errors
/// [`OpenError::RestoreUnfinished`].
pub fn check_restored(dir: &Path) -> Result<()> {
    let path = dir.join(RESTORING);
    match path.exists() {
        true => Err(OpenError::RestoreUnfinished(path)),
        false => Ok(()),
    }
}

/// Gives a data directory to a node, also one that belongs to another.
pub(crate) fn write_identity(dir: &Path, identity: Identity) -> Result<()> {
    write_durably(dir, IDENTITY, &wire::encode_named(&identity))
}

/// Locks a directory that holds nothing, to make it a data directory step by step; it is one once
/// it is given to a node.
pub(crate) fn claim(dir: &Path) -> Result<DirLock> {
    let held = make_and_lock(dir)?;
    let names = fs::read_dir(dir).and_then(|names| names.collect::<io::Result<Vec<_>>>());
    let names = names.map_err(|error| OpenError::io("list", dir, error))?;
    let may_be_there = [LOCK, JOIN_NONCE, RESTORING, "lost+found"];
    match names.iter().all(|one| {
        // The socket for operators that a killed node leaves behind holds nothing.
        may_be_there.iter().any(|name| one.file_name() == *name)
            || one.file_type().is_ok_and(|kind| kind.is_socket())
    }) {
        true => Ok(held),
        false => Err(OpenError::NotEmpty(dir.to_owned())),
    }
}

/// Removes what was made in a directory that was claimed and is no node's yet.
pub(crate) fn clear(dir: &Path) {
    // Whatever stays is found by the next one who claims it.
    let _ = fs::remove_dir_all(dir.join(LOG_DIR));
    let _ = fs::remove_dir_all(dir.join(STATE_DIR));
    let _ = fs::remove_file(dir.join(BOOT));
}

/// Makes a directory, and those above it that are missing, so that a loss of power leaves them.
///
/// # Errors
/// Those of the file system.
pub fn make_durably(dir: &Path) -> io::Result<()> {
    let changed = changed_by_making(dir);
    fs::create_dir_all(dir)?;
    changed
        .iter()
        .try_for_each(|parent| files::sync_dir(parent))
}

/// The directories that get a new name when `dir` is made.
fn changed_by_making(dir: &Path) -> Vec<PathBuf> {
    let missing = dir.ancestors().take_while(|one| !one.exists());
    missing
        .filter_map(Path::parent)
        .map(|parent| match parent.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => parent.to_owned(),
        })
        .collect()
}

/// Refuses a count of starts that is gone, or older than what the node has written.
pub(crate) fn check_boots(
    dir: &Path,
    identity: Identity,
    is_used: bool,
    written_in: Option<u64>,
) -> Result<()> {
    let boots = boots(dir)?;
    if (is_used && boots == 0) || written_in > Some(boots) {
        return Err(OpenError::BootLost(dir.join(BOOT), boots, identity));
    }
    Ok(())
}

/// How often the node of a data directory has started so far.
///
/// # Errors
/// [`OpenError::Damaged`] or [`OpenError::Io`].
pub fn boots(dir: &Path) -> Result<u64> {
    Ok(record(dir, BOOT)?.unwrap_or_default())
}

/// What tells the node of this directory from others that come with the same token; `fresh`, if
/// there is nothing yet.
///
/// # Errors
/// Those of the file system, and [`OpenError::Damaged`].
pub fn join_nonce(dir: &Path, fresh: Uuid) -> Result<Uuid> {
    if let Some(nonce) = record(dir, JOIN_NONCE)? {
        return Ok(nonce);
    }
    make_durably(dir).map_err(|error| OpenError::io("create", dir, error))?;
    write_durably(dir, JOIN_NONCE, &wire::encode(RecordVersion::FIRST, &fresh))?;
    Ok(fresh)
}

/// Notes, durably, why the node of this directory is quarantined: it is not opened again.
///
/// # Errors
/// Those of the file system.
pub fn leave(dir: &Path, reason: &str) -> Result<()> {
    write_durably(dir, LEFT, reason.as_bytes())
}

/// Refuses the directory of a node that cannot be vouched for.
pub(crate) fn check_left(dir: &Path) -> Result<()> {
    match read(dir, LEFT)? {
        Some(reason) => {
            let reason = String::from_utf8_lossy(&reason).into_owned();
            Err(OpenError::Left(dir.to_owned(), reason))
        }
        None => Ok(()),
    }
}

/// The clusters whose history this node went on with alone. Their nodes are refused.
///
/// # Errors
/// [`OpenError::Io`].
pub fn former_clusters(dir: &Path) -> Result<Vec<Uuid>> {
    let former = lines(dir, RECOVERED)?;
    let words = former.iter().filter_map(|line| line.split(' ').next());
    Ok(words
        .filter_map(|word| Uuid::parse_str(word).ok())
        .collect())
}

/// The lines of a file of a data directory.
pub(crate) fn lines(dir: &Path, name: &str) -> Result<Vec<String>> {
    let bytes = read(dir, name)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().map(str::to_owned).collect())
}

/// Adds a line to a file of a data directory, durably, if it is not there yet.
pub(crate) fn add_line(dir: &Path, name: &str, words: &str) -> Result<()> {
    let mut lines = lines(dir, name)?;
    if !lines.iter().any(|line| line == words) {
        lines.push(words.to_owned());
    }
    write_durably(dir, name, (lines.join("\n") + "\n").as_bytes())
}

/// Counts one more start of the node, durably, and returns the count.
pub(crate) fn next_boot(dir: &Path) -> Result<u64> {
    let boot = boots(dir)? + 1;
    set_boots(dir, boot)?;
    Ok(boot)
}

/// Notes, durably, how often the node has started.
pub(crate) fn set_boots(dir: &Path, boots: u64) -> Result<()> {
    write_durably(dir, BOOT, &wire::encode(RecordVersion::FIRST, &boots))
}

/// Puts a whole file in place: after a crash it is the old one or the new one.
fn write_durably(dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = dir.join(name);
    let draft = dir.join(format!("{name}.new"));
    let write = || -> io::Result<()> {
        let mut file = files::to_write().truncate(true).open(&draft)?;
        file.write_all(bytes)?;
        files::point("a draft is written", &draft);
        files::sync(&file)?;
        files::point("a draft is synced", &draft);
        fs::rename(&draft, &path)?;
        files::point("a draft is renamed", &draft);
        files::sync_dir(dir)
    };
    write().map_err(|error| OpenError::io("write", &path, error))
}

/// Keeps other processes out for as long as it lives.
pub(crate) struct DirLock {
    _file: File,
}

/// Whether a process, this one included, has the data directory open: a store is closed once the
/// last of its handles is gone, those that openraft's tasks hold included.
pub fn in_use(dir: &Path) -> bool {
    matches!(lock(dir), Err(OpenError::Locked { .. }))
}

/// Locks the data directory for this process.
pub(crate) fn lock(dir: &Path) -> Result<DirLock> {
    let path = dir.join(LOCK);
    let file = files::to_write().open(&path);
    let file = file.map_err(|error| OpenError::io("open", &path, error))?;
    let mut file = held(dir, file, File::try_lock)?;
    file.set_len(0)
        .and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()))
        .map_err(|error| OpenError::io("write", &path, error))?;
    Ok(DirLock { _file: file })
}

/// Keeps a node from starting on the directory while it is looked at, without writing to it. `None`
/// where no node has ever started.
pub(crate) fn lock_to_read(dir: &Path) -> Result<Option<DirLock>> {
    let path = dir.join(LOCK);
    let file = files::if_there(File::open(&path));
    let file = file.map_err(|error| OpenError::io("open", &path, error))?;
    let file = file.map(|file| held(dir, file, File::try_lock_shared));
    Ok(file.transpose()?.map(|_file| DirLock { _file }))
}

fn held(dir: &Path, file: File, lock: fn(&File) -> Result<(), TryLockError>) -> Result<File> {
    match lock(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(in_use_by(dir, file)),
        Err(TryLockError::Error(error)) => Err(OpenError::io("lock", &dir.join(LOCK), error)),
    }
}

fn in_use_by(dir: &Path, mut lock: File) -> OpenError {
    let mut holder = String::new();
    // Only for the message: the holder may not have written it yet.
    let _ = lock.read_to_string(&mut holder);
    let holder = match holder.trim() {
        "" => String::new(),
        process => format!(" (process {process})"),
    };
    OpenError::Locked(dir.to_owned(), holder)
}

/// The files of a database's write-ahead log with their lengths, the newest last; those that will
/// be written over, too.
///
/// # Errors
/// Those of the file system.
pub fn wal_files(log_dir: &Path) -> io::Result<BTreeMap<PathBuf, u64>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(log_dir)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        match entry.metadata() {
            Ok(metadata) => drop(files.insert(path, metadata.len())),
            // It was renamed or removed in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_that_gets_a_name_is_synced() {
        let root = tempfile::TempDir::new().unwrap();
        let dir = root.path().join("a").join("b");
        let above = root.path().join("a");
        assert_eq!(changed_by_making(&dir), [above, root.path().to_owned()]);
        make_durably(&dir).unwrap();
        assert!(dir.is_dir());
        assert_eq!(changed_by_making(&dir), Vec::<PathBuf>::new());
        let relative = Path::new("no-such-directory-here");
        assert_eq!(changed_by_making(relative), [PathBuf::from(".")]);
    }
}
