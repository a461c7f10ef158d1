//! `placementctl backup`: writes a backup of the running cluster to a file.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use placement_client::{BackupError, BackupStream, Endpoint, Trust};

use crate::files::{Draft, unless_interrupted};

/// Delay before the first progress report.
pub(crate) const PROGRESS_AFTER: Duration = Duration::from_secs(2);
/// Interval of progress reports.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Writes a backup to `target`; `-` is standard output.
pub(crate) async fn take(
    endpoints: &[Endpoint],
    trust: &Trust,
    target: &Path,
    patience: Duration,
) -> anyhow::Result<()> {
    let taken = take_into(endpoints, trust, target, patience);
    unless_interrupted(taken, "no backup was taken").await
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
    let mut draft = Draft::create(target)?;
    let mut stream = BackupStream::begin(endpoints, trust, patience).await?;
    let cannot = || format!("cannot write {}", target.display());
    copy(&mut stream, &mut draft.file)
        .await
        .map_err(|error| match error {
            BackupError::Write(error) => anyhow::Error::new(error).context(cannot()),
            error => error.into(),
        })?;
    draft.finish()?;
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
