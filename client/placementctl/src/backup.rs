//! `placementctl backup`: writes a backup of the running cluster to a file.

use std::io::{self, Write};
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::Context;
use placement_client::{BackupError, BackupReport, BackupStream, Endpoint, Trust};
use placement_words::inert_lines;
use serde::Serialize;
use tokio::time::sleep;

use crate::files::Draft;
use crate::render::{Output, Rows, print, warn};

/// Delay before the first progress report.
pub(crate) const PROGRESS_AFTER: Duration = Duration::from_secs(2);
/// Interval of progress reports.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// A backup that was written.
#[derive(Clone, Serialize)]
struct Taken {
    file: String,
    bytes: u64,
    #[serde(flatten)]
    report: BackupReport,
}

impl Taken {
    fn new(target: &Path, stream: &BackupStream) -> Self {
        Self {
            file: target.display().to_string(),
            bytes: stream.bytes(),
            report: stream.report.clone(),
        }
    }

    fn printed(&self, output: &Output) -> anyhow::Result<String> {
        let rows = rows(vec![self.clone()]);
        let text = |_| format!("{}\nbytes: {}\n", self.report, self.bytes);
        output.report(self, Some(rows), text)
    }
}

fn rows(taken: Vec<Taken>) -> Rows<Taken> {
    Rows::new(taken)
        .column("file", |taken: &Taken| taken.file.clone())
        .column("bytes", |taken| taken.bytes)
        .column("cluster_id", |taken| taken.report.cluster_id.clone())
        .column("index", |taken| taken.report.index)
        .column("digest", |taken| taken.report.digest.clone())
}

/// Writes a backup to `target`; `-` is standard output.
pub(crate) async fn take(
    endpoints: &[Endpoint],
    trust: &Trust,
    target: &Path,
    output: &Output,
    patience: Duration,
) -> anyhow::Result<()> {
    output.check_columns(&rows(Vec::new()))?;
    if target == Path::new("-") {
        let mut stream = begin(endpoints, trust, patience).await?;
        let mut stdout = io::stdout().lock();
        copy(&mut stream, &mut stdout).await?;
        stdout.flush().context("cannot write to standard output")?;
        let taken = Taken::new(target, &stream).printed(output)?;
        eprint!("{}", inert_lines(&taken));
        return Ok(());
    }
    let mut draft = Draft::create(target)?;
    let mut stream = begin(endpoints, trust, patience).await?;
    let cannot = || format!("cannot write {}", target.display());
    copy(&mut stream, &mut draft.file)
        .await
        .map_err(|error| match error {
            BackupError::Write(error) => anyhow::Error::new(error).context(cannot()),
            error => error.into(),
        })?;
    draft.finish()?;
    print(&Taken::new(target, &stream).printed(output)?)
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

/// Asks the nodes for a backup. Reports a long wait for the first answer.
async fn begin(
    endpoints: &[Endpoint],
    trust: &Trust,
    patience: Duration,
) -> Result<BackupStream, BackupError> {
    let mut begun = pin!(BackupStream::begin(endpoints, trust, patience));
    tokio::select! {
        biased;
        stream = &mut begun => return stream,
        () = sleep(PROGRESS_AFTER) => {
            warn(&format!("no node sends a backup yet; each node has {patience:?} to answer"));
        }
    }
    begun.await
}
