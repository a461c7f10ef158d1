//! A node that has lost acknowledged data detects it when it starts, and refuses to start.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    self, append, applied, apply, assert_says, blank, history, log_id, new_dir, newest_wal, opened,
    options, provider, read_all, refusal, replay, run, run_here,
};
use openraft::storage::{IOFlushed, RaftLogReader, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use placement_machine::{SimulatedDisk, simulate};
use placement_model::command::WriteId;
use placement_raft_store::{Entry, OpenError, StoreOptions, TypeConfig, Vote, open};

/// Flips a bit in the middle of synced data.
fn flip_a_bit(dir: &Path) {
    let wal = newest_wal(dir);
    let mut bytes = fs::read(&wal).unwrap();
    let middle = bytes.len() / 2;
    assert!(middle > 0);
    bytes[middle] ^= 1;
    fs::write(wal, bytes).unwrap();
}

fn entries(term: u64, indexes: std::ops::RangeInclusive<u64>) -> Vec<Entry> {
    indexes.map(|index| provider(term, index)).collect()
}

fn assert_lost(dir: &Path, what: &str) {
    let error = refusal(options(dir));
    let words = error.to_string();
    assert!(matches!(error, OpenError::LogLost { .. }), "{words}");
    assert_says(&words, &format!("has lost synced data: {what}"));
    assert_says(&words, "join again");
}

#[test]
fn a_damaged_byte_in_what_was_synced_is_noticed() {
    let dir = new_dir();
    run(async {
        let mut store = opened(dir.path());
        for entry in history(100) {
            append(&mut store.log, vec![entry]).await;
        }
    });
    flip_a_bit(dir.path());
    assert_lost(dir.path(), "entry T1-N1.100");
    // After the refused open the files of RocksDB are consistent: only the file `reached` shows the
    // loss.
    assert_lost(dir.path(), "entry T1-N1.100");
}

#[test]
fn a_vote_that_is_gone_is_noticed() {
    let dir = new_dir();
    run(async {
        let mut store = opened(dir.path());
        append(&mut store.log, history(3)).await;
        store.log.save_vote(&Vote::new(8, 2)).await.unwrap();
    });
    let wal = newest_wal(dir.path());
    let mut bytes = fs::read(&wal).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(wal, bytes).unwrap();
    assert_lost(dir.path(), "its vote <T8-N2:");
}

#[test]
fn a_log_that_was_put_back_from_an_older_copy_is_noticed() {
    let dir = new_dir();
    run(async {
        append(&mut opened(dir.path()).log, history(3)).await;
    });
    let log = dir.path().join("log");
    let older = dir.path().join("older");
    fs::create_dir(&older).unwrap();
    for file in fs::read_dir(&log).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), older.join(file.file_name())).unwrap();
    }
    run(async {
        append(&mut opened(dir.path()).log, entries(1, 4..=9)).await;
    });
    fs::remove_dir_all(&log).unwrap();
    fs::rename(&older, &log).unwrap();
    assert_lost(dir.path(), "entry T1-N1.9; its last entry is T1-N1.3");
}

#[test]
fn without_its_note_a_log_is_opened_only_if_an_operator_accepts_it() {
    let dir = new_dir();
    run(async {
        append(&mut opened(dir.path()).log, history(9)).await;
    });
    let note = dir.path().join("reached");
    let assert_refused = |what: &str| {
        let error = refusal(options(dir.path()));
        let words = error.to_string();
        assert!(matches!(error, OpenError::ReachedLost { .. }), "{words}");
        assert!(words.contains(&format!("reached is {what}")), "{words}");
        assert!(words.contains("printf unknown > "), "{words}");
    };
    fs::write(&note, b"nonsense").unwrap();
    assert_refused("damaged");
    fs::write(&note, b"").unwrap();
    assert_refused("damaged");
    fs::remove_file(&note).unwrap();
    assert_refused("missing");
    fs::write(&note, b"unknown\n").unwrap();
    run(async { assert_eq!(read_all(&mut opened(dir.path()).log).await, history(9)) });
    // The acceptance is valid for one start.
    flip_a_bit_is_noticed_again(dir.path());
}

fn flip_a_bit_is_noticed_again(dir: &Path) {
    run(async {
        let mut store = opened(dir);
        for index in 10..=30 {
            append(&mut store.log, vec![provider(1, index)]).await;
        }
    });
    flip_a_bit(dir);
    assert_lost(dir, "entry T1-N1.30");
}

/// Runs `work` on a disk. The caller then cuts the power, before the next sync.
fn until_power_goes(
    dir: &Path,
    disk: &SimulatedDisk,
    work: impl AsyncFnOnce(&mut placement_raft_store::Store),
) {
    let _simulation = simulate(1);
    let options = StoreOptions {
        disk: Arc::new(disk.clone()),
        ..options(dir)
    };
    run_here(async {
        let mut store = open(options).unwrap();
        work(&mut store).await;
        // Gives the writer time to take the queued jobs and to wait for the disk.
        tokio::time::sleep(Duration::from_millis(1)).await;
    });
}

/// A new leader's entries may have a lower term than those they replace, and the log may be shorter
/// than before for a while.
#[test]
fn truncation_interrupted_by_a_crash_is_not_reported_as_loss() {
    let synced = || SimulatedDisk::new(5, Duration::from_millis(2)..=Duration::from_millis(3));
    let replace = async |store: &mut placement_raft_store::Store| {
        let kept = Some(log_id(1, 39));
        store.log.truncate_after(kept).await.unwrap();
        let append = store.log.append(entries(2, 40..=41), IOFlushed::noop());
        append.await.unwrap();
    };
    for lost in [true, false] {
        let (dir, disk) = (new_dir(), synced());
        until_power_goes(dir.path(), &disk, async |store| {
            append(&mut store.log, history(39)).await;
            append(&mut store.log, entries(3, 40..=60)).await;
            replace(store).await;
        });
        let bytes = if lost {
            disk.cut_power(dir.path(), false).unwrap()
        } else {
            1
        };
        assert!(bytes > 0);
        run(async {
            let mut store = opened(dir.path());
            let last = read_all(&mut store.log).await.pop().unwrap().log_id;
            let expected = if lost { log_id(3, 60) } else { log_id(2, 41) };
            assert_eq!(last, expected);
        });
    }
    // A truncation that no append follows.
    let dir = new_dir();
    run(async {
        let mut store = opened(dir.path());
        append(&mut store.log, history(39)).await;
        append(&mut store.log, entries(3, 40..=60)).await;
        replace(&mut store).await;
        append(&mut store.log, entries(2, 42..=50)).await;
        let kept = Some(log_id(2, 45));
        store.log.truncate_after(kept).await.unwrap();
    });
    run(async {
        let mut store = opened(dir.path());
        let last = read_all(&mut store.log).await.pop().unwrap().log_id;
        assert_eq!(last, log_id(2, 45));
        // Purges beyond the last entry, as after a snapshot.
        store.log.purge(log_id(5, 90)).await.unwrap();
    });
    run(async { append(&mut opened(dir.path()).log, vec![blank(5, 91)]).await });
    run(async { assert_eq!(read_all(&mut opened(dir.path()).log).await, [blank(5, 91)]) });
}

/// A node truncates the entries of an old leader, applies the entries of the new one, and flushes
/// its state; the power fails before the truncation is on disk.
#[test]
fn truncation_undone_by_a_crash_is_repeated() {
    // The stale log ends after the state's last entry, or before it but in a later term.
    for (stale_term, stale_end) in [(3, 60), (7, 50)] {
        let dir = new_dir();
        let committed: Vec<Entry> = history(39).into_iter().chain(entries(5, 40..=55)).collect();
        run(async {
            let mut store = opened(dir.path());
            let vote = Vote::new_committed(8, 2);
            store.log.save_vote(&vote).await.unwrap();
            append(&mut store.log, history(39)).await;
            append(&mut store.log, entries(stale_term, 40..=stale_end)).await;
            apply(&mut store.machine, committed.clone()).await;
            store.drafts.flush().await.unwrap();
        });
        for _ in 0..2 {
            run(async {
                let mut store = opened(dir.path());
                replay(&mut store).await;
                assert_eq!(applied(&store).index(), Some(55));
                let state = store.log.get_log_state().await.unwrap();
                assert_eq!(state.last_purged_log_id, Some(log_id(5, 55)));
                assert_eq!(state.last_log_id, Some(log_id(5, 55)));
                let vote = store.log.get_log_reader().await.read_vote().await;
                assert_eq!(vote.unwrap(), Some(Vote::new_committed(8, 2)));
            });
        }
        run(async { append(&mut opened(dir.path()).log, entries(8, 56..=57)).await });
        run(async {
            let mut store = opened(dir.path());
            assert_eq!(read_all(&mut store.log).await, entries(8, 56..=57));
        });
    }
}

#[test]
fn a_lost_or_older_count_of_starts_is_noticed() {
    let dir = new_dir();
    let boot = dir.path().join("boot");
    run(async {
        let mut store = opened(dir.path());
        append(&mut store.log, history(3)).await;
    });
    let first = fs::read(&boot).unwrap();
    fs::remove_file(&boot).unwrap();
    let error = refusal(options(dir.path()));
    let words = error.to_string();
    assert!(matches!(error, OpenError::BootLost { .. }), "{words}");
    assert!(words.contains("has started 0 times"), "{words}");
    assert!(words.contains("join again"), "{words}");

    // The state has a write of the third start, but the file counts one.
    fs::write(&boot, &first).unwrap();
    drop(opened(dir.path()));
    run(async {
        let mut store = opened(dir.path());
        assert_eq!(store.boot, 3);
        apply(&mut store.machine, history(3)).await;
        let later = common::provider_by(4, |id| WriteId { boot: 3, ..id });
        apply(&mut store.machine, vec![later]).await;
        store.drafts.flush().await.unwrap();
    });
    fs::write(&boot, &first).unwrap();
    let words = refusal(options(dir.path())).to_string();
    assert!(words.contains("has started 1 times"), "{words}");
}

/// The previous start of the node has written an outcome with the same number. The write must
/// delete it, although the new outcome is never written: a start rejects rows that do not match the
/// digest.
#[test]
fn outcome_put_and_deleted_between_writes_keeps_rows_correct() {
    let dir = new_dir();
    drop(opened(dir.path()));
    run(async {
        let mut store = opened(dir.path());
        apply(&mut store.machine, history(3)).await;
        store.drafts.flush().await.unwrap();
        let restarted = |index, sequence, answered_below| {
            common::provider_by(index, |id| WriteId {
                boot: 2,
                sequence,
                answered_below,
                ..id
            })
        };
        let entries = vec![restarted(4, 3, 0), restarted(5, 4, 4), restarted(6, 5, 5)];
        apply(&mut store.machine, entries).await;
        store.drafts.flush().await.unwrap();
    });
    assert_eq!(applied(&opened(dir.path())).index(), Some(6));
}

/// A leader with a slow disk waits instead of filling the memory.
#[test]
fn appends_wait_while_too_much_waits_for_the_disk() {
    let dir = new_dir();
    let slow = Duration::from_millis(300);
    let _simulation = simulate(1);
    run_here(async {
        let mut store = open(StoreOptions {
            disk: Arc::new(SimulatedDisk::new(5, slow..=slow)),
            log_queue_bytes: 5000,
            ..options(dir.path())
        })
        .unwrap();
        let began = tokio::time::Instant::now();
        let mut flushed = Vec::new();
        let mut next = 0;
        while began.elapsed() < slow / 2 {
            let (sender, receiver) = TypeConfig::oneshot();
            let one = provider(1, next);
            let append = store.log.append([one], IOFlushed::signal(sender));
            append.await.unwrap();
            flushed.push(receiver);
            next += 1;
            assert!(next < 1000, "the queue is not bounded");
        }
        assert!(next > 10, "the queue has room for more than {next} entries");
        assert!(began.elapsed() >= slow, "the last one waited for a sync");
        // An append larger than the queue is accepted when it is alone.
        let many: Vec<Entry> = entries(1, next..=next + 200);
        let (sender, receiver) = TypeConfig::oneshot();
        (store.log.append(many, IOFlushed::signal(sender)).await).unwrap();
        flushed.push(receiver);
        for one in flushed {
            one.await.unwrap().unwrap();
        }
        assert_eq!(read_all(&mut store.log).await.len() as u64, next + 201);
    });
}
