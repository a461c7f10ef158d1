//! Backups and the archived log after them: every moment that they cover can be restored, and no
//! restore continues after a gap.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::common::{applied, apply, history, identity, new_dir, opened, run, stamp};
use placement_base::runtime::Limits;
use placement_machine::{SchedulingDelay, simulate_within};
use placement_raft_store::wire::RecordVersion;
use placement_raft_store::{
    AppliedState, Backup, BackupDir, Entry, Identity, RestoreError, Rules, Until, inspect_kept_log,
};
use tempfile::TempDir;
use uuid::Uuid;

/// The state after each entry of a history.
fn states(last: u64) -> BTreeMap<u64, AppliedState> {
    run(async {
        let dir = new_dir();
        let mut store = opened(dir.path());
        let mut states = BTreeMap::new();
        for entry in history(last) {
            let index = entry.log_id.index;
            apply(&mut store.machine, vec![entry]).await;
            states.insert(index, applied(&store).as_ref().clone());
        }
        states
    })
}

fn entries(from: u64, to: u64) -> Vec<Entry> {
    let all = history(to).into_iter();
    all.filter(|entry| entry.log_id.index >= from).collect()
}

/// Continues the archived log of a directory like a restarted node.
fn log(dir: &BackupDir, to: u64) -> u64 {
    let mut log = dir.log().unwrap();
    let from = log.next();
    for some in entries(from, to).chunks(3) {
        log.append(RecordVersion::NEWEST, some, stamp(to)).unwrap();
    }
    from
}

fn files(dir: &BackupDir, prefix: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(prefix)
    };
    let mut paths: Vec<_> = paths.filter(is_one).collect();
    paths.sort();
    paths
}

fn shorten(path: &Path, by: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - by).unwrap();
}

fn at(dir: &BackupDir, index: u64) -> Result<(u64, String), RestoreError> {
    let backup = Backup::read(dir.path(), Until::Time(stamp(index)), &Rules)?;
    Ok((backup.info.index, backup.info.digest))
}

#[track_caller]
fn assert_at(dir: &BackupDir, states: &BTreeMap<u64, AppliedState>, index: u64) {
    let expected = (index, states[&index].digest().to_string());
    assert_eq!(at(dir, index).unwrap(), expected);
}

fn refusal(dir: &BackupDir, index: u64) -> String {
    at(dir, index).unwrap_err().to_string()
}

#[test]
fn each_moment_is_restored_from_a_log_in_many_files() {
    let limits = Limits {
        archive_file: 400,
        ..Limits::PRODUCT
    };
    let states = states(60);
    let _simulation = simulate_within(1, limits, SchedulingDelay::default());
    let files = each_moment_back(&states);
    assert!(files > 6, "{files}");
}

/// Returns the number of log files.
fn each_moment_back(states: &BTreeMap<u64, AppliedState>) -> usize {
    let root = TempDir::new().unwrap();
    let dir = BackupDir::open(root.path(), identity(1)).unwrap();
    log(&dir, 30);
    dir.back_up(&states[&20], 3).unwrap();
    dir.back_up(&states[&40], 3).unwrap();
    assert_eq!(log(&dir, 45), 31);
    assert_eq!(log(&dir, 60), 46);
    for index in [20, 21, 30, 31, 39, 40, 41, 45, 46, 60] {
        assert_at(&dir, states, index);
    }
    let last = Backup::read(dir.path(), Until::End, &Rules).unwrap();
    assert_eq!((last.info.index, last.ends_early), (60, None));
    assert!(refusal(&dir, 19).contains("after the requested moment"));
    files(&dir, "log-").len()
}

#[test]
fn torn_tail_is_continued_and_gaps_are_not_crossed() {
    let root = TempDir::new().unwrap();
    let dir = BackupDir::open(root.path(), identity(1)).unwrap();
    let states = states(60);
    dir.back_up(&states[&10], 3).unwrap();
    log(&dir, 40);
    shorten(&files(&dir, "log-")[0], 5);
    assert_eq!(log(&dir, 60), 40, "the truncated entry is archived again");
    assert_at(&dir, &states, 60);

    // Now an entry is missing from all files.
    let first = &files(&dir, "log-")[0];
    let whole = fs::read(first).unwrap();
    while at(&dir, 60).is_ok() {
        shorten(first, 1);
    }
    assert_at(&dir, &states, 38);
    let words = refusal(&dir, 60);
    assert!(words.contains("has no entries 39 to 39"), "{words}");
    // A restore does not continue after a damaged frame either.
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(first, &bytes).unwrap();
    let words = refusal(&dir, 60);
    assert!(words.contains("has no entries"), "{words}");
    let is_named = words.contains(&first.display().to_string());
    assert!(is_named, "the file with the bad frame is named: {words}");
    fs::write(first, &whole).unwrap();
    assert_at(&dir, &states, 60);

    // A node whose log was purged before it was archived.
    let mut archive = dir.log().unwrap();
    archive
        .append(RecordVersion::NEWEST, &entries(70, 80), stamp(80))
        .unwrap();
    assert_at(&dir, &states, 60);
    let words = refusal(&dir, 75);
    assert!(words.contains("has no entries 61 to 69"), "{words}");
}

/// Result of an inspection: indexes, and descriptions of gaps.
fn inspected(dir: &BackupDir, from: u64, to: u64) -> (Vec<u64>, Vec<String>) {
    let (mut indexes, mut gaps) = (Vec::new(), Vec::new());
    inspect_kept_log(dir.path(), from, to, |line| match line.entry {
        Ok(entry) => {
            assert_eq!(entry, entries(line.index, line.index)[0]);
            assert!(line.kept_at >= Some(stamp(line.index)));
            indexes.push(line.index);
        }
        Err(words) => gaps.push(words),
    })
    .unwrap();
    (indexes, gaps)
}

#[test]
fn inspection_lists_archived_entries_and_gaps() {
    let root = TempDir::new().unwrap();
    let dir = BackupDir::open(root.path(), identity(1)).unwrap();
    log(&dir, 20);
    log(&dir, 40);
    let indexes = |from, to| {
        entries(from, to)
            .iter()
            .map(|one| one.log_id.index)
            .collect()
    };
    assert_eq!(inspected(&dir, 0, u64::MAX), (indexes(0, 40), Vec::new()));
    assert_eq!(inspected(&dir, 15, 25), (indexes(15, 25), Vec::new()));

    // A crash left half an entry; the next file starts with that entry.
    shorten(&files(&dir, "log-")[1], 3);
    log(&dir, 40);
    assert_eq!(inspected(&dir, 0, 50), (indexes(0, 40), Vec::new()));

    let mut archive = dir.log().unwrap();
    let later = entries(50, 60);
    (archive.append(RecordVersion::NEWEST, &later, stamp(60))).unwrap();
    let (found, gaps) = inspected(&dir, 30, 55);
    let both: Vec<u64> = (30..=40).chain(50..=55).collect();
    assert_eq!(found, both);
    assert_eq!(gaps, ["entries 41 to 49 are missing"]);
    assert!(inspected(&dir, 61, 70).0.is_empty());
}

#[test]
fn oldest_backups_are_removed_after_a_new_one_is_verified() {
    let root = TempDir::new().unwrap();
    let dir = BackupDir::open(root.path(), identity(1)).unwrap();
    let states = states(60);
    for to in [15, 25, 35, 45, 60] {
        log(&dir, to);
    }
    for index in [10, 20, 30] {
        dir.back_up(&states[&index], 2).unwrap();
    }
    assert_eq!(files(&dir, "backup-").len(), 2);
    assert_eq!(
        files(&dir, "log-").len(),
        4,
        "the file before entry 16 is not needed"
    );
    assert_at(&dir, &states, 21);
    assert_at(&dir, &states, 60);

    // If a backup cannot be written, the others stay and no draft remains.
    fs::create_dir(dir.path().join("draft")).unwrap();
    assert!(dir.back_up(&states[&50], 2).is_err());
    assert_eq!(files(&dir, "backup-").len(), 2);

    // Backups of another cluster have another directory, and its log is not accepted.
    let other = BackupDir::open(root.path(), identity(2)).unwrap();
    assert_ne!(other.path(), dir.path());
}

#[test]
fn gap_after_the_backup_is_reported() {
    let root = TempDir::new().unwrap();
    let dir = BackupDir::open(root.path(), identity(1)).unwrap();
    let mut log = dir.log().unwrap();
    assert_eq!(log.continue_at(7), None, "nothing can be restored yet");
    dir.back_up(&states(60)[&10], 3).unwrap();
    let mut log = dir.log().unwrap();
    assert_eq!((log.next(), log.continue_at(0)), (0, None));
    assert_eq!(log.continue_at(11), None, "the backup has earlier entries");
    assert_eq!(log.continue_at(20), Some((11, 19)));
    assert_eq!(log.continue_at(20), None, "it is reported once");
    (log.append(RecordVersion::NEWEST, &entries(20, 30), stamp(30))).unwrap();
    assert_eq!((log.next(), log.continue_at(31)), (31, None));
    assert_eq!(dir.log().unwrap().continue_at(41), Some((31, 40)));
}

fn turn_a_bit(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn damaged_backup_is_replaced_by_an_older_one_and_the_log() {
    let root = TempDir::new().unwrap();
    let dir = BackupDir::open(root.path(), identity(1)).unwrap();
    let states = states(60);
    log(&dir, 50);
    for index in [10, 20, 40] {
        dir.back_up(&states[&index], 3).unwrap();
    }
    let [oldest, older, newest] = &files(&dir, "backup-")[..] else {
        panic!("three backups");
    };
    let read = |until| Backup::read(dir.path(), until, &Rules);
    let names = |words: &str, path: &Path| words.contains(&path.display().to_string());
    assert_eq!(read(Until::End).unwrap().passed_over, None);

    turn_a_bit(newest);
    fs::write(older, b"").unwrap();
    for until in [Until::End, Until::Index(45), Until::Time(stamp(45))] {
        let last = if until == Until::End { 50 } else { 45 };
        let backup = read(until).unwrap();
        assert_eq!(backup.info.digest, states[&last].digest().to_string());
        assert_eq!(backup.ends_early, None);
        let words = backup.passed_over.unwrap();
        assert!(names(&words, newest) && names(&words, older), "{words}");
        assert!(!names(&words, oldest), "{words}");
    }
    // The requested moment lies before the damaged backups.
    assert_eq!(read(Until::Index(15)).unwrap().passed_over, None);

    // The archived log ends before the newest backup.
    let kept = &files(&dir, "log-")[0];
    let whole = fs::read(kept).unwrap();
    fs::write(kept, &whole[..whole.len() / 2]).unwrap();
    let backup = read(Until::End).unwrap();
    assert!((10..40).contains(&backup.info.index));
    let words = backup.ends_early.unwrap();
    assert!(
        names(&words, newest) && words.contains("entry 40"),
        "{words}"
    );
    // A gap after the older backup is reported together with the damage that caused its use.
    fs::remove_file(kept).unwrap();
    let mut archive = dir.log().unwrap();
    let later = entries(41, 50);
    archive
        .append(RecordVersion::NEWEST, &later, stamp(60))
        .unwrap();
    let words = read(Until::End).unwrap_err().to_string();
    assert!(words.contains("no entries 11 to 40"), "{words}");
    assert!(names(&words, newest), "{words}");

    turn_a_bit(oldest);
    let words = read(Until::End).unwrap_err().to_string();
    for path in [oldest, older, newest] {
        assert!(names(&words, path), "{words}");
    }
}

/// The entries of the file may exist nowhere else.
#[test]
fn unreadable_log_file_is_not_overwritten() {
    let root = TempDir::new().unwrap();
    let dir = BackupDir::open(root.path(), identity(1)).unwrap();
    log(&dir, 20);
    let kept = files(&dir, "log-").pop().unwrap();
    let aside = root.path().join("aside");
    fs::rename(&kept, &aside).unwrap();
    // Reading a directory as a file causes a file system error.
    fs::create_dir(&kept).unwrap();
    let error = dir.log().unwrap_err();
    assert!(error.to_string().contains("cannot read"), "{error}");
    fs::remove_dir(&kept).unwrap();

    let mut bytes = fs::read(&aside).unwrap();
    bytes[0] ^= 1;
    fs::write(&kept, &bytes).unwrap();
    let error = dir.log().unwrap_err().to_string();
    assert!(error.contains(&kept.display().to_string()), "{error}");
    assert!(error.contains("Move the file away"), "{error}");
    assert_eq!(fs::read(&kept).unwrap(), bytes);

    fs::rename(aside, &kept).unwrap();
    assert_eq!(dir.log().unwrap().next(), 21);
}

/// A node adds to its archive every second.
#[test]
fn archive_is_continued_in_the_same_file() {
    let root = TempDir::new().unwrap();
    let dir = BackupDir::open(root.path(), identity(1)).unwrap();
    let mut archive = dir.log().unwrap();
    for to in [10, 20, 30] {
        let first = archive.next();
        assert_eq!(archive.continue_at(first), None);
        let added = entries(first, to);
        (archive.append(RecordVersion::NEWEST, &added, stamp(to))).unwrap();
    }
    assert_eq!(files(&dir, "log-").len(), 1);
}

#[test]
fn restore_to_an_index_tolerates_a_gap_behind_it() {
    let root = TempDir::new().unwrap();
    let dir = BackupDir::open(root.path(), identity(1)).unwrap();
    dir.back_up(&states(10)[&10], 3).unwrap();
    log(&dir, 40);
    let mut archive = dir.log().unwrap();
    let later = entries(50, 60);
    (archive.append(RecordVersion::NEWEST, &later, stamp(60))).unwrap();

    let read = |index| Backup::read(dir.path(), Until::Index(index), &Rules);
    let backup = read(40).unwrap();
    assert_eq!((backup.info.index, backup.ends_early), (40, None));
    let left = backup.left_out.unwrap();
    assert_eq!((left.first.index, left.last.index), (50, 60));
    let words = read(41).unwrap_err().to_string();
    assert!(words.contains("has no entries 41 to 49"), "{words}");
}

/// A file was copied into the wrong directory.
#[test]
fn archived_log_of_another_history_is_refused() {
    let root = TempDir::new().unwrap();
    let dir = BackupDir::open(root.path(), identity(1)).unwrap();
    dir.back_up(&states(10)[&10], 3).unwrap();
    let (cluster, epoch, ours) = (Uuid::from_u128(5), 8, identity(1));
    for (theirs, words) in [
        (Identity { cluster, ..ours }, format!("cluster {cluster}")),
        (Identity { epoch, ..ours }, "epoch 8".to_owned()),
    ] {
        let elsewhere = TempDir::new().unwrap();
        let other = BackupDir::open(elsewhere.path(), theirs).unwrap();
        log(&other, 20);
        let [file] = &files(&other, "log-")[..] else {
            panic!("one file");
        };
        let copy = dir.path().join(file.file_name().unwrap());
        fs::copy(file, &copy).unwrap();

        let words = format!("belongs to {words}");
        let restored = Backup::read(dir.path(), Until::End, &Rules);
        let refused = restored.unwrap_err().to_string();
        assert!(refused.contains(&words), "{refused}");
        let refused = dir.log().unwrap_err().to_string();
        assert!(refused.contains(&words), "{refused}");
        fs::remove_file(copy).unwrap();
    }
}
