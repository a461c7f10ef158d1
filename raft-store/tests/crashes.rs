//! A crash after each durable step of `recover`, of a restore and of a snapshot installation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{
    CLUSTER, append, applied, apply, build, history, identity, install, log_id, new_dir, opened,
    options, provider, read_all, run, run_here,
};
use crate::recovering::{NEW, ahead_of_its_log, survivor};
use placement_base::platform::{Platform, install as put_here};
use placement_base::runtime::Limits;
use placement_raft_store::{
    Backup, BackupDir, Identity, LogDisk, NewCluster, Rules, StoreOptions, Until, former_clusters,
    inspect, open, recover,
};
use rocksdb::DB;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Copies a data directory after each step: a crash at that moment leaves the same files.
#[derive(Debug, Clone)]
struct Copies {
    of: PathBuf,
    to: Arc<TempDir>,
    taken: Arc<AtomicUsize>,
}

impl Copies {
    fn new(dir: &Path) -> Self {
        Self {
            of: dir.to_owned(),
            to: Arc::new(TempDir::new().unwrap()),
            taken: Arc::default(),
        }
    }

    fn take(&self) {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        copy(&self.of, &self.to.path().join(number.to_string()));
    }

    /// The copies, in the order in which they were taken.
    fn all(&self) -> Vec<PathBuf> {
        let taken = self.taken.load(Ordering::Relaxed);
        let names = (0..taken).map(|number| number.to_string());
        names.map(|name| self.to.path().join(name)).collect()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to)
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Runs the work of other threads on this one, and keeps RocksDB from removing files while the
/// directory is copied.
impl Platform for Copies {
    fn rocksdb_options(&self) -> &'static str {
        "disable_auto_compactions=true;"
    }

    fn limits(&self) -> Limits {
        Limits {
            install_batch: 500,
            rows_buffer: 2000,
            ..Limits::PRODUCT
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is a platform")]
    fn blocking(&self, work: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
        work();
        tokio::task::spawn(async {})
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()?;
        self.take();
        Ok(())
    }

    fn sync_dir(&self, _handle: Option<&File>, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()?;
        self.take();
        Ok(())
    }

    fn power_fails(&self, _point: &'static str, _path: &Path) -> bool {
        self.take();
        false
    }
}

impl LogDisk for Copies {
    fn sync(&self, log: &DB) -> io::Result<()> {
        let synced = log.flush_wal(true);
        synced.map_err(|error| io::Error::other(error.into_string()))?;
        self.take();
        Ok(())
    }
}

/// Changes a directory and returns what a crash after each step leaves.
fn after_each_step(dir: &Path, work: impl FnOnce(StoreOptions)) -> Copies {
    let copies = Copies::new(dir);
    let _platform = put_here(Rc::new(copies.clone()));
    work(StoreOptions {
        disk: Arc::new(copies.clone()),
        ..options(dir)
    });
    copies
}

/// Whether the last membership in the log has node 1 as its only voter.
fn is_alone(dir: &Path) -> bool {
    let found = inspect(dir).unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let membership = found.log.unwrap().membership;
    membership.is_some_and(|(_, members)| members.voters == [BTreeSet::from([1])])
}

/// Node 1 is the only voter only under the new cluster id, and an incomplete recovery can be
/// repeated.
#[track_caller]
fn check_recovery(dir: &Path, last: u64, term: u64) {
    let copies = after_each_step(dir, |options| {
        recover(&options, NEW).unwrap();
    });
    let (is, again) = (Identity::for_new_cluster(NEW, 1), Uuid::from_u128(3));
    let all = copies.all();
    assert!(is_alone(all.last().unwrap()));
    let (mut renamed, mut repeated) = (0, 0);
    for copy in all {
        let is_renamed = placement_raft_store::identity(&copy).unwrap() == Some(is);
        if is_renamed {
            renamed += 1;
            assert_eq!(former_clusters(&copy).unwrap(), [CLUSTER]);
        }
        if is_alone(&copy) {
            assert!(is_renamed, "it is the only voter of its former cluster");
        } else {
            repeated += 1;
            let done = recover(&options(&copy), again).unwrap();
            assert_eq!(done.entry, log_id(term, last + 1));
        }
        assert!(is_alone(&copy));
        run(async {
            let mut store = opened(&copy);
            let entries = read_all(&mut store.log).await;
            assert_eq!(entries.last().unwrap().log_id, log_id(term, last + 1));
        });
    }
    assert!(renamed > 1 && repeated > 5, "{renamed} and {repeated}");
}

#[test]
fn recovery_that_a_crash_interrupts_leaves_no_only_voter_of_the_old_cluster() {
    let dir = new_dir();
    survivor(dir.path());
    check_recovery(dir.path(), 10, 5);
}

#[test]
fn recovery_behind_a_state_that_is_ahead_of_its_log_can_be_interrupted() {
    let dir = new_dir();
    ahead_of_its_log(dir.path());
    check_recovery(dir.path(), 20, 2);
}

/// The directory has an owner only once a node can start on it.
#[test]
fn restore_that_a_crash_interrupts_leaves_a_whole_node_or_none() {
    let state_dir = new_dir();
    let state = run(async {
        let mut store = opened(state_dir.path());
        apply(&mut store.machine, history(20)).await;
        applied(&store)
    });
    let root = TempDir::new().unwrap();
    let kept = BackupDir::open(root.path(), identity(1)).unwrap();
    kept.back_up(&state, 1).unwrap();
    let backup = Backup::read(kept.path(), Until::End, &Rules).unwrap();
    let members = BTreeMap::from([(1, "node1:1".to_owned())]);
    let dir = TempDir::new().unwrap();
    let copies = after_each_step(dir.path(), |options| {
        let restored = backup.restore(&options, 1, &members, NewCluster::Drawn(7));
        restored.unwrap();
    });
    let all = copies.all();
    let owned: Vec<_> = (all.iter())
        .filter(|copy| placement_raft_store::identity(copy).unwrap().is_some())
        .collect();
    assert!(!owned.is_empty() && owned.len() + 3 < all.len());
    for copy in owned {
        let store = opened(copy);
        assert_eq!(applied(&store).cluster.digest(), state.digest());
        assert!(store.boot > 1, "the state has the first start of node 1");
    }
}

/// After a crash the state is the old or the new one, and once it was the new one, no later crash
/// restores the old one. The ledger begins after the snapshot.
#[test]
fn installation_that_a_crash_interrupts_leaves_the_old_state_or_the_new_one() {
    let leader_dir = new_dir();
    let snapshot = run(async {
        let mut leader = opened(leader_dir.path());
        apply(&mut leader.machine, history(60)).await;
        build(&mut leader).await
    });
    let bytes = fs::read(snapshot.file.path()).unwrap();
    let dir = new_dir();
    // Rows that the snapshot does not contain, some of them unwritten.
    let own = |index: u64| {
        let mut own = provider(1, index);
        own.payload = provider(1, index + 100).payload;
        own
    };
    run(async {
        let mut store = opened(dir.path());
        append(&mut store.log, history(4)).await;
        let mut first = history(1);
        first.push(own(2));
        apply(&mut store.machine, first).await;
        store.drafts.flush().await.unwrap();
    });
    let copies = after_each_step(dir.path(), |options| {
        run_here(async {
            let mut store = open(options).unwrap();
            apply(&mut store.machine, vec![own(3), own(4)]).await;
            let mut receiver = store.snapshots.receive().unwrap();
            receiver.write(&bytes).unwrap();
            let received = receiver.finish().unwrap();
            let received = store.snapshots.verify(&snapshot.meta, received).unwrap();
            install(&mut store, &snapshot.meta, received).await.unwrap();
        });
    });
    let mut found = Vec::new();
    for copy in copies.all() {
        let store = opened(&copy);
        let index = store.views.applied_index();
        found.push(index);
        let floor = store.ledger.floor().index;
        assert_eq!(floor, if index == Some(60) { 60 } else { 0 });
        drop(store);
    }
    let installed = found.iter().position(|index| *index == Some(60)).unwrap();
    let (before, after) = found.split_at(installed);
    assert!(before.iter().all(|index| *index == Some(2)), "{found:?}");
    assert!(after.iter().all(|index| *index == Some(60)), "{found:?}");
    assert!(before.len() > 1 && after.len() > 3, "{found:?}");
}
