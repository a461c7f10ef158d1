//! Plain files, and what of them is durable.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::platform::{PowerFails, here};

/// `None` of a file that is not there.
pub(crate) fn if_there<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// Opens a file to read and write it; makes it if it is not there.
pub(crate) fn to_write() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).create(true);
    options
}

/// Makes a file's bytes durable.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    here(|platform| platform.sync(file))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    here(|platform| platform.sync_dir(None, dir))
}

/// The same through a handle that is open already.
pub(crate) fn sync_open_dir(handle: &File, dir: &Path) -> io::Result<()> {
    here(|platform| platform.sync_dir(Some(handle), dir))
}

/// A moment at which a simulated machine may lose its power: `path` is what is worked on. What
/// comes after it is then not done.
pub(crate) fn point(name: &'static str, path: &Path) {
    if power_fails(name, path) {
        std::panic::resume_unwind(Box::new(PowerFails));
    }
}

/// The same where the work can stop by itself: whether the power fails.
pub(crate) fn power_fails(name: &'static str, path: &Path) -> bool {
    here(|platform| platform.power_fails(name, path))
}
