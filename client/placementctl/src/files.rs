//! Reading and writing files.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use tempfile::NamedTempFile;
use tokio::signal::unix::{SignalKind, signal};

/// The content of a file; `-` is standard input.
pub(crate) fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let is_input = file == Path::new("-");
    let path = is_input.then_some(Path::new("/dev/stdin"));
    fs::read(path.unwrap_or(file)).with_context(|| format!("cannot read {}", file.display()))
}

/// Creates a file with these permissions. Fails if it exists: it may be in use.
pub(crate) fn create(path: &Path, mode: u32) -> anyhow::Result<File> {
    let mut options = File::options();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    file.with_context(|| format!("cannot create {}", path.display()))
}

/// Replaces a file atomically, with these permissions. If this fails, the old file is unchanged.
pub(crate) fn replace(path: &Path, mode: u32, content: &[u8]) -> anyhow::Result<()> {
    let written = || -> std::io::Result<()> {
        let mut draft = NamedTempFile::new_in(dir_of(path))?;
        draft.write_all(content)?;
        (draft.as_file()).set_permissions(Permissions::from_mode(mode))?;
        draft.as_file().sync_all()?;
        draft.persist(path)?;
        Ok(())
    };
    written().with_context(|| format!("cannot write {}", path.display()))?;
    sync_dir(path)
}

/// Syncs the directory of a file, so that its name survives a crash.
pub(crate) fn sync_dir(file: &Path) -> anyhow::Result<()> {
    let dir = dir_of(file);
    (File::open(dir).and_then(|dir| dir.sync_all()))
        .with_context(|| format!("cannot sync {}", dir.display()))
}

fn dir_of(file: &Path) -> &Path {
    let parent = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// An incomplete file with a unique temporary name, readable by its owner only. Removed when
/// dropped.
pub(crate) struct Draft<'a> {
    pub(crate) file: NamedTempFile,
    target: &'a Path,
}

impl<'a> Draft<'a> {
    /// Creates the file in the directory of the target. Fails if the target exists.
    pub(crate) fn create(target: &'a Path) -> anyhow::Result<Self> {
        if target.exists() {
            bail!("{} exists already; nothing was changed", target.display());
        }
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(".");
        let mut builder = tempfile::Builder::new();
        let made = (builder.prefix(&name).suffix(".part")).tempfile_in(dir_of(target));
        let file = made.map_err(|error| {
            // Its text ends with the temporary name.
            let text = error.to_string();
            let reason = text.split(" at path ").next().unwrap_or(&text);
            anyhow!(
                "cannot create a file in {}: {reason}",
                dir_of(target).display()
            )
        })?;
        Ok(Self { file, target })
    }

    /// Syncs the file and renames it to its target, unless the target exists by now.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        let Self { file, target } = self;
        (file.as_file().sync_all())
            .and_then(|()| Ok(file.persist_noclobber(target)?))
            .with_context(|| format!("cannot write {}", target.display()))?;
        sync_dir(target)
    }
}

/// Runs `work`. SIGINT or SIGTERM cancels it and removes its drafts; the error message then ends
/// with `left`, which states what remains.
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
