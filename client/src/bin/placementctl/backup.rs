//! `placementctl backup`: a backup of the running cluster, into a file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use placement_client::{BackupError, BackupStream, Endpoint, Trust};
use tokio::signal::unix::{SignalKind, signal};

use crate::files::sync_dir;

/// What takes longer than this says how far it is.
pub(crate) const PROGRESS_AFTER: Duration = Duration::from_secs(2);
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Takes a backup into `target`, or to standard output for `-`.
pub(crate) async fn take(
    endpoints: &[Endpoint],
    trust: &Trust,
    target: &Path,
    patience: Duration,
) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        taken = take_into(endpoints, trust, target, patience) => taken,
        _ = terminate.recv() => bail!("interrupted; no backup was taken"),
        _ = interrupt.recv() => bail!("interrupted; no backup was taken"),
    }
}

async fn take_into(
    endpoints: &[Endpoint],
    trust: &Trust,
    target: &Path,
    patience: Duration,
) -> anyhow::Result<()> {
    if target == Path::new("-") {
        let mut stream = BackupStream::begin(endpoints, trust, patience).await?;
        let mut stdout = io::stdout().lock();
        copy(&mut stream, &mut stdout).await?;
        stdout.flush().context("cannot write to standard output")?;
        eprintln!("{}\nbytes: {}", stream.report, stream.bytes());
        return Ok(());
    }
    if target.exists() {
        bail!("{} exists already; nothing was changed", target.display());
    }
    let draft = Draft::next_to(target)?;
    let mut stream = BackupStream::begin(endpoints, trust, patience).await?;
    let cannot = || format!("cannot write {}", draft.path.display());
    copy(&mut stream, &mut &draft.file)
        .await
        .map_err(|error| match error {
            BackupError::Write(error) => anyhow::Error::new(error).context(cannot()),
            error => error.into(),
        })?;
    draft.file.sync_all().with_context(cannot)?;
    let (from, to) = (draft.path.display(), target.display());
    fs::rename(&draft.path, target).with_context(|| format!("cannot rename {from} to {to}"))?;
    sync_dir(target)?;
    println!("{}\nbytes: {}", stream.report, stream.bytes());
    Ok(())
}

async fn copy(stream: &mut BackupStream, target: &mut impl Write) -> Result<(), BackupError> {
    let mut say_at = Instant::now() + PROGRESS_AFTER;
    while let Some(piece) = stream.next().await? {
        target.write_all(&piece)?;
        if Instant::now() >= say_at {
            say_at = Instant::now() + PROGRESS_EVERY;
            eprintln!("{:.1} MB", stream.bytes() as f64 / 1e6);
        }
    }
    Ok(())
}

/// What has come so far, under another name. Removed when it is dropped; once it is renamed there is
/// nothing to remove.
struct Draft {
    path: PathBuf,
    file: File,
}

impl Draft {
    fn next_to(target: &Path) -> anyhow::Result<Self> {
        let mut name = target.as_os_str().to_owned();
        name.push(".part");
        let path = PathBuf::from(name);
        let mut options = File::options();
        // A backup holds all allocations of a cloud: only its owner may read it.
        options.write(true).create(true).truncate(true).mode(0o600);
        let file =
            (options.open(&path)).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path, file })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
