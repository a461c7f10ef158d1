//! A directory of backups of one node, with the log since the oldest of them.
//!
//! ```text
//! backup-INDEX   a backup; has this name once it is whole, on disk and read again
//! log-FIRST      committed entries from FIRST on, in files of some megabytes:
//!                magic "PLACELOG", a frame with the header, then batches: a frame with the time
//!                by the clock of the node that keeps them, and one for each entry
//! ```
//!
//! A node keeps what it has applied every second, so those times show whether the stamps of leaders
//! have kept pace. The times of the files would not: copies have others.
//!
//! A file of the log that ends in the middle of a frame, or with a bad one, ends before it. What
//! follows is in the next file, or nowhere: then that is a gap, which no restoring crosses.

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
use crate::runtime;
use crate::synced::Synced;
use crate::types::{Entry, Payload};
use crate::wire::{self, RecordVersion, WireEntry};

const DRAFT: &str = "draft";
const MAGIC: &[u8; 8] = b"PLACELOG";
const HEADER: u8 = 1;
const ENTRY: u8 = 2;
const KEPT_AT: u8 = 3;

/// A change of the format takes the next version of this record.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    cluster: Uuid,
    epoch: u64,
}

/// Why there is no way from a backup to a moment.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file cannot be used.
    #[error("{0}: {1}")]
    File(PathBuf, SnapshotError),
    /// Something is not there.
    #[error("{0}")]
    Missing(String),
}

impl ArchiveError {
    fn file(path: &Path, error: impl Into<SnapshotError>) -> Self {
        Self::File(path.to_owned(), error.into())
    }

    /// The same with what was found before.
    pub(crate) fn with(self, words: Option<&str>) -> Self {
        match words {
            None => self,
            Some(words) => Self::Missing(format!("{self}; {words}")),
        }
    }
}

/// The directory, for the node that fills it.
#[derive(Debug, Clone)]
pub struct BackupDir {
    dir: PathBuf,
    identity: Identity,
}

impl BackupDir {
    /// Makes a directory below `root` that is this node's alone. A draft that a crash has left in
    /// it is overwritten by the next one.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(root: &Path, identity: Identity) -> io::Result<Self> {
        let dir = format!("{}/node-{}", identity.cluster, identity.node);
        let dir = root.join(dir);
        make_durably(&dir)?;
        Ok(Self { dir, identity })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// When the newest backup was made.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn newest(&self) -> io::Result<Option<SystemTime>> {
        match named(&self.dir, BACKUP)?.last() {
            Some((_, path)) => Ok(Some(fs::metadata(path)?.modified()?)),
            None => Ok(None),
        }
    }

    /// Makes a backup of a state, reads it again, and only then removes the oldest, but for `keep`,
    /// with the log that only they needed.
    ///
    /// # Errors
    /// [`SnapshotError`]: it cannot be written, or what is read is not what was written. All others
    /// stay.
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

    /// Removes what the newest `keep` backups do not need. Backups and the log are written by two
    /// tasks, and either may find that the other was faster.
    fn remove_superfluous(&self, keep: usize) -> io::Result<()> {
        for file in kept_files::superfluous(&self.files()?, keep) {
            files::if_there(fs::remove_file(self.dir.join(file.name)))?;
        }
        Ok(())
    }

    fn make(&self, draft: &Path, applied: &AppliedState) -> Result<BackupInfo, SnapshotError> {
        let mut target = BufWriter::with_capacity(1 << 20, Synced::create(draft)?);
        write_backup(&mut target, &self.identity, applied)?;
        written(target)?;
        let info = check_backup(File::open(draft)?)?;
        fs::rename(draft, self.dir.join(name(BACKUP, info.index)))?;
        files::sync_dir(&self.dir)?;
        Ok(info)
    }

    /// The finished files in it, those of the highest entries first.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn files(&self) -> io::Result<Vec<KeptFile>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            // It may go while it is looked at.
            let length = files::if_there(entry.metadata())?.map(|metadata| metadata.len());
            let file = length.and_then(|length| KeptFile::of(name.to_str()?, length));
            found.extend(file);
        }
        found.sort_by_key(|file| std::cmp::Reverse((file.index, file.is_backup)));
        Ok(found)
    }

    /// The log, to be continued where it ends.
    ///
    /// # Errors
    /// Those of the file system, or the newest file is not of this log.
    pub fn log(&self) -> io::Result<LogArchive> {
        let next = match named(&self.dir, LOG)?.last() {
            Some((first, path)) => {
                // What a process has left that was killed, or whose sync failed, need not be on the
                // disk.
                files::sync(&File::open(path)?)?;
                files::sync_dir(&self.dir)?;
                let found = read_log(path).and_then(|found| found.of(&self.identity));
                // A file without entries is written over. One that cannot be read may have some.
                let mut found = found.map_err(|error| unusable(path, error))?;
                let last = found.entries.pop();
                last.map_or(*first, |last| last.entry.log_id.index + 1)
            }
            None => 0,
        };
        let missed_from = match named(&self.dir, BACKUP)?.last() {
            // Entries of before are welcome, and only those behind the backup are missed.
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

/// The log in a directory of backups, for the node that writes it.
#[derive(Debug)]
pub struct LogArchive {
    dir: BackupDir,
    file: Option<Synced>,
    next: u64,
    /// What is kept, and the backups, have everything before this entry; 0 if there is nothing yet.
    missed_from: u64,
}

impl LogArchive {
    /// The entry that comes next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Goes on at an entry, in another file if it is a later one: those before it are nowhere any
    /// more. Returns the first and the last of those that are missed.
    pub fn go_on_at(&mut self, first: u64) -> Option<(u64, u64)> {
        if first > self.next {
            self.file = None;
            self.next = first;
        }
        let from = self.missed_from;
        self.missed_from = from.max(first);
        (from > 0 && first > from).then(|| (from, first - 1))
    }

    /// Adds committed entries, durably, at the time `now` of this node's clock. They may begin
    /// later than [`LogArchive::next`]: that is a gap.
    ///
    /// # Errors
    /// Those of the file system; then none counts as added.
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
        // After an error it is not known what is in the file.
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

    fn begin(&self, first: u64, version: RecordVersion) -> io::Result<Synced> {
        let dir = &self.dir;
        let mut file = Synced::create(&dir.dir.join(name(LOG, first)))?;
        let header = Header {
            cluster: dir.identity.cluster,
            epoch: dir.identity.epoch,
        };
        file.write_all(MAGIC)?;
        write_record(&mut file, version, HEADER, &header)?;
        files::sync_dir(&dir.dir)?;
        // A file ends where the next one begins: only now is it known whether a backup covers it.
        dir.remove_superfluous(usize::MAX)?;
        Ok(file)
    }
}

/// Entries `from..=to` of the log in a directory of backups, one after the other, and the gaps in
/// it.
///
/// # Errors
/// A file cannot be read, or is not part of such a log.
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
        for Kept {
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

/// Up to where a history is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// As far as it goes.
    End,
    /// Commands that are stamped with this time or an earlier one.
    Time(Timestamp),
    /// The entry of this index, and those before it.
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

    /// Whether a backup, which has come to the entry `index`, does not go beyond it.
    fn is_after(self, index: u64, backup: &Path) -> Result<bool, SnapshotError> {
        Ok(match self {
            Self::End => true,
            Self::Time(until) => backup_time(backup)? <= Some(until),
            Self::Index(until) => index <= until,
        })
    }

    /// Whether no later entry can belong to it. Stamps rise.
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

/// An entry, and the time that it is stamped with if it is a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The index.
    pub index: u64,
    /// The time.
    pub at: Option<Timestamp>,
}

impl Stamp {
    fn of(entry: &Entry) -> Self {
        Self {
            index: entry.log_id.index,
            at: stamp(entry),
        }
    }
}

/// Entries of the kept log that lie beyond what is restored, as far as they can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// How many.
    pub entries: u64,
    /// The first of them.
    pub first: Stamp,
    /// The last of them.
    pub last: Stamp,
}

/// How a replay ended.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// Why it may have ended before what was asked for.
    pub(crate) ends_early: Option<String>,
    pub(crate) left_out: Option<LeftOut>,
    pub(crate) stamps: Stamps,
}

impl Replayed {
    fn leave_out(&mut self, entry: &Entry) {
        let last = Stamp::of(entry);
        let left = self.left_out.get_or_insert(LeftOut {
            entries: 0,
            first: last,
            last,
        });
        left.entries += 1;
        left.last = last;
    }
}

/// How the time in the log compares with the clock of the node that has kept it, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    /// The stamp that is furthest ahead of the time at which its entry was kept, and by how much.
    pub(crate) ahead: Option<(Stamp, i64)>,
    /// The longest run in which time stood still.
    pub(crate) still: Option<Run>,
    run: Option<Run>,
    /// The last entry, which may be in two files.
    last: Option<u64>,
}

/// Entries of which each is stamped one microsecond after the one before it, as a leader does whose
/// clock is behind the time of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: Stamp,
    pub(crate) last: Stamp,
    begun: Timestamp,
    ended: Timestamp,
    /// How often later entries were kept at a later time.
    times: u32,
}

impl Run {
    /// How long it lasted by the clock of the node that has kept it. Entries that were proposed
    /// together are such a run, too, and may be kept at two times, between which the node may have
    /// been down.
    pub(crate) fn lasted(&self) -> i64 {
        match self.times {
            0 | 1 => 0,
            _ => self.ended.0.saturating_sub(self.begun.0),
        }
    }
}

impl Stamps {
    fn note(&mut self, entry: &Entry, kept_at: Timestamp) {
        let this = Stamp::of(entry);
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

/// A backup that was read.
pub(crate) struct ReadBackup {
    /// Which cluster it is of; not which node.
    pub(crate) of: Identity,
    pub(crate) applied: AppliedState,
    /// Which newer ones cannot be read, and why.
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

/// Reads the newest backup in a directory that does not go beyond `until`. In place of a damaged
/// one it takes the one before: the log has what is between them.
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
        None => format!("there is no backup in {dir}"),
        Some(_) if !damaged.is_empty() => {
            format!("no backup in {dir} can be used: {}", damaged.join("; "))
        }
        Some((oldest, _)) => format!(
            "every backup in {dir} is of a later moment than the one that is asked for: the oldest has come to \
             entry {oldest}"
        ),
    }))
}

/// Carries out what the log in a directory has after a state, up to `until`, by the ordinary rules.
/// What lies beyond is counted.
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
        let found = match read_log(path).and_then(|found| found.of(of)) {
            // What is beyond is only counted.
            Err(_) if replayed.left_out.is_some() => continue,
            read => read.map_err(|error| ArchiveError::file(path, error))?,
        };
        for Kept { entry, kept_at, .. } in found.entries {
            // Those that the backup has, too: whether it is of an earlier moment is judged by
            // stamps.
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
                    "{} has no entries {next} to {}: what was written from there on cannot be \
                     restored. The last moment before is that of entry {}{}",
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
        let words = format!("{} has come to entry {index}", path.display());
        damage = Some(damage.map_or(words.clone(), |before| format!("{before}; {words}")));
    }
    let is_all = match until {
        Until::End => damage.is_none(),
        Until::Index(until) => applied.index() >= Some(until),
        Until::Time(_) => replayed.left_out.is_some(),
    };
    if !is_all {
        let end =
            "the log that was kept ends there; whether anything was written after it is not known";
        replayed.ends_early =
            Some(damage.map_or(end.to_owned(), |words| format!("{end}: {words}")));
    }
    Ok(replayed)
}

/// A file of the log, up to its end or the first bad frame.
#[derive(Default)]
struct LogFile {
    header: Option<Header>,
    entries: Vec<Kept>,
    /// What is bad about the frame behind them.
    bad: Option<String>,
}

/// An entry of the kept log.
struct Kept {
    entry: Entry,
    /// Of its record.
    bytes: usize,
    /// By the clock of the node that has kept it.
    kept_at: Timestamp,
}

impl LogFile {
    /// Itself, if it belongs to this history.
    fn of(self, of: &Identity) -> Result<Self, SnapshotError> {
        if let Some(header) = &self.header {
            check_history(of, header.cluster, header.epoch)?;
        }
        Ok(self)
    }
}

fn read_log(path: &Path) -> Result<LogFile, SnapshotError> {
    let bytes = fs::read(path)?;
    let mut found = LogFile::default();
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
        // A crash has left it before it had anything.
        return match MAGIC.starts_with(&bytes) {
            true => Ok(found),
            false => Err(SnapshotError::NotASnapshot),
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
                found.entries.push(Kept {
                    entry: wire::decode::<WireEntry>(record)?.into_entry()?,
                    bytes: record.len(),
                    kept_at,
                });
            }
            _ => {
                found.bad = Some("a frame of no known kind".to_owned());
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
            io::Error::new(error.kind(), format!("{path} cannot be read: {error}"))
        }
        error => {
            let words = format!("{path} cannot be continued: {error}. Move the file away");
            io::Error::new(io::ErrorKind::InvalidData, words)
        }
    }
}

/// A file with all that was written to it, durably.
fn written(target: BufWriter<Synced>) -> io::Result<Synced> {
    let file = target.into_inner();
    let file = file.map_err(io::IntoInnerError::into_error)?;
    files::sync(&file.file)?;
    Ok(file)
}

fn name(prefix: &str, index: u64) -> String {
    format!("{prefix}{index:020}")
}

/// The files of a kind, by their index, the lowest first.
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
