//! Snapshots: built while writes continue, sent in pieces, verified before they replace anything.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::common::{
    self, Built, append, applied, apply, assert_says, blank, build, current, history, identity,
    install, logged, new_dir, opened, provider, refusal, replay, run, send, stamp, take_over,
};
use futures::FutureExt;
use openraft::storage::{RaftLogReader, RaftLogStorage, RaftSnapshotBuilder, RaftStateMachine};
use placement_model::command::WriteId;
use placement_model::types::PartitionId;
use placement_model::{Change, Level, Outcome};
use placement_raft_store::{
    Identity, OpenError, Payload, SnapshotError, SnapshotFile, Store, StoreOptions, create,
    inspect, write_backup,
};
use tempfile::TempDir;

fn files(dir: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.path().join("snapshots")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn pending_rows_do_not_overwrite_a_snapshot() {
    run(async {
        let (leader_dir, follower_dir) = (new_dir(), new_dir());
        let mut leader = opened(leader_dir.path());
        apply(&mut leader.machine, history(300)).await;
        let snapshot = build(&mut leader).await;
        let mut follower = opened(follower_dir.path());
        apply(&mut follower.machine, history(10)).await;
        take_over(&mut follower, &snapshot).await;
        follower.drafts.flush().await.unwrap();
        drop(follower);
        fs::remove_dir_all(follower_dir.path().join("snapshots")).unwrap();
        let follower = opened(follower_dir.path());
        assert_eq!(applied(&follower).last, applied(&leader).last);
    });
}

/// Entries that are applied during the flush may not be on disk. They must not be covered, because
/// the log of covered entries is purged.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "no simulation: the test needs two concurrent tasks"
)]
fn cover_excludes_entries_applied_during_its_flush() {
    run(async {
        for _ in 0..5 {
            let dir = new_dir();
            let mut store = opened(dir.path());
            apply(&mut store.machine, history(100)).await;
            let drafts = store.drafts.clone();
            let cover = tokio::spawn(async move { drafts.cover().await.unwrap() });
            let mut index = 100;
            while !cover.is_finished() {
                index += 1;
                apply(&mut store.machine, vec![provider(1, index)]).await;
            }
            cover.await.unwrap();
            let builder = store.machine.try_create_snapshot_builder(false).await;
            let covered = builder.unwrap().build_snapshot().await.unwrap();
            drop(store);
            fs::remove_dir_all(dir.path().join("snapshots")).unwrap();
            let store = opened(dir.path());
            let found = applied(&store).last;
            assert!(
                found >= covered.meta.last_log_id,
                "{:?} was covered, and {found:?} is durable",
                covered.meta.last_log_id
            );
        }
    });
}

#[test]
fn follower_far_behind_installs_the_whole_state() {
    run(async {
        let (leader_dir, follower_dir) = (new_dir(), TempDir::new().unwrap());
        create(follower_dir.path(), identity(2)).unwrap();
        let mut leader = opened(leader_dir.path());
        apply(&mut leader.machine, history(300)).await;
        let snapshot = build(&mut leader).await;
        assert_eq!(snapshot.meta.last_log_id, applied(&leader).last);

        let mut follower = opened(follower_dir.path());
        apply(&mut follower.machine, history(10)).await;
        take_over(&mut follower, &snapshot).await;
        assert_eq!(applied(&follower).digest(), applied(&leader).digest());
        assert_eq!(applied(&follower).last, applied(&leader).last);
        assert_eq!(applied(&follower).membership, applied(&leader).membership);
        assert_eq!(current(&mut follower).await.meta, snapshot.meta);
        assert_eq!(files(&follower_dir), Vec::<PathBuf>::new());

        // The follower continues from there, and a restart finds everything.
        apply(&mut follower.machine, vec![provider(1, 301)]).await;
        drop(follower);
        let follower = opened(follower_dir.path());
        assert_eq!(applied(&follower).digest(), applied(&leader).digest());
    });
}

/// A waiting write whose entry is covered by the snapshot is proposed again and answered by another
/// entry.
#[test]
fn waiting_write_is_woken_when_a_snapshot_replaces_its_entry() {
    run(async {
        let (dir, follower_dir) = (new_dir(), TempDir::new().unwrap());
        create(follower_dir.path(), identity(2)).unwrap();
        let id = WriteId {
            origin: 2,
            boot: 1,
            sequence: 1,
            answered_below: 1,
        };
        let write = |index| {
            let mut entry = provider(1, index);
            if let Payload::Normal(command) = &mut entry.payload {
                let mut stamped = command.stamped().clone();
                stamped.write_id = Some(id);
                *command = logged(stamped);
            }
            entry
        };
        let mut store = opened(dir.path());
        apply(&mut store.machine, history(20)).await;
        apply(&mut store.machine, vec![write(21)]).await;
        let snapshot = build(&mut store).await;

        let mut follower = opened(follower_dir.path());
        let mut expected = follower.views.expect(&id).unwrap();
        assert_eq!(expected.answer().now_or_never(), None, "it waits");
        take_over(&mut follower, &snapshot).await;
        assert_eq!(expected.answer().now_or_never(), Some(None));
        follower.views.renew(&mut expected, &id).unwrap();
        apply(&mut follower.machine, vec![write(22)]).await;
        let answered = expected.answer().now_or_never().flatten().unwrap();
        assert_eq!(answered.at.index(), 22);
        assert!(
            matches!(answered.outcome, Outcome::Done(_)),
            "the outcome of the first proposal"
        );
    });
}

#[test]
fn last_stamp_survives_a_restart_and_a_snapshot() {
    let (dir, follower_dir) = (new_dir(), TempDir::new().unwrap());
    create(follower_dir.path(), identity(2)).unwrap();
    let snapshot = run(async {
        let mut store = opened(dir.path());
        assert_eq!(applied(&store).last_stamp, None);
        apply(&mut store.machine, history(1)).await;
        assert_eq!(applied(&store).last_stamp, None, "no command yet");
        apply(&mut store.machine, vec![provider(1, 2), provider(1, 3)]).await;
        assert_eq!(applied(&store).last_stamp, Some(stamp(3)));
        // From a leader whose binary did not know the earlier timestamps.
        let mut early = provider(2, 4);
        if let Payload::Normal(command) = &mut early.payload {
            let mut stamped = command.stamped().clone();
            stamped.at = stamp(1);
            *command = logged(stamped);
        }
        apply(&mut store.machine, vec![early, blank(2, 5)]).await;
        assert_eq!(applied(&store).last_stamp, Some(stamp(3)));
        build(&mut store).await
    });
    run(async {
        let store = opened(dir.path());
        assert_eq!(applied(&store).last_stamp, Some(stamp(3)));

        let mut follower = opened(follower_dir.path());
        let received = send(&snapshot.file, &follower);
        install(&mut follower, &snapshot.meta, received)
            .await
            .unwrap();
        assert_eq!(applied(&follower).last_stamp, Some(stamp(3)));
        drop(follower);
        let follower = opened(follower_dir.path());
        assert_eq!(applied(&follower).last_stamp, Some(stamp(3)));
    });
}

#[test]
fn log_may_be_purged_up_to_the_covered_entry() {
    let dir = new_dir();
    let digest = run(async {
        let mut store = opened(dir.path());
        append(&mut store.log, history(100)).await;
        let committed = Some(common::log_id(1, 100));
        store.log.save_committed(committed).await.unwrap();
        apply(&mut store.machine, history(80)).await;
        store.drafts.cover().await.unwrap();
        let builder = store.machine.try_create_snapshot_builder(false).await;
        let covered = builder.unwrap().build_snapshot().await.unwrap();
        (store.log.purge(covered.meta.last_log_id.unwrap()).await).unwrap();
        apply(&mut store.machine, history(100).split_off(81)).await;
        applied(&store).digest()
    });
    run(async {
        let mut store = opened(dir.path());
        assert_eq!(applied(&store).index(), Some(80));
        replay(&mut store).await;
        assert_eq!(applied(&store).digest(), digest);
    });
}

#[test]
fn snapshot_is_consistent_while_writes_continue() {
    run(async {
        let dir = new_dir();
        let mut store = opened(dir.path());
        apply(&mut store.machine, history(50)).await;
        let (then, digest) = (applied(&store).last, applied(&store).digest());
        let snapshot = current(&mut store).await;
        apply(&mut store.machine, history(60).split_off(51)).await;
        assert_eq!(snapshot.meta.last_log_id, then);
        let file = store.drafts.write_down(&snapshot).await.unwrap();

        let other_dir = new_dir();
        let mut other = opened(other_dir.path());
        let received = send(&file, &other);
        install(&mut other, &snapshot.meta, received).await.unwrap();
        assert_eq!(applied(&other).digest(), digest);
    });
}

#[test]
fn snapshot_is_reused_until_the_log_after_it_may_be_purged() {
    run(async {
        let dir = new_dir();
        let mut store = opened(dir.path());
        apply(&mut store.machine, history(20)).await;
        let first = build(&mut store).await;
        apply(&mut store.machine, vec![provider(1, 21)]).await;
        let again = current(&mut store).await;
        assert_eq!(again.meta, first.meta);
        let file = store.drafts.write_down(&again).await.unwrap();
        assert_eq!(files(&dir), [file.path()]);

        store.drafts.cover().await.unwrap();
        assert_eq!(files(&dir), Vec::<PathBuf>::new());
        assert_eq!(file.read_at(0, 8).unwrap(), b"PLACSNAP", "it is being sent");
        let newer = build(&mut store).await;
        assert_eq!(newer.meta.last_log_id, applied(&store).last);
        assert_eq!(files(&dir), [newer.file.path()]);
        drop(store);
        let mut store = opened(dir.path());
        assert_eq!(files(&dir), Vec::<PathBuf>::new(), "a start needs none");
        assert_eq!(current(&mut store).await.meta, newer.meta);
    });
}

/// The file is requested some time after openraft got the snapshot: the node waits until the
/// receiver has room.
#[test]
fn snapshot_written_late_is_not_offered_again() {
    run(async {
        let dir = new_dir();
        let mut store = opened(dir.path());
        apply(&mut store.machine, history(20)).await;
        let late = current(&mut store).await;
        apply(&mut store.machine, vec![provider(1, 21)]).await;
        store.drafts.cover().await.unwrap();
        store.drafts.write_down(&late).await.unwrap();
        apply(&mut store.machine, vec![provider(2, 22)]).await;
        let next = current(&mut store).await;
        assert_eq!(next.meta.last_log_id, applied(&store).last);
    });
}

#[test]
fn received_snapshot_replaces_the_written_one() {
    run(async {
        let (leader_dir, dir) = (new_dir(), new_dir());
        let mut leader = opened(leader_dir.path());
        apply(&mut leader.machine, history(40)).await;
        let newer = build(&mut leader).await;

        let mut store = opened(dir.path());
        apply(&mut store.machine, history(10)).await;
        build(&mut store).await;
        take_over(&mut store, &newer).await;
        assert_eq!(current(&mut store).await.meta, newer.meta);
        assert_eq!(files(&dir), Vec::<PathBuf>::new());
    });
}

#[test]
fn an_empty_state_has_no_snapshot() {
    run(async {
        let dir = new_dir();
        let mut store = opened(dir.path());
        let none = store.machine.get_current_snapshot().await.unwrap();
        assert!(none.is_none());
    });
}

/// Writes bytes as if another node had sent them.
fn incoming(to: &Store, bytes: &[u8]) -> SnapshotFile {
    let mut receiver = to.snapshots.receive().unwrap();
    receiver.write(bytes).unwrap();
    receiver.finish().unwrap()
}

#[test]
fn a_damaged_snapshot_is_refused_and_changes_nothing() {
    run(async {
        let (source_dir, dir) = (new_dir(), new_dir());
        let mut source = opened(source_dir.path());
        apply(&mut source.machine, history(40)).await;
        let snapshot = build(&mut source).await;
        let good = fs::read(snapshot.file.path()).unwrap();

        let mut store = opened(dir.path());
        apply(&mut store.machine, history(10)).await;
        let before = applied(&store).digest();
        let refused = |bytes: &[u8], what: &str| {
            let verified = (store.snapshots).verify(&snapshot.meta, incoming(&store, bytes));
            let error = verified.expect_err(what);
            assert!(!matches!(error, SnapshotError::Io(_)), "{what}: {error}");
        };
        for at in (0..good.len()).step_by(37) {
            let mut bad = good.clone();
            bad[at] ^= 0x20;
            refused(&bad, &format!("byte {at} of {}", good.len()));
        }
        for length in [0, 7, 8, 30, good.len() / 2, good.len() - 1] {
            refused(&good[..length], &format!("the first {length} bytes"));
        }
        refused(&[good.as_slice(), b"x"].concat(), "one more byte");
        refused(b"GIF89a is not a snapshot", "another kind of file");

        // openraft gets the error too, if the snapshot was not verified before.
        let mut bad = good.clone();
        bad[good.len() / 2] ^= 1;
        let file = incoming(&store, &bad);
        install(&mut store, &snapshot.meta, file).await.unwrap_err();
        assert!(store.health.failure().unwrap().contains("is rejected"));
        assert_eq!(applied(&store).digest(), before);
        assert_eq!(files(&dir), Vec::<PathBuf>::new());
        drop(store);
        let last = applied(&opened(dir.path())).last;
        assert_eq!(last, None, "nothing was flushed");
    });
}

#[test]
fn a_snapshot_of_another_history_is_refused() {
    run(async {
        let dir = new_dir();
        let store = opened(dir.path());
        let refused = async |identity: Identity, words: &str| {
            let other_dir = TempDir::new().unwrap();
            create(other_dir.path(), identity).unwrap();
            let mut other = opened(other_dir.path());
            apply(&mut other.machine, history(5)).await;
            let snapshot = build(&mut other).await;
            let file = send(&snapshot.file, &store);
            let error = store.snapshots.verify(&snapshot.meta, file).unwrap_err();
            assert_says(&error, words);
        };
        let (cluster, epoch, ours) = (uuid::Uuid::from_u128(5), 8, identity(2));
        refused(
            Identity { cluster, ..ours },
            &format!("belongs to cluster {cluster}"),
        )
        .await;
        refused(Identity { epoch, ..ours }, "belongs to epoch 8").await;
    });
}

#[test]
fn a_snapshot_that_differs_from_its_announcement_is_refused() {
    run(async {
        let (source_dir, dir) = (new_dir(), new_dir());
        let mut source = opened(source_dir.path());
        apply(&mut source.machine, history(5)).await;
        let old = build(&mut source).await;
        apply(&mut source.machine, vec![provider(1, 6)]).await;
        let new = build(&mut source).await;
        let store = opened(dir.path());
        let file = send(&old.file, &store);
        let error = store.snapshots.verify(&new.meta, file).unwrap_err();
        assert_says(&error, "differs from its sender's announcement");
    });
}

/// The other nodes run a newer version and have raised the level: this one could not decide the
/// entries that follow.
#[test]
fn a_snapshot_of_an_unknown_level_is_refused() {
    run(async {
        let (source_dir, dir) = (new_dir(), new_dir());
        let mut source = opened(source_dir.path());
        apply(&mut source.machine, history(5)).await;
        let meta = current(&mut source).await.meta;
        let mut newer = applied(&source).as_ref().clone();
        let level = Level(Level::NEWEST.0 + 1);
        let raised = vec![(PartitionId::DEFAULT, vec![Change::PutLevel(level)])];
        Arc::make_mut(&mut newer.cluster).commit(&raised);
        let mut bytes = Vec::new();
        write_backup(&mut bytes, &identity(1), &newer).unwrap();

        let store = opened(dir.path());
        let verified = store.snapshots.verify(&meta, incoming(&store, &bytes));
        let error = verified.unwrap_err();
        assert!(error.is_newer(), "{error}");
        assert_says(&error, &format!("feature level {level}"));
        assert_eq!(files(&dir), Vec::<PathBuf>::new());
    });
}

/// Removes the snapshot directory temporarily, to simulate a full disk or a lack of file
/// descriptors.
async fn without_snapshots(dir: &TempDir, during: impl Future<Output = ()>) {
    let (snapshots, aside) = (dir.path().join("snapshots"), dir.path().join("aside"));
    fs::rename(&snapshots, &aside).unwrap();
    fs::write(&snapshots, b"").unwrap();
    during.await;
    fs::remove_file(&snapshots).unwrap();
    fs::rename(&aside, &snapshots).unwrap();
}

#[test]
fn failed_snapshot_write_is_retried() {
    run(async {
        let dir = new_dir();
        let mut store = opened(dir.path());
        apply(&mut store.machine, history(40)).await;
        let snapshot = current(&mut store).await;
        without_snapshots(&dir, async {
            store.drafts.write_down(&snapshot).await.unwrap_err();
            store.drafts.cover().await.unwrap();
        })
        .await;
        assert_eq!(store.health.failure(), None);
        assert_eq!(store.metrics.counters.snapshots_failed.get(), 1);
        store.drafts.write_down(&snapshot).await.unwrap();
        assert_eq!(files(&dir).len(), 1);
    });
}

#[test]
fn openraft_gets_a_covered_state_once() {
    run(async {
        let dir = new_dir();
        let mut store = opened(dir.path());
        apply(&mut store.machine, history(40)).await;
        let covered = applied(&store).last;
        assert!((store.machine.try_create_snapshot_builder(false).await).is_none());
        store.drafts.cover().await.unwrap();
        apply(&mut store.machine, vec![provider(1, 41)]).await;
        let builder = store.machine.try_create_snapshot_builder(false).await;
        let snapshot = builder.unwrap().build_snapshot().await.unwrap();
        assert_eq!(snapshot.meta.last_log_id, covered);
        assert!((store.machine.try_create_snapshot_builder(false).await).is_none());
    });
}

#[test]
fn failed_flush_covers_nothing() {
    let dir = new_dir();
    run(async {
        let mut store = opened(dir.path());
        apply(&mut store.machine, history(20)).await;
        fs::remove_dir_all(dir.path().join("state")).unwrap();
        store.drafts.cover().await.unwrap_err();
        let failure = store.health.failure().unwrap();
        assert!(failure.contains("cannot be flushed"), "{failure}");
        assert!((store.machine.try_create_snapshot_builder(false).await).is_none());
    });
}

#[test]
fn node_replaces_its_own_damaged_snapshot() {
    let dir = new_dir();
    run(async {
        let mut store = opened(dir.path());
        assert!(!store.drafts.repair().await.unwrap(), "there is no file");
        apply(&mut store.machine, history(40)).await;
        let built = build(&mut store).await;
        assert!(!store.drafts.repair().await.unwrap(), "it is undamaged");

        let good = fs::read(built.file.path()).unwrap();
        let mut bytes = good.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(built.file.path(), bytes).unwrap();
        assert!(store.drafts.repair().await.unwrap());
        assert_eq!(files(&dir), Vec::<PathBuf>::new());
        assert_eq!(store.metrics.counters.snapshots_damaged.get(), 1);
        let again = build(&mut store).await;
        assert_eq!(fs::read(again.file.path()).unwrap(), good);
    });
}

#[test]
fn files_left_by_a_crash_are_removed() {
    let dir = new_dir();
    let store = opened(dir.path());
    let half = store.snapshots.receive().unwrap();
    assert_eq!(files(&dir).len(), 1);
    drop(half);
    assert_eq!(files(&dir).len(), 0, "a dropped receiver leaves no file");
    drop(store);
    let snapshots = dir.path().join("snapshots");
    for name in ["incoming-3", "draft-snapshot-1-1-5", "snapshot-1-1-5"] {
        fs::write(snapshots.join(name), b"half of it").unwrap();
    }
    let _store = opened(dir.path());
    assert_eq!(files(&dir), Vec::<PathBuf>::new());
}

/// A leader with a snapshot of 300 entries, and a follower that has received but not installed it.
async fn received(leader_dir: &TempDir, follower_dir: &TempDir) -> (Store, Built, Store) {
    create(follower_dir.path(), identity(2)).unwrap();
    let mut leader = opened(leader_dir.path());
    apply(&mut leader.machine, history(300)).await;
    let snapshot = build(&mut leader).await;
    let mut follower = opened(follower_dir.path());
    append(&mut follower.log, history(10)).await;
    apply(&mut follower.machine, history(10)).await;
    let file = send(&snapshot.file, &follower);
    let file = follower.snapshots.verify(&snapshot.meta, file).unwrap();
    let meta = snapshot.meta;
    (leader, Built { meta, file }, follower)
}

#[test]
fn snapshot_received_before_a_crash_is_installed_at_start() {
    run(async {
        let (leader_dir, follower_dir) = (new_dir(), TempDir::new().unwrap());
        let (leader, snapshot, follower) = received(&leader_dir, &follower_dir).await;
        assert_eq!(applied(&follower).index(), Some(10), "not yet");
        drop(follower);
        let found = inspect(follower_dir.path()).unwrap();
        let [unfinished] = &found.unfinished[..] else {
            panic!("{found:?}");
        };
        assert!(unfinished.contains("received-"), "{unfinished}");

        let mut follower = opened(follower_dir.path());
        assert_eq!(applied(&follower).digest(), applied(&leader).digest());
        assert_eq!(applied(&follower).last, snapshot.meta.last_log_id);
        assert_eq!(current(&mut follower).await.meta, snapshot.meta);
        // The node may not have voted for the leader that has sent the snapshot.
        let mut log = follower.log.get_log_reader().await;
        let vote = log.read_vote().await.unwrap().unwrap();
        drop(log);
        let led = snapshot.meta.last_log_id.unwrap();
        assert_eq!(vote.leader_id, *led.committed_leader_id());
        assert_eq!(files(&follower_dir), Vec::<PathBuf>::new());
        drop(follower);
        assert!(inspect(follower_dir.path()).unwrap().unfinished.is_empty());
    });
}

#[test]
fn damaged_received_snapshot_prevents_the_start() {
    run(async {
        let (leader_dir, follower_dir) = (new_dir(), TempDir::new().unwrap());
        let (_leader, _snapshot, follower) = received(&leader_dir, &follower_dir).await;
        drop(follower);
        let [path] = files(&follower_dir).try_into().unwrap();
        let good = fs::read(&path).unwrap();
        for at in [0, good.len() / 2, good.len() - 1] {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            fs::write(&path, bytes).unwrap();
            for start in 1..=2 {
                let error = refusal(StoreOptions::new(follower_dir.path()));
                assert!(
                    matches!(error, OpenError::Damaged { .. }),
                    "byte {at}, start {start}: {error}"
                );
            }
        }
    });
}

#[test]
fn unneeded_verified_snapshot_is_removed() {
    run(async {
        let (leader_dir, follower_dir) = (new_dir(), TempDir::new().unwrap());
        let (_leader, received, mut follower) = received(&leader_dir, &follower_dir).await;
        let path = received.file.path().to_owned();
        follower.snapshots.give_up(&received.meta, &path);
        assert_eq!(files(&follower_dir), Vec::<PathBuf>::new());

        // Once installed, it is no longer needed.
        let file = send(&received.file, &follower);
        let file = follower.snapshots.verify(&received.meta, file).unwrap();
        let path = file.path().to_owned();
        install(&mut follower, &received.meta, file).await.unwrap();
        follower.snapshots.give_up(&received.meta, &path);
        assert_eq!(files(&follower_dir), Vec::<PathBuf>::new());
        drop(follower);
        let last = applied(&opened(follower_dir.path())).last;
        assert_eq!(last, received.meta.last_log_id);
    });
}

/// The node got later entries from another leader, and crashed before it removed the file.
#[test]
fn received_snapshot_does_not_replace_a_newer_state() {
    run(async {
        let (leader_dir, follower_dir) = (new_dir(), TempDir::new().unwrap());
        let (_leader, _snapshot, mut follower) = received(&leader_dir, &follower_dir).await;
        let later = history(310).split_off(11);
        apply(&mut follower.machine, later).await;
        follower.drafts.flush().await.unwrap();
        let newest = applied(&follower);
        drop(follower);
        assert_eq!(files(&follower_dir).len(), 1, "the snapshot is still there");

        let follower = opened(follower_dir.path());
        assert_eq!(applied(&follower).last, newest.last);
        assert_eq!(applied(&follower).digest(), newest.digest());
        assert_eq!(files(&follower_dir), Vec::<PathBuf>::new());
    });
}

/// The log may have been purged for the newest one. The directory lists them in any order.
#[test]
fn newest_of_several_received_snapshots_is_installed_at_start() {
    run(async {
        let (leader_dir, follower_dir) = (new_dir(), TempDir::new().unwrap());
        create(follower_dir.path(), identity(2)).unwrap();
        let mut leader = opened(leader_dir.path());
        let mut snapshots = Vec::new();
        let mut applied_so_far = 0;
        for last in [100, 200, 300] {
            let next = history(last).split_off(applied_so_far);
            applied_so_far += next.len();
            apply(&mut leader.machine, next).await;
            snapshots.push(build(&mut leader).await);
        }
        let follower = opened(follower_dir.path());
        for which in [1, 2, 0] {
            let Built { meta, file } = &snapshots[which];
            let file = send(file, &follower);
            follower.snapshots.verify(meta, file).unwrap();
        }
        drop(follower);
        assert_eq!(files(&follower_dir).len(), 3);

        let follower = opened(follower_dir.path());
        assert_eq!(applied(&follower).last, applied(&leader).last);
        assert_eq!(applied(&follower).digest(), applied(&leader).digest());
        assert_eq!(files(&follower_dir), Vec::<PathBuf>::new());
    });
}
