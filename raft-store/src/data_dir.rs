//! Files of a data directory: identity, start count, lock and notes.
//!
//! ```text
//! lock                 held while the directory is open; names the process
//! identity             cluster, epoch, node; written when the node forms, joins or recovers a
//!                      cluster
//! boot                 number of starts
//! join-nonce           a random id that distinguishes the node from others while it joins
//! restore-unfinished   exists until a restore has finished
//! reached              the last entry and the vote of the log that are known to be on disk
//! skipped              log entries that an operator replaced by blank entries
//! recovered            former clusters of this node, after `placementd recover` made it the only
//!                      member of a new cluster
//! left                 why the node is quarantined
//! log/                 RocksDB: column families `log` (entries) and `meta` (vote, commit index,
//!                      last purged entry)
//! state/               RocksDB: column family `rows`, with the rows of all tables, their log
//!                      position (applied entry, membership, digest, last timestamp) and the ledger
//! snapshots/           the snapshot being sent, and received snapshots that are not installed yet
//! ```

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

/// Subdirectory of the log.
pub const LOG_DIR: &str = "log";
/// Subdirectory of the state.
pub const STATE_DIR: &str = "state";
pub(crate) const SNAPSHOT_DIR: &str = "snapshots";
const LOCK: &str = "lock";
const IDENTITY: &str = "identity";
const BOOT: &str = "boot";
/// A random id that distinguishes this node from others while it joins.
const JOIN_NONCE: &str = "join-nonce";
/// Why this node is quarantined.
const LEFT: &str = "left";
/// Exists while a restore is unfinished.
const RESTORING: &str = "restore-unfinished";
/// The entries that an operator skipped, one per line.
pub(crate) const SKIPPED: &str = "skipped";

/// How this node became the only member of its cluster, one recovery per line: the id of the former
/// cluster, then text.
pub(crate) const RECOVERED: &str = "recovered";

/// Reads which node owns the directory; `None` if no node does.
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

/// Reads a file of a data directory; `None` if it does not exist.
pub(crate) fn read(dir: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    let path = dir.join(name);
    files::if_there(fs::read(&path)).map_err(|error| OpenError::io("read", &path, error))
}

/// Reads the record in a file of a data directory; `None` if the file does not exist.
fn record<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<Option<T>> {
    let bytes = read(dir, name)?;
    let record = bytes.map(|bytes| wire::decode(&bytes)).transpose();
    record.map_err(|error| OpenError::unreadable(&dir.join(name), &error))
}

/// Creates a directory if it does not exist, and locks it. Fails if a node owns it.
fn make_and_lock(dir: &Path) -> Result<DirLock> {
    make_durably(dir).map_err(|error| OpenError::io("create", dir, error))?;
    let held = lock(dir)?;
    match identity(dir)? {
        Some(found) => Err(OpenError::Exists(dir.to_owned(), found)),
        None => Ok(held),
    }
}

/// Creates the data directory of a new node, when a cluster is formed or a node joins one.
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

/// Creates the data directory of node 1 of a cluster.
#[cfg(test)]
pub(crate) fn create_any(dir: &Path) {
    let identity = Identity {
        cluster: Uuid::from_u128(1),
        epoch: 1,
        node: 1,
    };
    create(dir, identity).unwrap();
}

/// Records durably that a restore into a directory has begun. Until it succeeds, [`create`] refuses
/// the directory.
///
/// # Errors
/// [`OpenError::Exists`] if a node owns it already, [`OpenError::Locked`], or [`OpenError::Io`].
pub fn begin_restore(dir: &Path) -> Result<()> {
    let _lock = make_and_lock(dir)?;
    let words = b"`placementd restore` has not finished here\n";
    write_durably(dir, RESTORING, words)
}

/// Removes the record of [`begin_restore`].
pub(crate) fn end_restore(dir: &Path) -> Result<()> {
    let path = dir.join(RESTORING);
    // If the file is back after a power loss, it has no effect: the file is checked only in a
    // directory without an owner, and by now the directory has one.
    let removed = files::if_there(fs::remove_file(&path));
    (removed.map(drop)).map_err(|error| OpenError::io("remove", &path, error))
}

/// Fails if a restore of this directory is unfinished.
///
/// # Errors
/// [`OpenError::RestoreUnfinished`].
pub fn check_restored(dir: &Path) -> Result<()> {
    let path = dir.join(RESTORING);
    if path.exists() {
        Err(OpenError::RestoreUnfinished(path))
    } else {
        Ok(())
    }
}

/// Makes a node the owner of a data directory, replacing a former owner.
pub(crate) fn write_identity(dir: &Path, identity: Identity) -> Result<()> {
    write_durably(dir, IDENTITY, &wire::encode_named(&identity))
}

/// Locks a directory without data, in which a data directory will be built. The last step, which
/// writes an identity, makes it a data directory.
pub(crate) fn claim(dir: &Path) -> Result<DirLock> {
    let held = make_and_lock(dir)?;
    let names = fs::read_dir(dir)
        .and_then(|names| names.collect::<io::Result<Vec<_>>>())
        .map_err(|error| OpenError::io("list", dir, error))?;
    let may_be_there = [LOCK, JOIN_NONCE, RESTORING, "lost+found"];
    let is_empty = names.iter().all(|one| {
        // A killed node leaves its Unix socket for operators behind; it contains no data.
        may_be_there.iter().any(|name| one.file_name() == *name)
            || one.file_type().is_ok_and(|kind| kind.is_socket())
    });
    if is_empty {
        Ok(held)
    } else {
        Err(OpenError::NotEmpty(dir.to_owned()))
    }
}

/// Removes the data from a claimed directory that has no identity yet.
pub(crate) fn clear(dir: &Path) {
    // A failed removal is reported by the next [`claim`].
    let _ = fs::remove_dir_all(dir.join(LOG_DIR));
    let _ = fs::remove_dir_all(dir.join(STATE_DIR));
    let _ = fs::remove_file(dir.join(BOOT));
}

/// Creates a directory and its missing ancestors, and syncs their parents.
///
/// # Errors
/// File system errors.
pub fn make_durably(dir: &Path) -> io::Result<()> {
    let changed = changed_by_making(dir);
    fs::create_dir_all(dir)?;
    changed
        .iter()
        .try_for_each(|parent| files::sync_dir(parent))
}

/// The directories that get a new entry when `dir` is created.
fn changed_by_making(dir: &Path) -> Vec<PathBuf> {
    let missing = dir.ancestors().take_while(|one| !one.exists());
    missing
        .filter_map(Path::parent)
        .map(|parent| {
            if parent.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                parent.to_owned()
            }
        })
        .collect()
}

/// Fails if the start count is missing, or older than the node's other data.
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

/// Number of starts of the node so far.
///
/// # Errors
/// [`OpenError::Damaged`] or [`OpenError::Io`].
pub fn boots(dir: &Path) -> Result<u64> {
    Ok(record(dir, BOOT)?.unwrap_or_default())
}

/// The random id that distinguishes this node from others that join with the same token. Stores
/// `fresh` unless the directory has one.
///
/// # Errors
/// File system errors, and [`OpenError::Damaged`].
pub fn join_nonce(dir: &Path, fresh: Uuid) -> Result<Uuid> {
    if let Some(nonce) = record(dir, JOIN_NONCE)? {
        return Ok(nonce);
    }
    make_durably(dir).map_err(|error| OpenError::io("create", dir, error))?;
    write_durably(dir, JOIN_NONCE, &wire::encode(RecordVersion::FIRST, &fresh))?;
    Ok(fresh)
}

/// Records durably why the node of this directory is quarantined. [`open()`](crate::open()) then
/// refuses the directory.
///
/// # Errors
/// File system errors.
pub fn leave(dir: &Path, reason: &str) -> Result<()> {
    write_durably(dir, LEFT, reason.as_bytes())
}

/// Fails if the node of this directory is quarantined.
pub(crate) fn check_left(dir: &Path) -> Result<()> {
    match read(dir, LEFT)? {
        Some(reason) => {
            let reason = String::from_utf8_lossy(&reason).into_owned();
            Err(OpenError::Left(dir.to_owned(), reason))
        }
        None => Ok(()),
    }
}

/// Ids of the former clusters of a node that was recovered alone. The node rejects connections of
/// their nodes.
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

/// The lines of a file of a data directory; none if it does not exist.
pub(crate) fn lines(dir: &Path, name: &str) -> Result<Vec<String>> {
    let bytes = read(dir, name)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().map(str::to_owned).collect())
}

/// Adds a line to a file of a data directory durably, unless the file contains it.
pub(crate) fn add_line(dir: &Path, name: &str, words: &str) -> Result<()> {
    let mut lines = lines(dir, name)?;
    if !lines.iter().any(|line| line == words) {
        lines.push(words.to_owned());
    }
    write_durably(dir, name, (lines.join("\n") + "\n").as_bytes())
}

/// Increments the start count durably and returns it.
pub(crate) fn next_boot(dir: &Path) -> Result<u64> {
    let boot = boots(dir)? + 1;
    set_boots(dir, boot)?;
    Ok(boot)
}

/// Stores the start count durably.
pub(crate) fn set_boots(dir: &Path, boots: u64) -> Result<()> {
    write_durably(dir, BOOT, &wire::encode(RecordVersion::FIRST, &boots))
}

/// Replaces a file atomically and durably: after a crash it is the old or the new one.
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

/// Exclusive or shared lock of a data directory, held until dropped.
pub(crate) struct DirLock {
    _file: File,
}

/// Whether any process, including this one, has the data directory open. A store is closed when its
/// last handle is dropped, including the handles of openraft's tasks.
pub fn in_use(dir: &Path) -> bool {
    matches!(lock(dir), Err(OpenError::Locked { .. }))
}

/// Locks the data directory for this process.
pub(crate) fn lock(dir: &Path) -> Result<DirLock> {
    let path = dir.join(LOCK);
    let file = files::to_write()
        .open(&path)
        .map_err(|error| OpenError::io("open", &path, error))?;
    let mut file = held(dir, file, File::try_lock)?;
    file.set_len(0)
        .and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()))
        .map_err(|error| OpenError::io("write", &path, error))?;
    Ok(DirLock { _file: file })
}

/// Takes a shared lock for reading, without writing to the directory; no node can start on it in
/// the meantime. `None` if no node has ever started.
pub(crate) fn lock_to_read(dir: &Path) -> Result<Option<DirLock>> {
    let path = dir.join(LOCK);
    let file =
        files::if_there(File::open(&path)).map_err(|error| OpenError::io("open", &path, error))?;
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
    // The process id is optional in the message: the process with the lock may not have written it
    // yet.
    let _ = lock.read_to_string(&mut holder);
    let holder = match holder.trim() {
        "" => String::new(),
        process => format!(" (process {process})"),
    };
    OpenError::Locked(dir.to_owned(), holder)
}

/// The files of a database's write-ahead log with their lengths, the newest last, including files
/// that are kept for reuse.
///
/// # Errors
/// File system errors.
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
            // The file was renamed or removed in the meantime.
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
    fn parent_of_each_created_directory_is_synced() {
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
