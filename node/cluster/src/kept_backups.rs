//! The state of this node's scheduled backups.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A backup is overdue if none has succeeded for this many intervals: a single attempt may fail or
/// take long.
const OVERDUE_AFTER: u32 = 2;

/// A part of a node's backups, which can fail independently of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BackupPart {
    /// Backups of the whole state.
    Backups,
    /// The log since the oldest backup.
    Log,
    /// Copies of both in a bucket.
    Copies,
}

/// The backups of a node; its backup tasks coordinate through it.
#[derive(Debug, Default)]
pub struct KeptBackups {
    due: Notify,
    standing: Mutex<BackupState>,
}

/// Numbers for status and metrics. Counters start at zero with the process.
#[derive(Debug, Default, Clone, Copy)]
pub struct Numbers {
    /// Time of the last good backup, in seconds since 1970.
    pub last: Option<u64>,
    /// Index of the last entry in the archived log.
    pub logged: u64,
    /// Failed backups, and failures to archive entries.
    pub failures: u64,
    /// Gaps in the archived log.
    pub gaps: u64,
    /// When the bucket last had a copy of every file, in seconds since 1970.
    pub copied: Option<u64>,
    /// Failed attempts to copy to the bucket.
    pub copy_failures: u64,
}

#[derive(Debug, Default)]
struct BackupState {
    numbers: Numbers,
    /// `None` if this node makes no backups.
    schedule: Option<Schedule>,
    /// For each part that currently fails, the reason.
    problems: BTreeMap<BackupPart, String>,
    /// When the bucket last had a copy of every file or, if it never had, when copying began.
    /// `None` if this node makes no copies.
    copied: Option<Instant>,
    /// The first and the last missing entry of the archived log that no backup covers.
    gap: Option<(u64, u64)>,
}

/// When the next backup is expected.
#[derive(Debug)]
struct Schedule {
    every: Duration,
    /// A moment, and the age of the last good backup at that moment. If there is no backup: when
    /// the schedule began, and zero.
    seen: (Instant, Duration),
    has_one: bool,
}

impl Schedule {
    fn age(&self) -> Duration {
        self.seen.0.elapsed() + self.seen.1
    }

    fn is_overdue(&self) -> bool {
        self.age() > self.every * OVERDUE_AFTER
    }
}

impl KeptBackups {
    pub fn numbers(&self) -> Numbers {
        self.standing.lock().numbers
    }

    /// Whether there is no good backup, or the last one is too old.
    pub fn is_overdue(&self) -> bool {
        let standing = self.standing.lock();
        standing.schedule.as_ref().is_some_and(Schedule::is_overdue)
    }

    /// The current problems of this node's backups, as text.
    pub fn problem(&self) -> Option<String> {
        let standing = self.standing.lock();
        let mut words = Vec::new();
        if let Some(schedule) = standing.schedule.as_ref().filter(|one| one.is_overdue()) {
            let (age, every) = (schedule.age().as_secs(), schedule.every.as_secs());
            words.push(if schedule.has_one {
                format!("the last good backup is {age} s old; one is due every {every} s")
            } else {
                format!("no good backup has been made for {age} s; one is due every {every} s")
            });
        }
        words.extend(standing.problems.values().cloned());
        if let Some(age) = standing.copies_overdue() {
            let age = age.as_secs();
            words.push(format!(
                "no complete copy has been made in the bucket for {age} s"
            ));
        }
        if let Some((from, to)) = standing.gap {
            words.push(format!(
                "the archived log lacks entries {from} to {to}, and no later backup exists yet"
            ));
        }
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Begins the schedule: from now on a backup is due every `every`.
    pub(super) fn begin(&self, every: Duration) {
        self.standing.lock().schedule = Some(Schedule {
            every,
            seen: (Instant::now(), Duration::ZERO),
            has_one: false,
        });
    }

    pub(super) fn failed(&self, part: BackupPart, what: &str, error: &dyn Display) {
        let mut standing = self.standing.lock();
        match part {
            BackupPart::Copies => standing.numbers.copy_failures += 1,
            BackupPart::Backups | BackupPart::Log => standing.numbers.failures += 1,
        }
        standing.problems.insert(part, format!("{what}: {error}"));
    }

    pub(super) fn succeeded(&self, part: BackupPart) {
        self.standing.lock().problems.remove(&part);
    }

    /// Records that from now on the bucket should have copies.
    pub(super) fn begin_copies(&self) {
        self.standing.lock().copied = Some(Instant::now());
    }

    /// Records that the bucket has a copy of every file.
    pub(super) fn all_copied(&self, at: SystemTime) {
        let mut standing = self.standing.lock();
        standing.numbers.copied = Some(seconds(at));
        standing.copied = Some(Instant::now());
    }

    pub(super) fn log_archived_up_to(&self, index: u64) {
        self.standing.lock().numbers.logged = index;
    }

    /// Records a gap in the archived log. The next backup is then made immediately.
    pub(super) fn misses(&self, from: u64, to: u64) {
        let mut standing = self.standing.lock();
        standing.numbers.failures += 1;
        standing.numbers.gaps += 1;
        standing.gap = Some((standing.gap.map_or(from, |(first, _)| first), to));
        self.due.notify_one();
    }

    /// Waits until a backup should be made immediately.
    pub(super) async fn wait_until_due(&self) {
        self.due.notified().await;
    }

    /// Records a good backup that was made before this start and is `age` old.
    pub(super) fn found(&self, at: SystemTime, age: Duration) {
        let mut standing = self.standing.lock();
        standing.numbers.last = Some(seconds(at));
        if let Some(schedule) = &mut standing.schedule {
            schedule.seen = (Instant::now(), age);
            schedule.has_one = true;
        }
    }

    /// Records a good backup made now, of the state after entry `index`.
    pub(super) fn backup_made(&self, at: SystemTime, index: u64) {
        self.found(at, Duration::ZERO);
        self.succeeded(BackupPart::Backups);
        let gap = &mut self.standing.lock().gap;
        *gap = gap.filter(|(_, to)| *to > index);
    }
}

impl BackupState {
    /// How long the bucket has been incomplete, if that is longer than allowed.
    fn copies_overdue(&self) -> Option<Duration> {
        let allowed = self.schedule.as_ref()?.every * OVERDUE_AFTER;
        let age = self.copied?.elapsed();
        (age > allowed).then_some(age)
    }
}

fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_late_backup_is_reported_until_one_is_made() {
        let kept = KeptBackups::default();
        tokio::time::advance(Duration::from_secs(1_000)).await;
        assert!(!kept.is_overdue(), "this node makes no backups");

        kept.begin(Duration::from_secs(60));
        tokio::time::advance(Duration::from_secs(120)).await;
        assert_eq!((kept.is_overdue(), kept.problem()), (false, None));
        tokio::time::advance(Duration::from_secs(1)).await;
        let words = kept.problem().unwrap();
        assert!(
            words.contains("no good backup has been made for 121 s"),
            "{words}"
        );

        kept.found(UNIX_EPOCH, Duration::from_secs(100));
        assert!(!kept.is_overdue());
        tokio::time::advance(Duration::from_secs(21)).await;
        let words = kept.problem().unwrap();
        assert!(words.contains("is 121 s old"), "{words}");
        kept.backup_made(UNIX_EPOCH + Duration::from_secs(5), 7);
        assert_eq!((kept.is_overdue(), kept.problem()), (false, None));
        assert_eq!(kept.numbers().last, Some(5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_without_recent_copies_is_reported() {
        let kept = KeptBackups::default();
        kept.begin(Duration::from_secs(60));
        kept.begin_copies();
        tokio::time::advance(Duration::from_secs(121)).await;
        kept.backup_made(UNIX_EPOCH, 1);
        let words = kept.problem().unwrap();
        assert!(words.contains("for 121 s"), "{words}");
        assert_eq!(kept.numbers().copied, None);
        kept.all_copied(UNIX_EPOCH + Duration::from_secs(7));
        assert_eq!((kept.problem(), kept.numbers().copied), (None, Some(7)));
    }

    #[test]
    fn a_failure_is_reported_until_it_ends_and_a_gap_until_the_next_backup() {
        let kept = KeptBackups::default();
        kept.failed(BackupPart::Backups, "no backup is made", &"full");
        kept.failed(BackupPart::Log, "no log is archived", &"gone");
        let words = kept.problem().unwrap();
        assert_eq!(words, "no backup is made: full; no log is archived: gone");
        kept.succeeded(BackupPart::Log);
        kept.backup_made(UNIX_EPOCH, 1);
        assert_eq!((kept.problem(), kept.numbers().failures), (None, 2));

        kept.failed(BackupPart::Copies, "the store gets no copies", &"403");
        let words = kept.problem().unwrap();
        assert_eq!(words, "the store gets no copies: 403");
        assert_eq!(
            (kept.numbers().failures, kept.numbers().copy_failures),
            (2, 1)
        );
        kept.succeeded(BackupPart::Copies);

        kept.misses(5, 7);
        kept.misses(9, 20);
        kept.backup_made(UNIX_EPOCH, 19);
        let words = kept.problem().unwrap();
        assert!(words.contains("lacks entries 5 to 20"), "{words}");
        kept.backup_made(UNIX_EPOCH, 20);
        assert_eq!((kept.problem(), kept.numbers().gaps), (None, 2));
    }
}
