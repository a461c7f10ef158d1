//! `placementd import` and `placementd export`: from a dump of OpenStack Placement's database to a backup, and from a backup
//! to SQL for that database.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail, ensure};
use placement_raft_store::{Backup, RestoreError, Until, imported, write_backup};
use placement_transfer::Dialect;

use crate::Env;

/// Makes a backup of a dump, and prints what was read and what the operator may want to know of it.
pub(crate) fn import(dump: &Path, out: &Path) -> anyhow::Result<()> {
    check_absent(out)?;
    let source: Box<dyn Read> = match dump.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(File::open(dump).with_context(|| dump.display().to_string())?),
    };
    let import = placement_transfer::import(source).with_context(|| dump.display().to_string())?;
    let (identity, applied) = imported(import.state.into());
    write_whole(out, |target| write_backup(target, &identity, &applied))?;
    print!("{}", import.report);
    eprintln!(
        "{} is written. Run `placementd restore --from` it for each of initial_members, or bring it into a partition of a \
         cluster that runs: `placementctl partitions import`",
        out.display()
    );
    Ok(())
}

/// Writes a partition of a backup, or of a running cluster, as SQL, into a file or to standard output.
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
    let Some(out) = out else {
        let mut target = BufWriter::new(io::stdout().lock());
        placement_transfer::export(state, &position, dialect, &mut target)?;
        return Ok(target.flush()?);
    };
    check_absent(out)?;
    write_whole(out, |target| {
        placement_transfer::export(state, &position, dialect, target).map(drop)
    })
}

fn read(from: &Path) -> Result<Backup, RestoreError> {
    Backup::read(from, Until::End, &*Env::production().storage.applier)
}

fn is_endpoint(from: &str) -> bool {
    let mut schemes = ["unix:/", "http://", "https://"].iter();
    schemes.any(|scheme| from.starts_with(scheme))
}

/// A backup of the cluster behind an admin listener. `placementctl` takes it, as it knows how listeners are reached; the
/// server does without a client.
fn taken(endpoint: &str) -> anyhow::Result<Backup> {
    let tool = std::env::current_exe()?.with_file_name("placementctl");
    let mut taking = Command::new(&tool)
        .args(["--endpoint", endpoint, "backup", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{}, which takes the backup, cannot be run", tool.display()))?;
    let pipe = taking.stdout.take().expect("it was asked for");
    let backup = read(format!("/proc/self/fd/{}", pipe.as_raw_fd()).as_ref());
    // If it was not read to its end.
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
        Ok(true) => bail!(
            "{} is there already: name a file that is not",
            out.display()
        ),
        Err(error) => Err(anyhow!(error).context(out.display().to_string())),
    }
}

/// Writes a file that appears under its name only when it is whole. It is not synced: it can be made again.
fn write_whole(
    out: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut draft = out.as_os_str().to_owned();
    draft.push(".part");
    let draft = PathBuf::from(draft);
    let written = || -> io::Result<()> {
        let mut target = BufWriter::with_capacity(1 << 20, File::create(&draft)?);
        write(&mut target)?;
        target.flush()?;
        fs::rename(&draft, out)
    };
    written().map_err(|error| {
        let _ = fs::remove_file(&draft);
        anyhow!(error).context(format!("{} cannot be written", out.display()))
    })
}
