//! A directory of backups of one node, with the log since the oldest backup.
//!
//! ```text
//! backup-INDEX   a backup; gets this name after it is written, synced and verified
//! log-FIRST      committed entries from FIRST on, in files of several megabytes:
//!                magic "PLACELOG", a frame with the header, then batches. A batch is a frame
//!                with the current time of the archiving node and one frame per entry.
//! ```
//!
//! A node archives its applied entries every second, so the times of the batches show whether the
//! timestamps that leaders assigned were correct. The modification times of the files do not show
//! this, because a copy of a file gets a new one.
//!
//! A log file with a truncated or damaged frame ends before that frame. If the next file does not
//! continue there, the log has a gap, and no restore continues past it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use placement_model::Level;
use placement_model::types::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::applier::Applier;
use crate::data_dir::make_durably;
use crate::files;
use crate::identity::Identity;
use crate::kept_files::{self, BACKUP, KeptFile, LOG};
use crate::log::LogLine;
use crate::machine::{
    AppliedState, BackupInfo, SnapshotError, backup_time, check_backup, check_history, read_backup,
    read_frame, write_backup, write_record,
};
use crate::synced_file::SyncedFile;
use crate::types::{Entry, Payload};
use crate::wire::{self, RecordVersion, WireEntry};
use placement_base::runtime;

const DRAFT: &str = "draft";
const MAGIC: &[u8; 8] = b"PLACELOG";
const HEADER: u8 = 1;
const ENTRY: u8 = 2;
const KEPT_AT: u8 = 3;

/// The first record of a log file. If the format of the file changes, this record gets the next
/// version.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    cluster: Uuid,
    epoch: u64,
}

/// Why a backup directory cannot restore the requested moment.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file is unusable.
    #[error("{0}: {1}")]
    File(PathBuf, SnapshotError),
    /// A backup or log entries are missing.
    #[error("{0}")]
    Missing(String),
}

impl ArchiveError {
    fn file(path: &Path, error: impl Into<SnapshotError>) -> Self {
        Self::File(path.to_owned(), error.into())
    }

    /// Appends `words` to the message.
    pub(crate) fn with_detail(self, words: Option<&str>) -> Self {
        match words {
            None => self,
            Some(words) => Self::Missing(format!("{self}; {words}")),
        }
    }
}

/// The backup directory, as used by the node that writes it.
#[derive(Debug, Clone)]
pub struct BackupDir {
    dir: PathBuf,
    identity: Identity,
}

impl BackupDir {
    /// Creates this node's own directory below `root`. The next backup overwrites a draft left by a
    /// crash.
    ///
    /// # Errors
    /// File system errors.
    pub fn open(root: &Path, identity: Identity) -> io::Result<Self> {
        let dir = format!("{}/node-{}", identity.cluster, identity.node);
        let dir = root.join(dir);
        make_durably(&dir)?;
        Ok(Self { dir, identity })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Modification time of the newest backup.
    ///
    /// # Errors
    /// File system errors.
    pub fn newest(&self) -> io::Result<Option<SystemTime>> {
        match named(&self.dir, BACKUP)?.last() {
            Some((_, path)) => Ok(Some(fs::metadata(path)?.modified()?)),
            None => Ok(None),
        }
    }

    /// Writes and verifies a backup of a state. If both succeed, removes all but the newest `keep`
    /// backups, and the log files that only the removed backups needed.
    ///
    /// # Errors
    /// [`SnapshotError`] if it cannot be written or does not verify. Earlier backups stay.
    pub fn back_up(
        &self,
        applied: &AppliedState,
        keep: usize,
    ) -> Result<BackupInfo, SnapshotError> {
        let draft = self.dir.join(DRAFT);
        let info = self.make(&draft, applied).inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })?;
        self.remove_superfluous(keep)?;
        Ok(info)
    }

    /// Removes files that the newest `keep` backups do not need. One task writes backups and
    /// another archives the log, so the other task may have removed a file already.
    fn remove_superfluous(&self, keep: usize) -> io::Result<()> {
        for file in kept_files::superfluous(&self.files()?, keep) {
            files::if_there(fs::remove_file(self.dir.join(file.name)))?;
        }
        Ok(())
    }

    fn make(&self, draft: &Path, applied: &AppliedState) -> Result<BackupInfo, SnapshotError> {
        let mut target = BufWriter::with_capacity(1 << 20, SyncedFile::create(draft)?);
        write_backup(&mut target, &self.identity, applied)?;
        written(target)?;
        let info = check_backup(File::open(draft)?)?;
        fs::rename(draft, self.dir.join(name(BACKUP, info.index)))?;
        files::sync_dir(&self.dir)?;
        Ok(info)
    }

    /// The finished backups and log files, in descending order of index.
    ///
    /// # Errors
    /// File system errors.
    pub fn files(&self) -> io::Result<Vec<KeptFile>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            // The other task may remove the file at this moment.
            let length = files::if_there(entry.metadata())?.map(|metadata| metadata.len());
            let file = length.and_then(|length| KeptFile::parse(name.to_str()?, length));
            found.extend(file);
        }
        found.sort_by_key(|file| std::cmp::Reverse((file.index, file.is_backup)));
        Ok(found)
    }

    /// Opens the archived log for appending.
    ///
    /// # Errors
    /// File system errors, or the newest file is not part of this log.
    pub fn log(&self) -> io::Result<LogArchive> {
        let next = match named(&self.dir, LOG)?.last() {
            Some((first, path)) => {
                // The last writes of a process that was killed, or whose sync failed, may not be on
                // disk.
                files::sync(&File::open(path)?)?;
                files::sync_dir(&self.dir)?;
                let found = read_log(path).and_then(|found| found.of_history(&self.identity));
                // A file without entries is overwritten. An unreadable file is an error, because it
                // may contain entries.
                let mut found = found.map_err(|error| unusable(path, error))?;
                let last = found.entries.pop();
                last.map_or(*first, |last| last.entry.log_id.index + 1)
            }
            None => 0,
        };
        let missed_from = match named(&self.dir, BACKUP)?.last() {
            // Without an archived log, the newest backup contains all earlier entries. Only a gap
            // after it is reported.
            Some((covered, _)) if next == 0 => covered + 1,
            _ => next,
        };
        Ok(LogArchive {
            dir: self.clone(),
            file: None,
            next,
            missed_from,
        })
    }
}

/// The archived log, as used by the node that writes it.
#[derive(Debug)]
pub struct LogArchive {
    dir: BackupDir,
    file: Option<SyncedFile>,
    next: u64,
    /// Index from which missing entries are reported: each earlier entry is in a backup or in the
    /// archived log, was reported, or precedes all of them. 0 if there were no backups and no
    /// archived log when this was opened.
    missed_from: u64,
}

impl LogArchive {
    /// Index of the next entry to archive.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Continues at entry `first`, in a new file if it is greater than [`LogArchive::next`].
    /// Returns the first and last index of the missing entries before `first`, unless they were
    /// reported before.
    pub fn continue_at(&mut self, first: u64) -> Option<(u64, u64)> {
        if first > self.next {
            self.file = None;
            self.next = first;
        }
        let from = self.missed_from;
        self.missed_from = from.max(first);
        (from > 0 && first > from).then(|| (from, first - 1))
    }

    /// Appends committed entries durably, with the time `now` of this node's clock. If they begin
    /// after [`LogArchive::next`], a gap remains.
    ///
    /// # Errors
    /// File system errors; then none of the entries count as archived.
    pub fn append(
        &mut self,
        version: RecordVersion,
        entries: &[Entry],
        now: Timestamp,
    ) -> io::Result<()> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Ok(());
        };
        let file_bytes = runtime::limits().archive_file;
        // After an error the content of the file is unknown, so the next call begins a new one.
        let file = match self.file.take() {
            Some(file) if first.log_id.index == self.next && file.length < file_bytes => file,
            _ => self.begin(first.log_id.index, version)?,
        };
        let mut target = BufWriter::new(file);
        write_record(&mut target, version, KEPT_AT, &now)?;
        for entry in entries {
            write_record(&mut target, version, ENTRY, &WireEntry::from(entry))?;
        }
        let file = written(target)?;
        self.file = Some(file);
        self.next = last.log_id.index + 1;
        self.missed_from = self.missed_from.max(self.next);
        Ok(())
    }

    fn begin(&self, first: u64, version: RecordVersion) -> io::Result<SyncedFile> {
        let dir = &self.dir;
        let mut file = SyncedFile::create(&dir.dir.join(name(LOG, first)))?;
        let header = Header {
            cluster: dir.identity.cluster,
            epoch: dir.identity.epoch,
        };
        file.write_all(MAGIC)?;
        write_record(&mut file, version, HEADER, &header)?;
        files::sync_dir(&dir.dir)?;
        // A log file ends where the next one begins. So whether a backup covers the previous
        // file is known only now.
        dir.remove_superfluous(usize::MAX)?;
        Ok(file)
    }
}

/// Calls `each` for entries `from..=to` of the archived log in a directory, in order, and for each
/// gap.
///
/// # Errors
/// A file cannot be read, or is not part of an archived log.
pub fn inspect_kept_log(
    dir: &Path,
    from: u64,
    to: u64,
    mut each: impl FnMut(LogLine),
) -> Result<(), ArchiveError> {
    let logs = named(dir, LOG).map_err(|error| ArchiveError::file(dir, error))?;
    let mut next = logs.first().map_or(from, |(first, _)| from.max(*first));
    let mut damage = None;
    for (at, (first, path)) in logs.iter().enumerate() {
        let is_covered = logs.get(at + 1).is_some_and(|(first, _)| *first <= next);
        if is_covered || next > to {
            continue;
        }
        if *first > next {
            let missing = (next, (*first - 1).min(to));
            each(gap(missing, damage.take()));
            next = *first;
        }
        let found = read_log(path).map_err(|error| ArchiveError::file(path, error))?;
        for ArchivedEntry {
            entry,
            bytes,
            kept_at,
        } in found.entries
        {
            let index = entry.log_id.index;
            if (next..=to).contains(&index) {
                next = index + 1;
                each(LogLine {
                    kept_at: Some(kept_at),
                    ..LogLine::new(index, bytes, Ok(entry))
                });
            }
        }
        damage = (found.bad).map(|reason| format!("{}: {reason}", path.display()));
    }
    Ok(())
}

fn gap((from, to): (u64, u64), damage: Option<String>) -> LogLine {
    let why = damage.map_or(String::new(), |words| format!("; {words}"));
    let missing = format!("entries {from} to {to} are missing{why}");
    LogLine::new(from, 0, Err(missing))
}

/// The point at which a restore ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// All entries that the archive contains.
    End,
    /// Commands with this timestamp or an earlier one.
    Time(Timestamp),
    /// Entries up to and including this index.
    Index(u64),
}

impl Until {
    fn is_before(self, entry: &Entry) -> bool {
        match self {
            Self::End => false,
            Self::Time(until) => stamp(entry) > Some(until),
            Self::Index(until) => entry.log_id.index > until,
        }
    }

    /// Whether this end is at or after the last entry of `backup`, which has the index `index`.
    fn is_after(self, index: u64, backup: &Path) -> Result<bool, SnapshotError> {
        Ok(match self {
            Self::End => true,
            Self::Time(until) => backup_time(backup)? <= Some(until),
            Self::Index(until) => index <= until,
        })
    }

    /// Whether every later entry is beyond this end. Timestamps increase along the log.
    fn is_reached(self, applied: &AppliedState) -> bool {
        match self {
            Self::End => false,
            Self::Time(until) => applied.last_stamp >= Some(until),
            Self::Index(until) => applied.index() >= Some(until),
        }
    }
}

fn stamp(entry: &Entry) -> Option<Timestamp> {
    match &entry.payload {
        Payload::Normal(logged) => Some(logged.stamped().at),
        Payload::Blank | Payload::Membership(_) => None,
    }
}

/// An entry, with its timestamp if it is a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Index of the entry in the log.
    pub index: u64,
    /// Timestamp; `None` if the entry is not a command.
    pub at: Option<Timestamp>,
}

impl Stamp {
    fn from_entry(entry: &Entry) -> Self {
        Self {
            index: entry.log_id.index,
            at: stamp(entry),
        }
    }
}

/// The readable archived entries after the end of the restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkippedEntries {
    /// Number of entries left out.
    pub entries: u64,
    /// The first entry left out.
    pub first: Stamp,
    /// The last entry left out.
    pub last: Stamp,
}

/// How a replay ended.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// Why the replay may have ended before the requested end.
    pub(crate) ends_early: Option<String>,
    pub(crate) left_out: Option<SkippedEntries>,
    pub(crate) stamps: Stamps,
}

impl Replayed {
    fn leave_out(&mut self, entry: &Entry) {
        let last = Stamp::from_entry(entry);
        let left = self.left_out.get_or_insert(SkippedEntries {
            entries: 0,
            first: last,
            last,
        });
        left.entries += 1;
        left.last = last;
    }
}

/// Compares the timestamps in the log with the clock of the archiving node, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    /// The timestamp that is furthest ahead of its archiving time, and by how much.
    pub(crate) ahead: Option<(Stamp, i64)>,
    /// The run that lasted longest, by the clock of the archiving node.
    pub(crate) still: Option<Run>,
    run: Option<Run>,
    /// Index of the last entry noted; two files may contain the same entry.
    last: Option<u64>,
}

/// Consecutive entries whose timestamps differ by one microsecond, as a leader assigns them while
/// its clock is behind the time of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: Stamp,
    pub(crate) last: Stamp,
    begun: Timestamp,
    ended: Timestamp,
    /// How often the archiving time advanced within the run.
    times: u32,
}

impl Run {
    /// Duration in microseconds by the clock of the archiving node. The result is 0 if the
    /// archiving time advanced less than twice: entries that were proposed together form a run,
    /// too, and if the node archived them in two batches with a downtime in between, the time
    /// advances once.
    pub(crate) fn lasted(&self) -> i64 {
        match self.times {
            0 | 1 => 0,
            _ => self.ended.0.saturating_sub(self.begun.0),
        }
    }
}

impl Stamps {
    fn note(&mut self, entry: &Entry, kept_at: Timestamp) {
        let this = Stamp::from_entry(entry);
        let Some(at) = this.at.filter(|_| Some(this.index) > self.last) else {
            return;
        };
        self.last = Some(this.index);
        let by = at.0.saturating_sub(kept_at.0);
        if self.ahead.is_none_or(|(_, most)| by > most) {
            self.ahead = Some((this, by));
        }
        let follows = |run: &Run| run.last.at == Some(Timestamp(at.0.saturating_sub(1)));
        let run = match self.run.filter(follows) {
            Some(run) => Run {
                last: this,
                ended: kept_at,
                times: run.times + u32::from(kept_at > run.ended),
                ..run
            },
            None => Run {
                first: this,
                last: this,
                begun: kept_at,
                ended: kept_at,
                times: 0,
            },
        };
        self.run = Some(run);
        if self.still.is_none_or(|still| run.lasted() > still.lasted()) {
            self.still = Some(run);
        }
    }
}

/// A backup, read into memory.
pub(crate) struct ReadBackup {
    /// Cluster and epoch of the backup; the node is 0.
    pub(crate) of: Identity,
    pub(crate) applied: AppliedState,
    /// The newer backups that cannot be read, with the errors.
    pub(crate) passed_over: Option<String>,
}

impl ReadBackup {
    pub(crate) fn read(path: &Path) -> Result<Self, SnapshotError> {
        let (cluster, epoch, applied) = read_backup(path)?;
        let of = Identity {
            cluster,
            epoch,
            node: 0,
        };
        Ok(Self {
            of,
            applied,
            passed_over: None,
        })
    }
}

/// Reads the newest backup in a directory that contains nothing beyond `until`. If it is damaged,
/// reads the backup before it: the log covers the entries between the two.
pub(crate) fn newest_before(dir: &Path, until: Until) -> Result<ReadBackup, ArchiveError> {
    let backups = named(dir, BACKUP).map_err(|error| ArchiveError::file(dir, error))?;
    let mut damaged = Vec::new();
    for (index, path) in backups.iter().rev() {
        let read = match until.is_after(*index, path) {
            Ok(false) => continue,
            Ok(true) => ReadBackup::read(path),
            Err(error) => Err(error),
        };
        match read {
            Err(error) if error.is_newer() => return Err(ArchiveError::file(path, error)),
            Err(error) => damaged.push(format!("{}: {error}", path.display())),
            Ok(mut read) => {
                let damaged = damaged.join("; ");
                read.passed_over = (!damaged.is_empty()).then_some(damaged);
                return Ok(read);
            }
        }
    }
    let dir = dir.display();
    Err(ArchiveError::Missing(match backups.first() {
        None => format!("{dir} contains no backup"),
        Some(_) if !damaged.is_empty() => {
            format!("no backup in {dir} can be used: {}", damaged.join("; "))
        }
        Some((oldest, _)) => format!(
            "every backup in {dir} was taken after the requested moment: the oldest covers entry \
             {oldest}"
        ),
    }))
}

/// Applies the archived log of a directory to a state by the normal rules, up to `until`. Counts
/// the entries after `until`.
pub(crate) fn replay(
    dir: &Path,
    of: &Identity,
    applied: &mut AppliedState,
    until: Until,
    applier: &dyn Applier,
) -> Result<Replayed, ArchiveError> {
    let logs = named(dir, LOG).map_err(|error| ArchiveError::file(dir, error))?;
    let mut replayed = Replayed::default();
    let mut damage: Option<String> = None;
    for (at, (_, path)) in logs.iter().enumerate() {
        let next = applied.index().map_or(0, |last| last + 1);
        if logs.get(at + 1).is_some_and(|(first, _)| *first <= next) {
            continue;
        }
        let found = match read_log(path).and_then(|found| found.of_history(of)) {
            // The requested end is reached, and later entries are only counted. So an unusable file
            // does not matter.
            Err(_) if replayed.left_out.is_some() => continue,
            read => read.map_err(|error| ArchiveError::file(path, error))?,
        };
        for ArchivedEntry { entry, kept_at, .. } in found.entries {
            // Also notes entries that the backup covers: their timestamps decide whether the backup
            // precedes the requested moment.
            replayed.stamps.note(&entry, kept_at);
            let next = applied.index().map_or(0, |last| last + 1);
            let index = entry.log_id.index;
            let seen = replayed.left_out.map_or(next, |left| left.last.index + 1);
            if index < seen {
                continue;
            }
            if replayed.left_out.is_some() || until.is_before(&entry) && index == next {
                replayed.leave_out(&entry);
                continue;
            }
            if index > next {
                if until.is_reached(applied) {
                    replayed.leave_out(&entry);
                    continue;
                }
                return Err(ArchiveError::Missing(format!(
                    "{} has no entries {next} to {}: later writes cannot be restored. The last entry \
                     that can be restored is {}{}",
                    dir.display(),
                    index - 1,
                    next.saturating_sub(1),
                    damage.map_or(String::new(), |words| format!("; {words}"))
                )));
            }
            if let Payload::Normal(logged) = &entry.payload {
                let stamped = logged.stamped();
                let (_, changes) = applier.apply(index, &applied.cluster, stamped);
                Arc::make_mut(&mut applied.cluster).commit(&changes);
                applied.last_stamp = applied.last_stamp.max(Some(stamped.at));
                if applied.cluster.level() > Level::NEWEST {
                    let error = SnapshotError::NewerLevel(applied.cluster.level());
                    return Err(ArchiveError::file(path, error));
                }
            }
            applied.last = Some(entry.log_id);
        }
        damage = (found.bad).map(|reason| format!("{}: {reason}", path.display()));
    }
    let backups = named(dir, BACKUP).map_err(|error| ArchiveError::file(dir, error))?;
    if let Some((index, path)) = backups.last()
        && until == Until::End
        && applied.index() < Some(*index)
    {
        let words = format!("{} covers entry {index}", path.display());
        damage = Some(damage.map_or(words.clone(), |before| format!("{before}; {words}")));
    }
    let is_all = match until {
        Until::End => damage.is_none(),
        Until::Index(until) => applied.index() >= Some(until),
        Until::Time(_) => replayed.left_out.is_some(),
    };
    if !is_all {
        let end = "the archived log ends there; later entries may exist";
        replayed.ends_early =
            Some(damage.map_or(end.to_owned(), |words| format!("{end}: {words}")));
    }
    Ok(replayed)
}

/// The content of a log file, up to its end or its first damaged frame.
#[derive(Default)]
struct LogFile {
    header: Option<Header>,
    entries: Vec<ArchivedEntry>,
    /// Why the frame after the entries cannot be read.
    bad: Option<String>,
}

/// An entry of the archived log.
struct ArchivedEntry {
    entry: Entry,
    /// Length of its record in bytes.
    bytes: usize,
    /// Time of its batch, by the clock of the archiving node.
    kept_at: Timestamp,
}

impl LogFile {
    /// Returns the file if it belongs to this cluster and epoch.
    fn of_history(self, identity: &Identity) -> Result<Self, SnapshotError> {
        if let Some(header) = &self.header {
            check_history(identity, header.cluster, header.epoch)?;
        }
        Ok(self)
    }
}

fn read_log(path: &Path) -> Result<LogFile, SnapshotError> {
    let bytes = fs::read(path)?;
    let mut found = LogFile::default();
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
        // A crash may leave a file with an incomplete magic.
        return if MAGIC.starts_with(&bytes) {
            Ok(found)
        } else {
            Err(SnapshotError::NotASnapshot)
        };
    };
    let mut time = None;
    while !rest.is_empty() {
        let body = match read_frame(&mut rest) {
            Ok(body) => body,
            Err(error) => {
                found.bad = Some(error.to_string());
                break;
            }
        };
        match (body.split_first(), time) {
            (Some((&HEADER, record)), _) if found.header.is_none() => {
                found.header = Some(wire::decode(record)?);
            }
            (Some((&KEPT_AT, record)), _) if found.header.is_some() => {
                time = Some(wire::decode(record)?);
            }
            (Some((&ENTRY, record)), Some(kept_at)) => {
                found.entries.push(ArchivedEntry {
                    entry: wire::decode::<WireEntry>(record)?.into_entry()?,
                    bytes: record.len(),
                    kept_at,
                });
            }
            _ => {
                found.bad = Some("a frame of unknown kind".to_owned());
                break;
            }
        }
    }
    Ok(found)
}

fn unusable(path: &Path, error: SnapshotError) -> io::Error {
    let path = path.display();
    match error {
        SnapshotError::Io(error) => {
            io::Error::new(error.kind(), format!("cannot read {path}: {error}"))
        }
        error => {
            let words = format!("cannot append to {path}: {error}. Move the file away");
            io::Error::new(io::ErrorKind::InvalidData, words)
        }
    }
}

/// Flushes and syncs a file.
fn written(target: BufWriter<SyncedFile>) -> io::Result<SyncedFile> {
    let file = target
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    files::sync(&file.file)?;
    Ok(file)
}

fn name(prefix: &str, index: u64) -> String {
    format!("{prefix}{index:020}")
}

/// The files of a kind with their indexes, in ascending order.
fn named(dir: &Path, prefix: &str) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let index = name.and_then(|name| name.strip_prefix(prefix)?.parse().ok());
        found.extend(index.map(|index| (index, path)));
    }
    found.sort();
    Ok(found)
}
