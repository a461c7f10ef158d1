//! Files that are read and made.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;

/// A file's content; `-` is standard input.
pub(crate) fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let is_input = file == Path::new("-");
    let path = is_input.then_some(Path::new("/dev/stdin"));
    fs::read(path.unwrap_or(file)).with_context(|| format!("cannot read {}", file.display()))
}

/// A new file with these permissions. One that exists is not changed: it may be in use.
pub(crate) fn create(path: &Path, mode: u32) -> anyhow::Result<File> {
    let mut options = File::options();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    file.with_context(|| format!("cannot create {}", path.display()))
}

/// Brings the name of a file to the disk.
pub(crate) fn sync_dir(file: &Path) -> anyhow::Result<()> {
    let parent = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = parent.unwrap_or(Path::new("."));
    (File::open(dir).and_then(|dir| dir.sync_all()))
        .with_context(|| format!("cannot sync {}", dir.display()))
}
