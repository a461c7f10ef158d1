//! File operations and their durability.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use placement_base::platform::{PowerFails, here};

/// Maps the error "not found" to `None`.
pub(crate) fn if_there<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// Opens a file for reading and writing; creates it if it does not exist.
pub(crate) fn to_write() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).create(true);
    options
}

/// Makes the content of a file durable.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    here(|platform| platform.sync(file))
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    here(|platform| platform.sync_dir(None, dir))
}

/// Like [`sync_dir`], through an open handle.
pub(crate) fn sync_open_dir(handle: &File, dir: &Path) -> io::Result<()> {
    here(|platform| platform.sync_dir(Some(handle), dir))
}

/// A point at which a simulated machine may lose power while it works on `path`. If it does, the
/// code after the point does not run.
pub(crate) fn point(name: &'static str, path: &Path) {
    if power_fails(name, path) {
        std::panic::resume_unwind(Box::new(PowerFails));
    }
}

/// Like [`point`] for code that can stop by itself: returns whether the power fails.
pub(crate) fn power_fails(name: &'static str, path: &Path) -> bool {
    here(|platform| platform.power_fails(name, path))
}
