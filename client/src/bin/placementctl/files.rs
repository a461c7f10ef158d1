//! Files that are read and made.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tokio::signal::unix::{SignalKind, signal};

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

/// What has come so far of a file for its owner alone, under another name. Removed when it is dropped; once it is
/// finished there is nothing to remove.
pub(crate) struct Draft {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

impl Draft {
    /// Begins a file, which must not exist.
    pub(crate) fn of(target: &Path) -> anyhow::Result<Self> {
        if target.exists() {
            bail!("{} exists already; nothing was changed", target.display());
        }
        let mut name = target.as_os_str().to_owned();
        name.push(".part");
        let path = PathBuf::from(name);
        // One that was left behind may be open to others.
        let _ = fs::remove_file(&path);
        let file = create(&path, 0o600)?;
        Ok(Self { path, file })
    }

    /// Gives it its name once it is on the disk.
    pub(crate) fn finish(self, target: &Path) -> anyhow::Result<()> {
        let (from, to) = (self.path.display(), target.display());
        (self.file.sync_all()).with_context(|| format!("cannot write {from}"))?;
        fs::rename(&self.path, target).with_context(|| format!("cannot rename {from} to {to}"))?;
        sync_dir(target)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Carries something out unless it is interrupted, which removes its drafts.
pub(crate) async fn unless_interrupted<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    left: &str,
) -> anyhow::Result<T> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        done = work => done,
        _ = terminate.recv() => bail!("interrupted; {left}"),
        _ = interrupt.recv() => bail!("interrupted; {left}"),
    }
}
