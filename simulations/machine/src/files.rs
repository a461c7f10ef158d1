//! The plain files of simulated machines. A loss of power discards unsynced bytes, names and
//! directories. Only syncs are recorded, with the content that they made durable, since a disk
//! promises no more than that.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use placement_base::platform::PowerFails;

use crate::gate::Gate;

/// Number of [`POINTS`] that a node passes while it starts; they are the first ones.
pub const START_POINTS: usize = 5;

/// The moments at which the power of a simulated machine may fail.
pub const POINTS: [&str; 15] = [
    "a draft is written",
    "a draft is synced",
    "a draft is renamed",
    "the store is opened",
    "the start is counted",
    "the rows are flushed",
    "a snapshot is renamed",
    "a snapshot has come in",
    "a snapshot is about to be installed",
    "the rows are about to be replaced",
    "the rows are replaced",
    "a snapshot is installed",
    "the log is about to be truncated",
    "the log is written",
    "the log is synced",
];

thread_local! {
    static DISKS: RefCell<Disks> = const { RefCell::new(Disks::new()) };
}

/// The disks of the machines that this thread simulates.
#[derive(Debug)]
struct Disks {
    /// Mount points of the machines, with the power failures planned on them.
    mounts: BTreeMap<PathBuf, Mount>,
    /// Durable content by inode.
    contents: BTreeMap<u64, Vec<u8>>,
    /// Durable names of each directory, with their inodes.
    names: BTreeMap<PathBuf, BTreeMap<OsString, u64>>,
}

#[derive(Debug, Default)]
struct Mount {
    /// The point at which the power fails, once.
    armed: Option<&'static str>,
    /// The point at which it failed.
    failed_at: Option<&'static str>,
}

/// Makes the content of a file durable.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    if is_mounted() {
        DISKS.with_borrow_mut(|disks| disks.note(file))
    } else {
        file.sync_data()
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    if is_mounted() {
        DISKS.with_borrow_mut(|disks| disks.note_dir(dir))
    } else {
        File::open(dir)?.sync_all()
    }
}

fn is_mounted() -> bool {
    DISKS.with_borrow(|disks| !disks.mounts.is_empty())
}

/// A path as its machine sees it: relative to the mount point.
pub(crate) fn shown(path: &Path) -> PathBuf {
    DISKS.with_borrow(|disks| {
        let mut seen = (disks.mounts.keys()).filter_map(|top| path.strip_prefix(top).ok());
        seen.next().unwrap_or(path).to_owned()
    })
}

/// Whether the power of a machine fails at this point of its work on `path`. If so, its gate
/// closes.
pub(crate) fn power_fails(name: &'static str, path: &Path) -> bool {
    debug_assert!(POINTS.contains(&name), "{name:?} is not listed in POINTS");
    let fails = DISKS.with(|disks| disks.borrow_mut().fails_at(name, path));
    // No other task of the machine may send anything after this.
    if let Some(gate) = Gate::current().filter(|_| fails) {
        gate.close();
    }
    fails
}

/// Runs work of a simulated machine. Returns `None` if the power failed during the work.
pub(crate) fn until_power_fails<T>(work: impl FnOnce() -> T) -> Option<T> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(done) => Some(done),
        Err(panic) if panic.is::<PowerFails>() => None,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Mounts the disk of a simulated machine at `top`: syncs of this thread are recorded from now on.
pub(crate) fn mount(top: &Path) -> io::Result<()> {
    DISKS.with(|disks| {
        let mut disks = disks.borrow_mut();
        disks.mounts.insert(top.to_owned(), Mount::default());
        disks.note_dir(top)
    })
}

/// Removes the disk of a machine.
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

/// Cuts the power of a machine when it next reaches this point; `None` disarms it.
pub(crate) fn arm(top: &Path, point: Option<&'static str>) {
    let mount = Mount {
        armed: point,
        failed_at: None,
    };
    DISKS.with(|disks| disks.borrow_mut().mounts.insert(top.to_owned(), mount));
}

/// The point at which the power of a machine failed.
pub(crate) fn failed_at(top: &Path) -> Option<&'static str> {
    DISKS.with(|disks| disks.borrow().mounts.get(top)?.failed_at)
}

/// Discards everything on a machine's disk that is not durable, except what `is_kept` lets survive:
/// a disk may have written more than the node has synced. RocksDB's directories survive or vanish
/// as a whole. Returns the number of files and names lost.
pub(crate) fn lose_unsynced(
    top: &Path,
    rocks: &[&str],
    is_kept: &mut dyn FnMut() -> bool,
) -> io::Result<u64> {
    DISKS.with(|disks| {
        let mut disks = disks.borrow_mut();
        if disks.mounts.contains_key(top) {
            disks.lose(top, rocks, is_kept)
        } else {
            Ok(0)
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
        // A file without a durable name cannot be found again, and its inode may be reused.
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
                    if about.is_dir() {
                        fs::remove_dir_all(&path)?
                    } else {
                        fs::remove_file(&path)?
                    }
                }
                _ if is_rocks => {}
                _ if about.is_dir() => lost += self.lose(&path, rocks, is_kept)?,
                // Another file may have been renamed to this name.
                Some(inode) => lost += u64::from(self.restore(&path, *inode, is_kept)?),
                None => lost += u64::from(self.restore(&path, about.ino(), is_kept)?),
            }
        }
        // Unsynced removals are undone.
        for (name, inode) in &durable {
            let is_there = found.iter().any(|entry| entry.file_name() == *name);
            if !is_there && self.contents.contains_key(inode) && !is_kept() {
                lost += u64::from(self.restore(&dir.join(name), *inode, &mut || false)?);
            }
        }
        // The disk now holds exactly the files found here.
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_file() {
                self.note(&File::open(&path)?)?;
            }
        }
        self.note_dir(dir)?;
        Ok(lost)
    }

    /// Writes the durable bytes of a file to a name. Returns whether the file had other bytes.
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
    fn unsynced_bytes_names_and_directories_are_lost() {
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
        // The following writes, renames, removals and creations are not synced.
        synced.write_all_at(b"ten", 0).unwrap();
        let other = create("nameless", "three");
        sync(&other).unwrap();
        fs::create_dir(dir.join("state")).unwrap();
        assert_eq!(
            lose_unsynced(top, &["log", "state"], &mut || true).unwrap(),
            0
        );
        let lost = lose_unsynced(top, &["log", "state"], &mut || false).unwrap();
        assert_eq!(lost, 0, "content that survived once is durable");

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
    fn file_with_unsynced_bytes_is_found_empty() {
        let top = tempfile::TempDir::new().unwrap();
        let path = top.path().join("name");
        mount(top.path()).unwrap();
        fs::write(&path, "text").unwrap();
        sync_dir(top.path()).unwrap();
        lose_unsynced(top.path(), &[], &mut || false).unwrap();
        assert_eq!(read(&path).as_deref(), Some(""));
        unmount(top.path());
    }

    /// A file system may reuse the inode of a removed file. A hard link makes two names share an
    /// inode.
    #[test]
    fn file_is_kept_while_a_directory_names_it() {
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
    fn power_fails_at_the_armed_point_and_ends_the_work() {
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
