//! The ledger contains the changes of each entry after the floor exactly once, also after crashes
//! and snapshots.

use std::path::Path;
use std::time::Duration;

use crate::common::{
    applied, apply, build, history, new_dir, opened, options, provider, run, stamp, state_with,
    take_over,
};
use placement_model::types::Timestamp;
use placement_raft_store::{Floor, Ledger, LedgerError, Store, StoreOptions, open};
use rocksdb::{DB, Direction, IteratorMode};
use tempfile::TempDir;

const LAST: u64 = u64::MAX;

fn with(dir: &Path, rows_behind: usize, ledger_bytes: u64) -> Store {
    open(StoreOptions {
        rows_behind,
        ledger_bytes,
        ..options(dir)
    })
    .unwrap()
}

/// The indexes of all entries after `after`, read in pages of `bytes`.
fn places(ledger: &Ledger, mut after: u64, up_to: u64, bytes: usize) -> Vec<u64> {
    let mut found = Vec::new();
    loop {
        let page = ledger.forward(after, up_to, bytes).unwrap();
        let Some(last) = page.last() else {
            return found;
        };
        after = last.index;
        found.extend(page.iter().map(|entry| entry.index));
    }
}

fn places_back(ledger: &Ledger, mut from: u64, bytes: usize) -> Vec<u64> {
    let mut found = Vec::new();
    loop {
        let page = ledger.backward(from, bytes).unwrap();
        let Some(last) = page.last() else {
            return found;
        };
        from = last.index - 1;
        found.extend(page.iter().map(|entry| entry.index));
    }
}

fn check_all(ledger: &Ledger, floor: u64, last: u64) {
    assert_eq!(ledger.floor().index, floor);
    for bytes in [1, 700, usize::MAX] {
        let first = floor.max(1) + 1;
        let expected: Vec<_> = (first..=last).collect();
        assert_eq!(places(ledger, floor, last, bytes), expected);
        let expected: Vec<_> = expected.into_iter().rev().collect();
        assert_eq!(places_back(ledger, LAST, bytes), expected);
    }
}

#[test]
fn entries_are_read_from_memory_and_from_the_disk() {
    for rows_behind in [1, 7, 100_000] {
        let dir = new_dir();
        run(async {
            let mut store = with(dir.path(), rows_behind, 1 << 20);
            for entry in history(60) {
                apply(&mut store.machine, vec![entry]).await;
            }
            check_all(&store.ledger, 0, 60);
            assert_eq!(
                places(&store.ledger, 10, 20, 700),
                (11..=20).collect::<Vec<_>>()
            );
            assert_eq!(places(&store.ledger, 20, 10, 700), []);
            store.drafts.flush().await.unwrap();
            apply(&mut store.machine, vec![provider(1, 61), provider(1, 62)]).await;
            check_all(&store.ledger, 0, 62);
            let [entry] = &store.ledger.forward(61, 62, LAST as usize).unwrap()[..] else {
                panic!("one entry");
            };
            assert_eq!(
                (entry.at, entry.verb.as_ref()),
                (stamp(62), "CreateProvider")
            );
            let ledger = store.ledger.clone();
            drop(store);
            assert!(matches!(ledger.forward(0, 1, 1), Err(LedgerError::Closed)));
        });
    }
}

#[test]
fn a_crash_leaves_neither_gap_nor_repetition() {
    for rows_behind in [1, 7, 100_000] {
        let dir = new_dir();
        run(async {
            let mut store = with(dir.path(), rows_behind, 1 << 20);
            apply(&mut store.machine, history(20)).await;
            store.drafts.flush().await.unwrap();
            for index in 21..=40 {
                apply(&mut store.machine, vec![provider(1, index)]).await;
            }
            drop(store);
            let mut store = with(dir.path(), rows_behind, 1 << 20);
            assert_eq!(
                applied(&store).index(),
                Some(20),
                "the rest was not flushed"
            );
            check_all(&store.ledger, 0, 20);
            for index in 21..=30 {
                apply(&mut store.machine, vec![provider(1, index)]).await;
            }
            check_all(&store.ledger, 0, 30);
            store.drafts.flush().await.unwrap();
            check_all(&store.ledger, 0, 30);
        });
    }
}

#[test]
fn the_oldest_entries_are_dropped_when_there_are_too_many_bytes() {
    const MOST: u64 = 8_000;
    let dir = new_dir();
    let floor = run(async {
        let mut store = with(dir.path(), 10, MOST);
        apply(&mut store.machine, history(1)).await;
        let mut floor = 0;
        for index in 2..=400 {
            apply(&mut store.machine, vec![provider(1, index)]).await;
            if index % 10 == 0 {
                store.drafts.flush().await.unwrap();
                assert!(store.ledger.bytes() <= MOST);
                let next = store.ledger.floor();
                assert!(floor <= next.index);
                floor = next.index;
                check_all(&store.ledger, floor, index);
            }
        }
        assert!(floor > 100, "{floor}");
        assert!(
            store.ledger.bytes() > MOST * 3 / 4,
            "the ledger drops more than needed"
        );
        assert_eq!(store.ledger.floor().at, stamp(floor));
        let gone = store.ledger.forward(floor - 1, 400, 1).unwrap_err();
        assert!(
            matches!(gone, LedgerError::Gone(at) if at.index == floor),
            "{gone}"
        );
        floor
    });
    let store = with(dir.path(), 10, MOST);
    check_all(&store.ledger, floor, 400);
}

#[test]
fn ledger_without_space_drops_entries_at_once() {
    let dir = new_dir();
    run(async {
        let mut store = with(dir.path(), 100_000, 0);
        apply(&mut store.machine, history(20)).await;
        check_all(&store.ledger, 0, 20);
        store.drafts.flush().await.unwrap();
        check_all(&store.ledger, 20, 20);
        assert_eq!(store.ledger.bytes(), 0);
    });
}

#[test]
fn snapshot_raises_the_floor() {
    run(async {
        let (leader_dir, follower_dir) = (new_dir(), new_dir());
        let mut leader = opened(leader_dir.path());
        apply(&mut leader.machine, history(30)).await;
        let snapshot = build(&mut leader).await;
        let mut follower = opened(follower_dir.path());
        apply(&mut follower.machine, history(10)).await;
        follower.drafts.flush().await.unwrap();
        apply(&mut follower.machine, vec![provider(1, 11)]).await;
        take_over(&mut follower, &snapshot).await;
        let floor = Floor {
            index: 30,
            at: stamp(30),
        };
        assert_eq!(follower.ledger.floor(), floor);
        check_all(&follower.ledger, 30, 30);
        assert_eq!(follower.ledger.bytes(), 0);
        apply(&mut follower.machine, vec![provider(1, 31)]).await;
        follower.drafts.flush().await.unwrap();
        drop(follower);
        let follower = opened(follower_dir.path());
        check_all(&follower.ledger, 30, 31);
        assert_eq!(follower.ledger.floor(), floor);
    });
}

/// A stopped node that has written the entries up to `last` in two batches: the entries up to 9,
/// then the rest.
fn stopped(last: u64) -> TempDir {
    let dir = new_dir();
    run(async {
        let mut store = opened(dir.path());
        let mut entries = history(last);
        let later = entries.split_off(10);
        for entries in [entries, later] {
            apply(&mut store.machine, entries).await;
            store.drafts.flush().await.unwrap();
        }
    });
    dir
}

const ROWS: &str = "rows";
/// Key of the ledger record.
const RECORD: &str = "\0ledger-packs";

/// The ledger packs on disk: keys and values.
fn packs(state: &DB) -> Vec<[Box<[u8]>; 2]> {
    let from_first = IteratorMode::From(&[0, 0], Direction::Forward);
    let rows = state
        .iterator_cf(state.cf_handle(ROWS).unwrap(), from_first)
        .map(|row| <[_; 2]>::from(row.unwrap()));
    rows.take_while(|[key, _]| key.starts_with(&[0, 0]))
        .collect()
}

#[test]
fn dropped_entries_are_removed_from_the_disk() {
    const MOST: u64 = 8_000;
    let dir = new_dir();
    let floor = run(async {
        let mut store = with(dir.path(), 10, MOST);
        apply(&mut store.machine, history(1)).await;
        for index in 2..=400 {
            apply(&mut store.machine, vec![provider(1, index)]).await;
        }
        store.drafts.flush().await.unwrap();
        store.ledger.floor().index
    });
    assert!(floor > 100, "{floor}");
    let kept = packs(&state_with(dir.path(), &[ROWS]));
    let bytes: usize = kept.iter().map(|[_, pack]| pack.len()).sum();
    assert!(bytes as u64 <= MOST, "{bytes} bytes are on disk");
    for [key, _] in &kept {
        // The index of the last entry follows the prefix of the table.
        let last = u64::from_be_bytes(key[2..].try_into().unwrap());
        assert!(last > floor, "entry {last} is below the floor {floor}");
    }
}

#[test]
fn entries_applied_in_batches_are_read_back_without_gaps() {
    run(async {
        let dir = new_dir();
        let mut store = opened(dir.path());
        for entry in history(20) {
            apply(&mut store.machine, vec![entry]).await;
        }
        let expected: Vec<_> = (2..=20).rev().collect();
        for bytes in 1..2000 {
            assert_eq!(places_back(&store.ledger, LAST, bytes), expected, "{bytes}");
        }
    });
}

#[test]
fn a_damaged_entry_is_reported_and_not_left_out() {
    let dir = stopped(20);
    let state = state_with(dir.path(), &[ROWS]);
    let [key, pack] = packs(&state).swap_remove(1);
    let family = state.cf_handle(ROWS).unwrap();
    (state.put_cf(family, key, &pack[..pack.len() - 1])).unwrap();
    drop(state);
    let store = opened(dir.path());
    let ledger = &store.ledger;
    let expected: Vec<_> = (2..19).collect();
    assert_eq!(places(ledger, 0, 18, 1), expected);
    for read in [
        ledger.forward(0, 20, usize::MAX),
        ledger.backward(LAST, usize::MAX),
        ledger.backward(10, 1),
    ] {
        assert!(matches!(read, Err(LedgerError::Damaged(_))), "{read:?}");
    }
}

/// Checks that the ledger of this node begins after entry `last`, and contains later entries.
fn check_begins_at(dir: &Path, last: u64) {
    run(async {
        let mut store = opened(dir);
        let floor = Floor {
            index: last,
            at: stamp(last),
        };
        assert_eq!(store.ledger.floor(), floor);
        check_all(&store.ledger, last, last);
        apply(&mut store.machine, vec![provider(1, last + 1)]).await;
        check_all(&store.ledger, last, last + 1);
        store.drafts.flush().await.unwrap();
    });
    check_all(&opened(dir).ledger, last, last + 1);
}

#[test]
fn ledger_begins_after_rows_of_a_version_without_one() {
    let dir = stopped(20);
    let state = state_with(dir.path(), &[ROWS]);
    let family = state.cf_handle(ROWS).unwrap();
    for [key, _] in packs(&state) {
        state.delete_cf(family, key).unwrap();
    }
    state.delete_cf(family, RECORD).unwrap();
    drop(state);
    check_begins_at(dir.path(), 20);
}

#[test]
fn ledger_restarts_after_a_version_without_one_applied_entries() {
    let dir = stopped(20);
    let state = state_with(dir.path(), &[ROWS]);
    let family = state.cf_handle(ROWS).unwrap();
    let before = state.get_cf(family, RECORD).unwrap().unwrap();
    drop(state);
    run(async {
        let mut store = opened(dir.path());
        let more = (21..=30).map(|index| provider(1, index));
        apply(&mut store.machine, more.collect()).await;
        store.drafts.flush().await.unwrap();
    });
    // A version without a ledger writes rows, but not the ledger.
    let state = state_with(dir.path(), &[ROWS]);
    let family = state.cf_handle(ROWS).unwrap();
    for [key, _] in packs(&state).split_off(2) {
        state.delete_cf(family, key).unwrap();
    }
    state.put_cf(family, RECORD, before).unwrap();
    drop(state);
    check_begins_at(dir.path(), 30);
}

#[test]
fn ledger_of_a_new_node_is_complete() {
    let dir = new_dir();
    let store = opened(dir.path());
    let floor = Floor {
        index: 0,
        at: Timestamp(i64::MIN),
    };
    assert_eq!(store.ledger.floor(), floor);
    assert!(store.ledger.backward(LAST, 1).unwrap().is_empty());
}

/// Too few rows are pending for apply to wait for them, and nothing asks for a flush.
#[test]
fn pending_rows_are_written_in_the_background() {
    let dir = new_dir();
    run(async {
        let mut store = with(dir.path(), 4, 1 << 20);
        apply(&mut store.machine, history(3)).await;
        // The ledger is written together with the rows.
        let written = async {
            while store.ledger.bytes() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let written = tokio::time::timeout(Duration::from_secs(60), written).await;
        written.expect("the rows are written soon");
    });
}
