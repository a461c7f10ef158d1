//! Files of the store after a loss of power, while idle and in the middle of work. Each sync of the
//! store is needed by one of these tests.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    append, applied, apply, blank, build, history, identity, install, log_id, new_dir, opened,
    options, provider, read_all, run, run_here, stamp,
};
use openraft::storage::RaftLogStorage;
use placement_base::platform::Installed;
use placement_base::runtime;
use placement_machine::{POINTS, START_POINTS, SimulatedDisk, simulate};
use placement_raft_store::wire::RecordVersion;
use placement_raft_store::{
    Backup, BackupDir, Rules, Store, StoreOptions, Until, boots, create, open,
};
use tempfile::TempDir;

/// A machine whose disk loses unsynced data.
struct Machine {
    top: TempDir,
    disk: SimulatedDisk,
    _simulation: Installed,
}

impl Machine {
    fn new() -> Self {
        let simulation = simulate(1);
        let top = TempDir::new().unwrap();
        let disk = SimulatedDisk::new(5, Duration::from_millis(1)..=Duration::from_millis(2));
        disk.mount(top.path()).unwrap();
        Self {
            top,
            disk,
            _simulation: simulation,
        }
    }

    fn dir(&self) -> PathBuf {
        self.top.path().join("data")
    }

    /// Opens the store; `None` if the power fails first.
    async fn opened(&self) -> Option<Store> {
        let options = StoreOptions {
            disk: Arc::new(self.disk.clone()),
            ..options(&self.dir())
        };
        let opening = runtime::blocking(move || open(options).unwrap());
        self.until_power_fails(opening).await
    }

    /// The result of `work`, or `None` if the power fails first.
    async fn until_power_fails<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let failing = async {
            while self.disk.failed_at().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            biased;
            done = work => Some(done),
            () = failing => None,
        }
    }

    /// Starts the node, runs `work`, and cuts the power.
    fn run<T>(&self, work: impl AsyncFnOnce(Option<Store>) -> T) -> T {
        let done = run_here(async { work(self.opened().await).await });
        self.disk.cut_power(&self.dir(), false).unwrap();
        done
    }
}

#[test]
fn created_and_started_node_survives_a_loss_of_power() {
    let machine = Machine::new();
    let dir = machine.dir();
    create(&dir, identity(1)).unwrap();
    machine.disk.cut_power(&dir, false).unwrap();
    let found = placement_raft_store::identity(&dir).unwrap();
    assert_eq!(found, Some(identity(1)));
    for start in 1..=3 {
        let boot = machine.run(async |store| store.unwrap().boot);
        assert_eq!((boot, boots(&dir).unwrap()), (start, start));
        assert!(dir.join("log/CURRENT").exists() && dir.join("state/CURRENT").exists());
    }
    let note = std::fs::read(dir.join("reached")).unwrap();
    assert_eq!(note.len(), 512, "the file has its whole length");
}

/// The number of a start that may have written data is never used again.
#[test]
fn start_after_a_loss_of_power_has_a_higher_number() {
    for point in &POINTS[..START_POINTS] {
        let machine = Machine::new();
        create(&machine.dir(), identity(1)).unwrap();
        machine.run(async |store| {
            let mut store = store.unwrap();
            append(&mut store.log, history(5)).await;
        });
        machine.disk.fail_at(Some(point));
        let is_open = machine.run(async |store| store.is_some());
        assert!(!is_open, "the power fails when {point}");
        assert_eq!(machine.disk.failed_at(), Some(*point));
        machine.disk.fail_at(None);
        machine.run(async |store| {
            let mut store = store.unwrap();
            assert!(store.boot >= 2, "{} after {point}", store.boot);
            assert_eq!(read_all(&mut store.log).await, history(5));
        });
    }
}

#[test]
fn truncation_lowers_the_note_before_the_log() {
    let machine = Machine::new();
    create(&machine.dir(), identity(1)).unwrap();
    machine.run(async |store| {
        append(&mut store.unwrap().log, history(20)).await;
    });
    machine.run(async |store| {
        let mut store = store.unwrap();
        store.log.truncate_after(Some(log_id(1, 9))).await.unwrap();
        append(&mut store.log, vec![blank(2, 10)]).await;
    });
    // If the note still recorded entry 20, the start would report lost entries.
    machine.run(async |store| {
        let log = read_all(&mut store.unwrap().log).await;
        assert_eq!(log.last(), Some(&blank(2, 10)));
    });
}

#[test]
fn covered_state_survives_without_its_log() {
    let machine = Machine::new();
    create(&machine.dir(), identity(1)).unwrap();
    let cover = |last: u64| {
        machine.run(async |store| {
            let mut store = store.unwrap();
            let written = read_all(&mut store.log).await.len();
            append(&mut store.log, history(last).split_off(written)).await;
            let applied = store.views.applied_index().map_or(0, |index| index + 1);
            let left = history(last).split_off(usize::try_from(applied).unwrap());
            apply(&mut store.machine, left).await;
            let covered = machine.until_power_fails(store.drafts.cover()).await;
            covered.is_some()
        })
    };
    let found = || machine.run(async |store| store?.views.applied_index());
    assert!(cover(10));
    assert_eq!(found(), Some(10));
    machine.disk.fail_at(Some("the rows are flushed"));
    assert!(!cover(20));
    machine.disk.fail_at(None);
    assert_eq!(found(), Some(20));
    assert!(cover(50));
    assert_eq!(found(), Some(50));
}

/// A received snapshot is complete on disk before it replaces the rows, wherever the power fails.
#[test]
fn installed_snapshot_survives_a_loss_of_power() {
    let leader_dir = new_dir();
    let snapshot = run(async {
        let mut leader = opened(leader_dir.path());
        apply(&mut leader.machine, history(60)).await;
        build(&mut leader).await
    });
    // Rows that the snapshot does not contain: a start rejects a state that still has one of them.
    let begin = || {
        let machine = Machine::new();
        create(&machine.dir(), identity(1)).unwrap();
        machine.run(async |store| {
            let mut store = store.unwrap();
            let mut own = history(2);
            own[2].payload = provider(1, 99).payload;
            apply(&mut store.machine, own).await;
            store.drafts.cover().await.unwrap();
        });
        machine
    };
    let bytes = std::fs::read(snapshot.file.path()).unwrap();
    let receive = |machine: &Machine| {
        machine.run(async |store| {
            let mut store = store.unwrap();
            let mut receiver = store.snapshots.receive().unwrap();
            receiver.write(&bytes).unwrap();
            let received = receiver.finish().unwrap();
            let meta = snapshot.meta.clone();
            let installing = install(&mut store, &meta, received);
            machine.until_power_fails(installing).await.is_some()
        })
    };
    let found = |machine: &Machine| machine.run(async |store| store?.views.applied_index());
    for (point, after) in [
        ("a snapshot is renamed", Some(2)),
        ("a snapshot is about to be installed", Some(60)),
        ("the rows are about to be replaced", Some(60)),
        ("the rows are replaced", Some(60)),
        ("a snapshot is installed", Some(60)),
    ] {
        let machine = begin();
        machine.disk.fail_at(Some(point));
        assert!(!receive(&machine), "the power fails when {point}");
        machine.disk.fail_at(None);
        assert_eq!(found(&machine), after, "after {point}");
    }
    let machine = begin();
    assert!(receive(&machine));
    assert_eq!(found(&machine), Some(60));
}

/// The last writes of a killed process may not be on disk, so the next process syncs the archive.
#[test]
fn reopened_archive_of_a_killed_process_is_synced() {
    let aside = TempDir::new().unwrap();
    let kept = BackupDir::open(aside.path(), identity(1)).unwrap();
    let mut log = kept.log().unwrap();
    log.append(RecordVersion::NEWEST, &history(20), stamp(30))
        .unwrap();
    let machine = Machine::new();
    let root = machine.top.path().join("backups");
    let dir = BackupDir::open(&root, identity(1)).unwrap();
    for file in std::fs::read_dir(kept.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
    }
    assert_eq!(dir.log().unwrap().next(), 21);
    machine.disk.cut_power(&machine.dir(), false).unwrap();
    let dir = BackupDir::open(&root, identity(1)).unwrap();
    assert_eq!(dir.log().unwrap().next(), 21);
}

#[test]
fn backup_and_archived_log_survive_a_loss_of_power() {
    let states_dir = new_dir();
    let states = run(async {
        let mut store = opened(states_dir.path());
        let mut states = Vec::new();
        for step in history(30).chunks(11) {
            apply(&mut store.machine, step.to_vec()).await;
            states.push(applied(&store));
        }
        states
    });
    let machine = Machine::new();
    let root = machine.top.path().join("backups");
    let reopened = || {
        machine.disk.cut_power(&machine.dir(), false).unwrap();
        BackupDir::open(&root, identity(1)).unwrap()
    };
    let entries = |from: usize, to: u64| history(to).split_off(from);
    let newest = |dir: &BackupDir| {
        let backup = Backup::read(dir.path(), Until::End, &Rules).unwrap();
        backup.info.index
    };

    let dir = BackupDir::open(&root, identity(1)).unwrap();
    dir.back_up(&states[0], 2).unwrap();
    let dir = reopened();
    assert_eq!(newest(&dir), 10);
    dir.back_up(&states[1], 1).unwrap();
    let dir = reopened();
    assert_eq!(newest(&dir), 21);

    let mut log = dir.log().unwrap();
    log.append(RecordVersion::NEWEST, &entries(22, 24), stamp(30))
        .unwrap();
    let dir = reopened();
    assert_eq!((dir.log().unwrap().next(), newest(&dir)), (25, 24));
    let mut log = dir.log().unwrap();
    log.append(RecordVersion::NEWEST, &entries(25, 27), stamp(30))
        .unwrap();
    log.append(RecordVersion::NEWEST, &entries(28, 30), stamp(30))
        .unwrap();
    let dir = reopened();
    assert_eq!((dir.log().unwrap().next(), newest(&dir)), (31, 30));
}
