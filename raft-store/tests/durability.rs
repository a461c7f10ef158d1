//! Data that survives closing without a flush, and a loss of power.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    append, applied, apply, entry, history, log_id, new_dir, newest_wal, observations, opened,
    options, provider, read_all, replay, run, run_here,
};
use openraft::storage::{IOFlushed, RaftLogReader, RaftLogStorage, RaftStateMachine};
use openraft::type_config::TypeConfigExt;
use placement_machine::{SimulatedDisk, simulate};
use placement_model::Command;
use placement_model::command::DeleteAllocations;
use placement_model::mutant::inject;
use placement_model::types::ConsumerUuid;
use placement_raft_store::{Store, StoreOptions, TypeConfig, Vote, open};

#[test]
fn a_store_that_is_just_dropped_loses_nothing_acknowledged() {
    let dir = new_dir();
    let vote = Vote::new_committed(3, 1);
    let digest = run(async {
        let mut store = opened(dir.path());
        store.log.save_vote(&vote).await.unwrap();
        append(&mut store.log, history(50)).await;
        store.log.save_committed(Some(log_id(1, 40))).await.unwrap();
        apply(&mut store.machine, history(40)).await;
        applied(&store).digest()
    });
    run(async {
        let mut store = opened(dir.path());
        assert_eq!(applied(&store).last, None, "the rows were never flushed");
        let found = store.log.get_log_reader().await.read_vote().await;
        assert_eq!(found.unwrap(), Some(vote));
        assert_eq!(read_all(&mut store.log).await, history(50));
        replay(&mut store).await;
        assert_eq!(applied(&store).index(), Some(40));
        assert_eq!(applied(&store).digest(), digest);
    });
}

/// Only a flush makes rows durable, and it flushes all of them.
#[test]
fn rows_are_written_behind_apply_and_flushed_whole() {
    for rows_behind in [1, 50, 100_000] {
        let dir = new_dir();
        let options = StoreOptions {
            rows_behind,
            ..options(dir.path())
        };
        let digest = run(async {
            let mut store = open(options.clone()).unwrap();
            for entry in history(200) {
                apply(&mut store.machine, vec![entry]).await;
            }
            store.drafts.flush().await.unwrap();
            let digest = applied(&store).digest();
            apply(&mut store.machine, vec![provider(1, 201)]).await;
            digest
        });
        let store = open(options.clone()).unwrap();
        assert_eq!(applied(&store).index(), Some(200), "{rows_behind}");
        let voters: Vec<_> = applied(&store).membership.voter_ids().collect();
        assert_eq!(voters, [1, 2, 3]);
        assert_eq!(applied(&store).digest(), digest);
        drop(store);
        // openraft purges the log after a snapshot, so the rows must not depend on it.
        run(async {
            let mut store = open(options.clone()).unwrap();
            apply(&mut store.machine, vec![provider(1, 201)]).await;
            store.drafts.cover().await.unwrap();
        });
        std::fs::remove_dir_all(dir.path().join("snapshots")).unwrap();
        let store = open(options).unwrap();
        assert_eq!(applied(&store).index(), Some(201), "{rows_behind}");
    }
}

#[test]
fn failed_row_writes_stop_the_node() {
    // First, apply writes the rows; then, the writer thread.
    for (rows_behind, entries) in [(1, 20), (4, 1)] {
        let dir = new_dir();
        run(async {
            let mut store = open(StoreOptions {
                rows_behind,
                ..options(dir.path())
            })
            .unwrap();
            apply(&mut store.machine, history(20)).await;
            std::fs::remove_dir_all(dir.path().join("state")).unwrap();
            store.drafts.flush().await.unwrap_err();
            let mut next = 21;
            let error = loop {
                let batch = (next..next + entries).map(|index| Ok((provider(1, index), None)));
                next += entries;
                let batch = futures::stream::iter(batch);
                match store.machine.apply(batch).await {
                    Err(error) => break error.to_string(),
                    Ok(()) => assert!(next < 1_000, "apply never fails"),
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            };
            assert!(error.contains("cannot be written"), "{error}");
            assert!(store.health.failure().is_some());
        });
    }
}

#[test]
fn purged_entries_are_not_skipped_silently() {
    use futures::TryStreamExt;
    let dir = new_dir();
    run(async {
        let mut store = open(options(dir.path())).unwrap();
        append(&mut store.log, history(20)).await;
        store.log.purge(log_id(1, 5)).await.unwrap();
        let mut reader = store.log.get_log_reader().await;
        // Replication sends only entries that follow the receiver's last one.
        let sent = reader.limited_get_log_entries(6, 9).await.unwrap();
        assert_eq!(sent, history(20)[6..9]);
        assert_eq!(reader.limited_get_log_entries(3, 9).await.unwrap(), []);
        // A gap in entries to apply stops the node.
        let streamed = reader.entries_stream(3..9).await;
        let error = streamed.try_collect::<Vec<_>>().await.unwrap_err();
        assert!(error.to_string().contains("entry 3 is missing"), "{error}");
    });
}

/// A node that was away for long lacks more entries than fit in memory.
#[test]
fn step_of_the_log_is_bounded_in_bytes() {
    let long = |index| {
        let consumer = ConsumerUuid::from("x".repeat(400_000));
        let command = Command::DeleteAllocations(DeleteAllocations { consumer });
        entry(1, index, command)
    };
    // Read from RocksDB, and from the cache.
    for log_cache_bytes in [0, 64 << 20] {
        let dir = new_dir();
        run(async {
            let mut store = open(StoreOptions {
                log_cache_bytes,
                ..options(dir.path())
            })
            .unwrap();
            append(&mut store.log, (0..6).map(long).collect()).await;
            let reader = store.log.reader();
            for from in [0, 2, 4] {
                let step = reader.step(from, 6).unwrap();
                assert_eq!(step, [long(from), long(from + 1)], "a mebibyte at most");
            }
        });
    }
}

/// Each sync covers all waiting appends.
#[test]
fn many_appends_share_a_sync() {
    let dir = new_dir();
    run(async {
        let mut store = opened(dir.path());
        let mut flushed = Vec::new();
        for index in 0..1000 {
            let (sender, receiver) = TypeConfig::oneshot();
            let append = store
                .log
                .append([provider(1, index)], IOFlushed::signal(sender));
            append.await.unwrap();
            flushed.push(receiver);
        }
        for one in flushed {
            one.await.unwrap().unwrap();
        }
        let syncs = observations(&store.metrics.counters.sync);
        assert!(syncs < 500, "{syncs} syncs for 1000 appends");
    });
}

/// Runs a node on a simulated disk until it crashes.
fn simulated<T>(dir: &Path, disk: &SimulatedDisk, work: impl AsyncFnOnce(Store) -> T) -> T {
    let _simulation = simulate(1);
    let options = StoreOptions {
        disk: Arc::new(disk.clone()),
        ..options(dir)
    };
    run_here(async { work(open(options).unwrap()).await })
}

fn slow_disk() -> SimulatedDisk {
    SimulatedDisk::new(5, Duration::from_millis(5)..=Duration::from_millis(20))
}

/// Whether a write-ahead log file ends within a record. The file consists of blocks of 32 KiB. A
/// block consists of records with a header of 7 bytes: checksum, length, kind (RocksDB's wiki,
/// "Write Ahead Log File Format").
fn ends_within_a_record(file: &[u8]) -> bool {
    const BLOCK: usize = 32 << 10;
    const HEADER: usize = 7;
    let mut at = 0;
    while at < file.len() {
        let rest_of_block = BLOCK - at % BLOCK;
        if rest_of_block < HEADER {
            at += rest_of_block;
            continue;
        }
        let Some(header) = file.get(at..at + HEADER) else {
            return true;
        };
        at += HEADER + usize::from(u16::from_le_bytes([header[4], header[5]]));
    }
    at > file.len()
}

#[test]
fn a_torn_write_is_cut_off_wherever_it_ends() {
    let dir = new_dir();
    let disk = slow_disk();
    let mut last = 0;
    let (mut lost, mut torn) = (0, 0);
    for _ in 0..20 {
        simulated(dir.path(), &disk, async |mut store| {
            let there = read_all(&mut store.log).await.len() as u64;
            assert!(
                there >= last,
                "{there} entries, but {last} were acknowledged"
            );
            let entry = |index| provider(1, index);
            append(&mut store.log, vec![entry(there), entry(there + 1)]).await;
            last = there + 2;
            for index in last..last + 10 {
                let append = store.log.append([entry(index)], IOFlushed::noop());
                append.await.unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        assert!(
            !ends_within_a_record(&std::fs::read(newest_wal(dir.path())).unwrap()),
            "the log does not end within a record"
        );
        lost += disk.cut_power(dir.path(), true).unwrap();
        torn += u32::from(ends_within_a_record(
            &std::fs::read(newest_wal(dir.path())).unwrap(),
        ));
    }
    assert!(lost > 0, "no loss of power lost any bytes");
    assert!(torn > 0, "no loss of power left a torn record");
}

#[test]
fn a_simulated_disk_reports_an_acknowledged_vote_that_is_gone() {
    for (bug, keeps) in [
        (None, true),
        (Some("acknowledge-before-sync"), false),
        (Some("forget-votes"), false),
    ] {
        let dir = new_dir();
        let disk = slow_disk();
        simulated(dir.path(), &disk, async |mut store| {
            store.log.save_vote(&Vote::new(8, 2)).await.unwrap();
        });
        let injection = bug.map(inject);
        simulated(dir.path(), &disk, async |mut store| {
            store.log.save_vote(&Vote::new(9, 1)).await.unwrap();
        });
        drop(injection);
        disk.cut_power(dir.path(), false).unwrap();
        assert_eq!(disk.lost_vote(), None, "it was not read yet");
        simulated(dir.path(), &disk, async |_store| ());
        match disk.lost_vote() {
            None => assert!(keeps, "{bug:?} loses a vote"),
            Some(words) => {
                assert!(!keeps, "{bug:?}: {words}");
                assert!(
                    words.contains("<T8-N2:->") && words.contains("<T9-N1:->"),
                    "{words}"
                );
            }
        }
    }
}

#[test]
fn numbers_for_metrics_follow_what_is_done() {
    let dir = new_dir();
    run(async {
        let mut store = opened(dir.path());
        append(&mut store.log, history(20)).await;
        apply(&mut store.machine, history(20)).await;
        let metrics = store.metrics.clone();
        let (log, state, counters) = (metrics.log(), metrics.state(), &metrics.counters);
        assert_eq!(counters.synced_entries.get(), 21);
        assert_eq!(counters.applied_entries.get(), 21);
        assert!(observations(&counters.sync) >= 1);
        assert!(observations(&counters.apply) >= 1);
        assert!(log.wal_bytes > 1000, "{log:?}");
        assert!(state.memtable_bytes > 1000, "{state:?}");
        assert_eq!(state.sst_bytes, 0);
        store.drafts.flush().await.unwrap();
        assert!(metrics.state().sst_bytes > 0);
        drop(store);
        assert_eq!(
            metrics.log().wal_bytes,
            0,
            "a closed database reports zero bytes"
        );
    });
    opened(dir.path());
}
