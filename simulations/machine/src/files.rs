//! The plain files of simulated machines: a machine that loses its power loses what was not synced,
//! bytes, names and directories. Only syncs are noted, with what they found: that is all that a
//! disk promises to keep.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use placement_raft_store::PowerFails;

use crate::gate::Gate;

/// How many of [`POINTS`] belong to the start of a node.
pub const START_POINTS: usize = 5;

/// The moments at which the power of a simulated machine may fail: those of a start, and the
/// others.
pub const POINTS: [&str; 15] = [
    "a draft is written",
    "a draft is synced",
    "a draft is renamed",
    "the store is opened",
    "the start is counted",
    "the rows are flushed",
    "a snapshot is renamed",
    "a snapshot has come in",
    "a snapshot is to be installed",
    "the rows are to be replaced",
    "the rows are replaced",
    "a snapshot is installed",
    "the log is to be truncated",
    "the log is written",
    "the log is synced",
];

thread_local! {
    static DISKS: RefCell<Disks> = const { RefCell::new(Disks::new()) };
}

/// The disks of the machines that this thread simulates.
#[derive(Debug)]
struct Disks {
    /// Where each machine's disk is mounted, and what shall happen on it.
    mounts: BTreeMap<PathBuf, Mount>,
    /// What each file holds durably, by its inode.
    contents: BTreeMap<u64, Vec<u8>>,
    /// The durable names of each directory, with their inodes.
    names: BTreeMap<PathBuf, BTreeMap<OsString, u64>>,
}

#[derive(Debug, Default)]
struct Mount {
    /// The point at which the power shall fail, once.
    armed: Option<&'static str>,
    /// Where it has failed.
    failed_at: Option<&'static str>,
}

/// Makes a file's bytes durable.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    match is_mounted() {
        true => DISKS.with_borrow_mut(|disks| disks.note(file)),
        false => file.sync_data(),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    match is_mounted() {
        true => DISKS.with_borrow_mut(|disks| disks.note_dir(dir)),
        false => File::open(dir)?.sync_all(),
    }
}

fn is_mounted() -> bool {
    DISKS.with_borrow(|disks| !disks.mounts.is_empty())
}

/// A place on a disk, as its machine sees it.
pub(crate) fn shown(path: &Path) -> PathBuf {
    DISKS.with_borrow(|disks| {
        let mut seen = (disks.mounts.keys()).filter_map(|top| path.strip_prefix(top).ok());
        seen.next().unwrap_or(path).to_owned()
    })
}

/// Whether the power of a machine fails at this point of its work on `path`.
pub(crate) fn power_fails(name: &'static str, path: &Path) -> bool {
    debug_assert!(POINTS.contains(&name), "{name:?} is a point that is listed");
    let fails = DISKS.with(|disks| disks.borrow_mut().fails_at(name, path));
    // No other task of the machine may say anything any more.
    if let Some(gate) = Gate::current().filter(|_| fails) {
        gate.close();
    }
    fails
}

/// Does the work of a simulated machine. `None`: the power has failed in the middle of it.
pub(crate) fn until_power_fails<T>(work: impl FnOnce() -> T) -> Option<T> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(done) => Some(done),
        Err(panic) if panic.is::<PowerFails>() => None,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Says that a simulated machine's disk is mounted at `top`: from now on this thread's syncs are
/// noted.
pub(crate) fn mount(top: &Path) -> io::Result<()> {
    DISKS.with(|disks| {
        let mut disks = disks.borrow_mut();
        disks.mounts.insert(top.to_owned(), Mount::default());
        disks.note_dir(top)
    })
}

/// Says that the machine is no more.
pub(crate) fn unmount(top: &Path) {
    DISKS.with(|disks| {
        let mut disks = disks.borrow_mut();
        disks.mounts.remove(top);
        disks.names.retain(|dir, _| !dir.starts_with(top));
        if disks.mounts.is_empty() {
            disks.contents.clear();
        }
    });
}

/// Has the power of a machine fail when it next comes to a point, or not at all.
pub(crate) fn arm(top: &Path, point: Option<&'static str>) {
    let mount = Mount {
        armed: point,
        failed_at: None,
    };
    DISKS.with(|disks| disks.borrow_mut().mounts.insert(top.to_owned(), mount));
}

/// The point at which the power of a machine has failed.
pub(crate) fn failed_at(top: &Path) -> Option<&'static str> {
    DISKS.with(|disks| disks.borrow().mounts.get(top)?.failed_at)
}

/// Takes away what was not durable on a machine's disk, but for what `is_kept` lets pass: a disk
/// may have done more than it was asked. RocksDB's directories are there or not there, as a whole.
/// Returns how many files and names were lost.
pub(crate) fn lose_unsynced(
    top: &Path,
    rocks: &[&str],
    is_kept: &mut dyn FnMut() -> bool,
) -> io::Result<u64> {
    DISKS.with(|disks| {
        let mut disks = disks.borrow_mut();
        match disks.mounts.contains_key(top) {
            true => disks.lose(top, rocks, is_kept),
            false => Ok(0),
        }
    })
}

impl Disks {
    const fn new() -> Self {
        Self {
            mounts: BTreeMap::new(),
            contents: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    fn note(&mut self, file: &File) -> io::Result<()> {
        let found = file.metadata()?;
        let length = usize::try_from(found.len()).map_err(io::Error::other)?;
        let mut content = vec![0; length];
        file.read_exact_at(&mut content, 0)?;
        self.contents.insert(found.ino(), content);
        Ok(())
    }

    fn note_dir(&mut self, dir: &Path) -> io::Result<()> {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            names.insert(entry.file_name(), entry.metadata()?.ino());
        }
        let before = self.names.insert(dir.to_owned(), names);
        // A file without a durable name is not found again. Its inode may be another file's by now.
        for inode in before.into_iter().flat_map(BTreeMap::into_values) {
            let mut durable = self.names.values().flat_map(BTreeMap::values);
            if !durable.any(|one| *one == inode) {
                self.contents.remove(&inode);
            }
        }
        Ok(())
    }

    fn fails_at(&mut self, name: &'static str, path: &Path) -> bool {
        let mut mounts = self.mounts.iter_mut();
        let Some((_, mount)) = mounts.find(|(top, _)| path.starts_with(top)) else {
            return false;
        };
        if mount.armed != Some(name) {
            return false;
        }
        mount.armed = None;
        mount.failed_at = Some(name);
        true
    }

    fn lose(
        &mut self,
        dir: &Path,
        rocks: &[&str],
        is_kept: &mut dyn FnMut() -> bool,
    ) -> io::Result<u64> {
        let durable = self.names.get(dir).cloned().unwrap_or_default();
        let mut found: Vec<fs::DirEntry> = fs::read_dir(dir)?.collect::<io::Result<_>>()?;
        found.sort_by_key(fs::DirEntry::file_name);
        let mut lost = 0;
        for entry in &found {
            let (name, path, about) = (entry.file_name(), entry.path(), entry.metadata()?);
            let is_rocks = rocks.iter().any(|one| name == *one);
            match durable.get(&name) {
                None if !is_kept() => {
                    lost += 1;
                    match about.is_dir() {
                        true => fs::remove_dir_all(&path)?,
                        false => fs::remove_file(&path)?,
                    }
                }
                _ if is_rocks => {}
                _ if about.is_dir() => lost += self.lose(&path, rocks, is_kept)?,
                // Another file may have been renamed to this name.
                Some(inode) => lost += u64::from(self.restore(&path, *inode, is_kept)?),
                None => lost += u64::from(self.restore(&path, about.ino(), is_kept)?),
            }
        }
        // Names that were taken away, which no one made sure of.
        for (name, inode) in &durable {
            let is_there = found.iter().any(|entry| entry.file_name() == *name);
            if !is_there && self.contents.contains_key(inode) && !is_kept() {
                lost += u64::from(self.restore(&dir.join(name), *inode, &mut || false)?);
            }
        }
        // What is found now is what there is.
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_file() {
                self.note(&File::open(&path)?)?;
            }
        }
        self.note_dir(dir)?;
        Ok(lost)
    }

    /// Gives a name the durable bytes of a file. Returns whether it had others.
    fn restore(
        &self,
        path: &Path,
        inode: u64,
        is_kept: &mut dyn FnMut() -> bool,
    ) -> io::Result<bool> {
        let durable = self.contents.get(&inode).map_or(&[][..], Vec::as_slice);
        let has = match fs::read(path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if has.as_deref() == Some(durable) || (has.is_some() && is_kept()) {
            return Ok(false);
        }
        fs::write(path, durable)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }

    #[test]
    fn what_is_not_synced_is_lost_bytes_and_names_and_directories() {
        let top = tempfile::TempDir::new().unwrap();
        let top = top.path();
        let dir = top.join("data");
        mount(top).unwrap();
        fs::create_dir_all(dir.join("log")).unwrap();
        sync_dir(top).unwrap();
        let create = |name: &str, text: &str| {
            let options = File::options().read(true).write(true).create(true).clone();
            let mut file = options.open(dir.join(name)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file
        };
        let synced = create("synced", "one");
        sync(&synced).unwrap();
        create("never synced", "two");
        sync_dir(&dir).unwrap();
        // Overwritten, renamed over, taken away, made: none of it is synced.
        synced.write_all_at(b"ten", 0).unwrap();
        let other = create("nameless", "three");
        sync(&other).unwrap();
        fs::create_dir(dir.join("state")).unwrap();
        assert_eq!(
            lose_unsynced(top, &["log", "state"], &mut || true).unwrap(),
            0
        );
        let lost = lose_unsynced(top, &["log", "state"], &mut || false).unwrap();
        assert_eq!(lost, 0, "what a disk has kept stays");

        synced.write_all_at(b"six", 0).unwrap();
        fs::rename(dir.join("nameless"), dir.join("synced")).unwrap();
        fs::remove_file(dir.join("never synced")).unwrap();
        fs::create_dir(dir.join("late")).unwrap();
        fs::write(dir.join("log").join("1"), "RocksDB's own").unwrap();
        let lost = lose_unsynced(top, &["log", "state"], &mut || false).unwrap();
        assert!(lost >= 3, "{lost}");
        assert_eq!(read(&dir.join("synced")).as_deref(), Some("ten"));
        assert_eq!(read(&dir.join("nameless")).as_deref(), Some("three"));
        assert_eq!(read(&dir.join("never synced")).as_deref(), Some("two"));
        assert!(!dir.join("late").exists());
        assert!(dir.join("log").join("1").exists() && dir.join("state").exists());
        unmount(top);
        assert!(!is_mounted());
    }

    #[test]
    fn a_file_whose_bytes_were_never_synced_is_found_empty() {
        let top = tempfile::TempDir::new().unwrap();
        let path = top.path().join("name");
        mount(top.path()).unwrap();
        fs::write(&path, "text").unwrap();
        sync_dir(top.path()).unwrap();
        lose_unsynced(top.path(), &[], &mut || false).unwrap();
        assert_eq!(read(&path).as_deref(), Some(""));
        unmount(top.path());
    }

    /// A file system gives the inode of a file that is gone to the next one; here both are there.
    #[test]
    fn a_file_is_kept_as_long_as_a_directory_names_it() {
        let top = tempfile::TempDir::new().unwrap();
        let dirs = ["one", "other"].map(|name| top.path().join(name));
        mount(top.path()).unwrap();
        for dir in &dirs {
            fs::create_dir(dir).unwrap();
        }
        sync_dir(top.path()).unwrap();
        fs::write(dirs[0].join("gone"), "text").unwrap();
        sync(&File::open(dirs[0].join("gone")).unwrap()).unwrap();
        sync_dir(&dirs[0]).unwrap();
        fs::hard_link(dirs[0].join("gone"), dirs[1].join("here")).unwrap();
        sync_dir(&dirs[1]).unwrap();
        fs::remove_file(dirs[0].join("gone")).unwrap();
        sync_dir(&dirs[0]).unwrap();
        lose_unsynced(top.path(), &[], &mut || false).unwrap();
        assert_eq!(read(&dirs[1].join("here")).as_deref(), Some("text"));
        unmount(top.path());
    }

    fn point(name: &'static str, path: &Path) {
        if power_fails(name, path) {
            std::panic::resume_unwind(Box::new(PowerFails));
        }
    }

    #[test]
    fn the_power_fails_at_the_point_that_was_chosen_and_nothing_comes_after() {
        let top = tempfile::TempDir::new().unwrap();
        let top = top.path();
        mount(top).unwrap();
        let [first, second, third, ..] = POINTS;
        arm(top, Some(second));
        let mut came = Vec::new();
        let done = until_power_fails(|| {
            for name in [first, second, third] {
                point(second, Path::new("/another/machine"));
                point(name, &top.join("file"));
                came.push(name);
            }
        });
        assert_eq!(
            (done, came, failed_at(top)),
            (None, vec![first], Some(second))
        );
        arm(top, None);
        assert_eq!(until_power_fails(|| point(second, top)), Some(()));
        assert_eq!(failed_at(top), None);
        unmount(top);
    }
}
