//! `placementd import` and `placementd export`: converts a dump of OpenStack Placement's database
//! to a backup, and a backup to SQL for that database.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail, ensure};
use placement_model::types::Timestamp;
use placement_raft_store::{Backup, RestoreError, Until, imported, write_backup};
use placement_transfer::{Dialect, Export};
use placement_words::inert_lines;
use tempfile::NamedTempFile;

use super::print;
use crate::Env;

/// Makes a backup from a dump, and prints what was read and notable findings.
pub(crate) fn import(dump: &Path, out: &Path) -> anyhow::Result<()> {
    check_absent(out)?;
    let source: Box<dyn Read> = match dump.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(File::open(dump).with_context(|| dump.display().to_string())?),
    };
    let import = placement_transfer::import(source).with_context(|| dump.display().to_string())?;
    let (identity, applied) = imported(import.state.into());
    write_whole(out, |target| write_backup(target, &identity, &applied))?;
    print(&inert_lines(&import.report.to_string()))?;
    eprintln!(
        "wrote {}. Create a cluster from it with `placementd restore --from` on each of \
        initial_members, or import it into a partition of a running cluster with `placementctl \
        partitions import`",
        out.display()
    );
    Ok(())
}

/// Writes a partition of a backup, or of a running cluster, as SQL, to a file or to standard
/// output.
pub(crate) fn export(
    from: &Path,
    partition: &str,
    dialect: Dialect,
    out: Option<&Path>,
) -> anyhow::Result<()> {
    let backup = match from.to_str() {
        Some(endpoint) if is_endpoint(endpoint) => taken(endpoint)?,
        _ => read(from)?,
    };
    let position = format!("{}.{}", backup.info.epoch, backup.info.index);
    let Some((_, state)) = backup.cluster().partition_named(partition) else {
        let others = backup
            .cluster()
            .partitions()
            .map(|(_, row, _)| row.name.as_str());
        bail!(
            "the backup has no partition {partition:?}; it has default {}",
            others.collect::<Vec<_>>().join(" ")
        );
    };
    let holds = state.hold_counts(Timestamp::default()).holds;
    if holds > 0 {
        eprintln!(
            "placementd: warning: the database has no holds, so {holds} are written as ordinary consumers"
        );
    }
    if state.limits().is_some() {
        eprintln!(
            "placementd: warning: the database has no limits of projects, so they are not written"
        );
    }
    let Export { notes, .. } = match out {
        None => {
            let mut target = BufWriter::new(io::stdout().lock());
            let export = placement_transfer::export(state, &position, dialect, &mut target)?;
            target.flush()?;
            export
        }
        Some(out) => {
            check_absent(out)?;
            write_whole(out, |target| {
                placement_transfer::export(state, &position, dialect, target)
            })?
        }
    };
    if !notes.is_empty() {
        let notes = inert_lines(&notes.to_string());
        eprintln!("placementd: warning: the database may refuse this:\n{notes}");
    }
    Ok(())
}

fn read(from: &Path) -> Result<Backup, RestoreError> {
    Backup::read(from, Until::End, &*Env::production().storage.applier)
}

fn is_endpoint(from: &str) -> bool {
    let mut schemes = ["unix:/", "http://", "https://"].iter();
    schemes.any(|scheme| from.starts_with(scheme))
}

/// A backup of the cluster behind an admin listener. `placementctl` makes it, because it can
/// connect to these listeners; the server contains no client.
fn taken(endpoint: &str) -> anyhow::Result<Backup> {
    let tool = std::env::current_exe()?.with_file_name("placementctl");
    let mut taking = Command::new(&tool)
        .args(["--endpoint", endpoint, "backup", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}, which takes the backup", tool.display()))?;
    let pipe = taking.stdout.take().expect("stdout is piped");
    let backup = read(format!("/proc/self/fd/{}", pipe.as_raw_fd()).as_ref());
    // Close the pipe before waiting: if it was not read to its end, the writer could block.
    drop(pipe);
    let status = taking.wait()?;
    ensure!(
        status.success(),
        "no backup was taken of {endpoint}: {status}"
    );
    Ok(backup?)
}

fn check_absent(out: &Path) -> anyhow::Result<()> {
    match out.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => bail!("{} already exists: use a new file name", out.display()),
        Err(error) => Err(anyhow!(error).context(out.display().to_string())),
    }
}

/// Writes a file that appears under its name only when it is complete. It is not synced: it can be
/// created again. Its draft has an unpredictable name.
fn write_whole<T>(
    out: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<T>,
) -> anyhow::Result<T> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".");
    let written = || -> io::Result<T> {
        let draft: NamedTempFile = (tempfile::Builder::new().prefix(&name).suffix(".part"))
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        let mut target = BufWriter::with_capacity(1 << 20, draft.as_file());
        let done = write(&mut target)?;
        target.flush()?;
        drop(target);
        draft.persist_noclobber(out)?;
        Ok(done)
    };
    written().with_context(|| format!("{} cannot be written", out.display()))
}
