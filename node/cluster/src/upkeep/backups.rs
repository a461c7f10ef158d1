//! Scheduled backups of this node, and the archive of the log between them, according to
//! `[backup]`.
//!
//! Writes never wait for backups: committed entries are read from the log while the log still has
//! them. If the backup directory is full or slow, entries may leave the log before they are
//! archived. Then the archived log has a gap.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use placement_base::log_messages::log;
use placement_base::runtime;
use placement_raft_store::{BackupDir, LogArchive, LogReader};
use tokio::time::{sleep, timeout};

use super::Retries;
use crate::kept_backups::{BackupPart, KeptBackups};
use crate::running::Running;
use placement_base::world::micros;

/// Interval between additions to the archived log.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// Reports failures of one part of the backups in the log, the status and the metrics.
pub(crate) struct FailureReporter<'a> {
    kept: &'a KeptBackups,
    part: BackupPart,
    retries: Retries,
}

impl<'a> FailureReporter<'a> {
    pub(crate) fn new(kept: &'a KeptBackups, part: BackupPart) -> Self {
        Self {
            kept,
            part,
            retries: Retries::default(),
        }
    }

    pub(crate) fn failed(&mut self, what: &'static str, error: impl std::fmt::Display) -> Duration {
        self.kept.failed(self.part, what, &error);
        if !self.retries.have_begun() {
            log!(BACKUP_FAILED, %error, "{what}; retrying");
        }
        self.retries.next_pause()
    }

    pub(crate) fn is_over(&mut self, what: &'static str) {
        self.kept.succeeded(self.part);
        if self.retries.succeeded() {
            log!(BACKUP_RECOVERED, "{what} again");
        }
    }
}

pub(crate) async fn open(node: &Running, root: PathBuf, part: BackupPart) -> BackupDir {
    let mut failing = FailureReporter::new(&node.kept, part);
    loop {
        let (root, identity) = (root.clone(), node.replica.identity);
        match runtime::blocking(move || BackupDir::open(&root, identity)).await {
            Ok(dir) => return dir,
            Err(error) => {
                let what = "the directory for backups cannot be used";
                sleep(failing.failed(what, error)).await;
            }
        }
    }
}

/// Makes a backup at every interval of `[backup] every_s`.
pub(crate) async fn make(node: Arc<Running>) {
    let (kept, clock) = (&node.kept, &node.clock);
    let settings = &node.replica.config.backup;
    let Some(root) = settings.directory.clone() else {
        return;
    };
    let every = Duration::from_secs(settings.every_s);
    kept.begin(every);
    let dir = open(&node, root, BackupPart::Backups).await;
    let keep = usize::try_from(settings.keep).unwrap_or(usize::MAX);
    if let Ok(Some(last)) = dir.newest() {
        let age = clock.now().duration_since(last).unwrap_or_default();
        kept.found(last, age);
        kept.succeeded(BackupPart::Backups);
        let _ = timeout(every.saturating_sub(age), kept.wait_until_due()).await;
    }
    let mut failing = FailureReporter::new(kept, BackupPart::Backups);
    while node.replica.failure().is_none() {
        match one(&node, &dir, keep).await {
            Ok(index) => {
                kept.backup_made(clock.now(), index);
                failing.is_over("backups are made");
                // In both cases the next backup is due now: the interval has passed, or a backup
                // was requested early.
                let _ = timeout(every, kept.wait_until_due()).await;
            }
            Err(error) => {
                let wait = failing.failed("no backup is made", error);
                sleep(wait.min(every)).await;
            }
        }
    }
}

/// Makes one backup and returns its last entry. A node that cannot reach the leader makes no
/// backup, because its state may be outdated.
async fn one(node: &Running, dir: &BackupDir, keep: usize) -> Result<u64, String> {
    (node.catch_up().await).map_err(|error| error.to_string())?;
    let (dir, applied) = (dir.clone(), node.replica.views.current());
    let made = runtime::blocking(move || dir.back_up(&applied, keep)).await;
    let info = made.map_err(|error| error.to_string())?;
    log!(
        BACKUP_MADE,
        index = info.index,
        digest = info.digest,
        "made a backup"
    );
    Ok(info.index)
}

/// Adds committed entries to the archived log.
pub(crate) async fn keep_log(node: Arc<Running>, log: LogReader) {
    let Some(root) = node.replica.config.backup.directory.clone() else {
        return;
    };
    let dir = open(&node, root, BackupPart::Log).await;
    let mut failing = FailureReporter::new(&node.kept, BackupPart::Log);
    // After an error the archive is opened again, in order to check what its files contain.
    let mut archive = None;
    while node.replica.failure().is_none() {
        let (running, dir, log) = (node.clone(), dir.clone(), log.clone());
        let opened: Option<LogArchive> = archive.take();
        let added = runtime::blocking(move || {
            let mut archive = opened.map_or_else(|| dir.log(), Ok)?;
            add(&running, &mut archive, &log).map(|()| archive)
        });
        let wait = match added.await {
            Ok(added) => {
                archive = Some(added);
                failing.is_over("log entries since the last backup are archived");
                LOG_EVERY
            }
            Err(error) => {
                failing.failed("log entries since the last backup are not archived", error)
            }
        };
        sleep(wait).await;
    }
}

fn add(node: &Running, archive: &mut LogArchive, log: &LogReader) -> io::Result<()> {
    let applied = node.replica.views.current();
    // The entries were stamped before now, most of them since the last run.
    let now = micros(node.clock.now());
    let end = applied.index().map_or(0, |last| last + 1);
    while archive.next() < end {
        let next = archive.next();
        let entries = log.step(next, end)?;
        // Applied entries that the log no longer contains cannot be archived.
        let first = entries.first().map_or(end, |entry| entry.log_id.index);
        if let Some((from, to)) = archive.continue_at(first) {
            node.kept.misses(from, to);
            log!(
                ARCHIVED_LOG_GAP,
                from,
                to,
                "the archived log has a gap: no moment within the gap, or between it and \
                 the next backup, can be restored"
            );
        }
        let Some(last) = entries.last() else {
            break;
        };
        let last = last.log_id.index;
        archive.append(applied.record_version(), &entries, now)?;
        node.kept.log_archived_up_to(last);
    }
    Ok(())
}
