//! What is called durable was really synced: a process that goes through the life of a data directory is
//! watched by strace, on a real file system. It says where it is by opening files that do not exist.
//!
//! A kill leaves the page cache in place, so no test that kills a process notices a sync that is gone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "../../tests/src/skip.rs"]
#[allow(
    unreachable_pub,
    reason = "it is public in the crate that it belongs to"
)]
mod skip;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{
    append, applied, apply, blank, build, history, identity, install, log_id, opened, options,
    provider, run,
};
use openraft::storage::RaftLogStorage;
use placement_raft_store::wire::RecordVersion;
use placement_raft_store::{
    Backup, BackupDir, NewCluster, Rules, Store, Until, Vote, begin_restore, create, join_nonce,
    leave, recover, skip_entry,
};
use skip::skipped;
use tempfile::TempDir;
use uuid::Uuid;

/// No such directory is anywhere.
const STEPS: &str = "/no-such-directory/placement-step-";

/// Everything that is traced from here on belongs to this step.
fn step(name: &str) {
    File::open(format!("{STEPS}{name}")).unwrap_err();
}

#[test]
#[ignore = "no test of its own: what_is_called_durable_was_synced watches it"]
fn child_that_lives() {
    let root = std::env::var("PLACEMENT_STORE_TEST_DIR").expect("started by the test that watches");
    let root = Path::new(&root);
    let dir = root.join("above").join("node");
    step("create");
    create(&dir, identity(1)).unwrap();
    run(async {
        step("open");
        let mut store = opened(&dir);
        step("vote");
        store.log.save_vote(&Vote::new(1, 1)).await.unwrap();
        step("append");
        append(&mut store.log, history(10)).await;
        step("truncate");
        store.log.truncate_after(Some(log_id(1, 8))).await.unwrap();
        append(&mut store.log, vec![blank(1, 9)]).await;
        step("more");
        apply(&mut store.machine, history(8)).await;
        step("build");
        build(&mut store).await;
        step("close");
        drop(store);
        step("closed");
    });
    let (other, third) = (root.join("other"), root.join("third"));
    create(&other, identity(2)).unwrap();
    create(&third, identity(3)).unwrap();
    run(async {
        let mut leader = opened(&dir);
        apply(&mut leader.machine, vec![blank(1, 9), provider(2, 10)]).await;
        let snapshot = build(&mut leader).await;
        let length = usize::try_from(snapshot.file.length()).unwrap();
        let bytes = snapshot.file.read_at(0, length).unwrap();
        let receive = |follower: &Store| {
            let mut receiver = follower.snapshots.receive().unwrap();
            receiver.write(&bytes).unwrap();
            receiver.finish().unwrap()
        };
        // A crash keeps it from installing what it has received.
        let follower = opened(&third);
        let received = receive(&follower);
        follower.snapshots.verify(&snapshot.meta, received).unwrap();
        drop(follower);
        step("find");
        drop(opened(&third));
        step("found");
        let mut follower = opened(&other);
        step("receive");
        let received = receive(&follower);
        step("verify");
        let received = follower.snapshots.verify(&snapshot.meta, received).unwrap();
        step("install");
        install(&mut follower, &snapshot.meta, received)
            .await
            .unwrap();
        step("receive-much");
        let mut receiver = follower.snapshots.receive().unwrap();
        receiver.write(&vec![0; 9 << 20]).unwrap();
        step("received-much");
    });
    // The state of node 1 is ahead of its log now, by an entry that is another one there.
    run(async {
        let mut store = opened(&dir);
        append(&mut store.log, vec![provider(1, 10), provider(3, 11)]).await;
        build(&mut store).await;
    });
    step("overtaken");
    run(async { drop(opened(&dir)) });
    step("more");
    run(async {
        let mut store = opened(&dir);
        append(&mut store.log, vec![provider(3, 11)]).await;
    });
    step("skip");
    skip_entry(&options(&dir), 11, 3).unwrap();
    let backups = run(async {
        let store = opened(&dir);
        step("back-up");
        let backups = BackupDir::open(&root.join("backups"), identity(1)).unwrap();
        backups.back_up(&applied(&store), 1).unwrap();
        step("keep-log");
        let mut log = backups.log().unwrap();
        log.append(RecordVersion::NEWEST, &history(3)).unwrap();
        backups
    });
    step("read-backup");
    let backup = Backup::read(backups.path(), Until::End, &Rules).unwrap();
    let members = BTreeMap::from([(1, "node1:8779".to_owned())]);
    let again = options(&root.join("again").join("node"));
    step("restore");
    backup
        .restore(&again, 1, &members, NewCluster::Drawn(7))
        .unwrap();
    step("begin-restore");
    begin_restore(&root.join("begun").join("node")).unwrap();
    step("restored");
    let alone = root.join("alone");
    create(&alone, identity(1)).unwrap();
    run(async { append(&mut opened(&alone).log, history(9)).await });
    step("recover");
    recover(&options(&alone), Uuid::from_u128(2)).unwrap();
    step("ask-to-join");
    join_nonce(&root.join("waiting").join("node"), Uuid::from_u128(5)).unwrap();
    step("leave");
    leave(&dir, "it is tried").unwrap();
    step("end");
}

/// What was done to files, in its order: syncs when they were over, renames when they began.
#[derive(Debug, PartialEq, Eq)]
enum Done {
    Synced(String),
    Renamed(String),
}

/// What strace wrote, by step. Paths are given without the directory that all is in.
fn read_trace(text: &str, root: &Path) -> BTreeMap<String, Vec<Done>> {
    let root = format!("{}/", fs::canonicalize(root).unwrap().display());
    let mut steps: BTreeMap<String, Vec<Done>> = BTreeMap::new();
    let mut now = String::new();
    let mut under_way: BTreeMap<String, String> = BTreeMap::new();
    let quoted = |text: &str| text.split('"').nth(1).unwrap_or_default().to_owned();
    let short = |path: &str| path.strip_prefix(&root).unwrap_or(path).to_owned();
    for line in text.lines() {
        let (process, call) = line.split_once(' ').unwrap_or_default();
        let call = call.trim_start();
        if let Some(name) = call.split(STEPS).nth(1) {
            now = name.split('"').next().unwrap_or_default().to_owned();
            steps.entry(now.clone()).or_default();
            continue;
        }
        let done = steps.entry(now.clone()).or_default();
        if call.starts_with("rename") {
            done.push(Done::Renamed(short(&quoted(call))));
        } else if call.starts_with("fsync(") || call.starts_with("fdatasync(") {
            // fdatasync(5</path>) = 0
            let path = call.split(['<', '>']).nth(1).unwrap_or_default();
            if call.contains("<unfinished") {
                under_way.insert(process.to_owned(), short(path));
            } else {
                done.push(Done::Synced(short(path)));
            }
        } else if call.contains("sync resumed")
            && let Some(path) = under_way.remove(process)
        {
            done.push(Done::Synced(path));
        }
    }
    steps
}

/// In words, and which path is meant. What begins with "rename" is one, the rest are syncs.
type Wanted = (&'static str, fn(&str) -> bool);

/// What the step did not do to the files whose names are so, in this order, whatever else it did.
fn left_out(
    steps: &BTreeMap<String, Vec<Done>>,
    step: &'static str,
    wanted: &[Wanted],
) -> Vec<(&'static str, &'static str)> {
    let mut left = steps[step].as_slice();
    let mut missing = Vec::new();
    for (what, is_meant) in wanted {
        let found = left.iter().position(|one| match one {
            Done::Synced(path) => !what.starts_with("rename") && is_meant(path),
            Done::Renamed(path) => what.starts_with("rename") && is_meant(path),
        });
        match found {
            Some(position) => left = &left[position + 1..],
            None => missing.push((step, *what)),
        }
    }
    missing
}

fn is_wal(path: &str) -> bool {
    path.contains("/log/") && path.ends_with(".log")
}

fn is_backups(path: &str) -> bool {
    path.starts_with("backups/") && path.ends_with("/node-1")
}

fn is_table(path: &str) -> bool {
    path.contains("/state/") && path.ends_with(".sst")
}

#[test]
fn what_is_called_durable_was_synced() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skipped("watching for syncs", "there is no strace");
    }
    let root = TempDir::new().unwrap();
    let trace = root.path().join("trace");
    let child = Command::new("strace")
        .args(["-f", "-y", "-qq", "-s", "200", "-o"])
        .arg(&trace)
        .args([
            "-e",
            "trace=openat,open,fsync,fdatasync,rename,renameat,renameat2",
        ])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child_that_lives", "--nocapture"])
        .env("PLACEMENT_STORE_TEST_DIR", root.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = fs::read_to_string(&trace).unwrap_or_default();
    if !text.contains(STEPS) {
        let why = String::from_utf8_lossy(&child.stderr);
        return skipped("watching for syncs", &why);
    }
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}");
    let steps = read_trace(&text, root.path());
    let mut missing = Vec::new();
    let mut look = |step, wanted: &[Wanted]| missing.extend(left_out(&steps, step, wanted));

    look(
        "create",
        &[
            ("the directory above", |path| path == "above"),
            ("the identity", |path| path == "above/node/identity.new"),
            ("rename of the identity", |path| {
                path.ends_with("identity.new")
            }),
            ("its name", |path| path == "above/node"),
        ],
    );
    look(
        "open",
        &[
            ("how far the log has come", |path| {
                path == "above/node/reached"
            }),
            ("the names of log and state", |path| path == "above/node"),
            ("the count of starts", |path| path == "above/node/boot.new"),
            ("rename of the count", |path| path.ends_with("boot.new")),
            ("its name", |path| path == "above/node"),
        ],
    );
    look("vote", &[("the log", is_wal)]);
    look("append", &[("the log", is_wal)]);
    look(
        "truncate",
        &[
            ("how far the log has come", |path| {
                path == "above/node/reached"
            }),
            ("the log", is_wal),
        ],
    );
    look("build", &[("the rows", is_table)]);
    look(
        "close",
        &[("how far the log has come", |path| {
            path == "above/node/reached"
        })],
    );
    look(
        "find",
        &[
            ("the rows", |path| {
                path.contains("third/state/") && path.ends_with(".sst")
            }),
            ("the log, with the vote", is_wal),
            ("the count of starts", |path| path == "third/boot.new"),
        ],
    );
    look(
        "receive",
        &[("what came in", |path| path.contains("snapshots/incoming-"))],
    );
    look(
        "verify",
        &[
            ("rename of what came in", |path| path.contains("incoming-")),
            ("its name", |path| path == "other/snapshots"),
        ],
    );
    let manifest: fn(&str) -> bool = |path| path.contains("other/state/MANIFEST");
    look(
        "install",
        &[
            ("the note that it is being installed", |path| {
                path.contains("other/state/") && path.ends_with(".sst")
            }),
            ("that note counts", manifest),
            ("the rows", |path| {
                path.contains("other/state/") && path.ends_with(".sst")
            }),
            ("they count", manifest),
        ],
    );
    look(
        "receive-much",
        &[("what came in", |path| path.contains("snapshots/incoming-"))],
    );
    look(
        "overtaken",
        &[
            ("how far the log has come", |path| {
                path == "above/node/reached"
            }),
            ("the log", is_wal),
            ("how far the log has come", |path| {
                path == "above/node/reached"
            }),
        ],
    );
    look(
        "skip",
        &[
            ("the trace of it", |path| path.ends_with("skipped.new")),
            ("its name", |path| path == "above/node"),
            ("the log", is_wal),
        ],
    );
    look(
        "back-up",
        &[
            ("the directory above", |path| path == "backups"),
            ("the draft", |path| path.ends_with("/node-1/draft")),
            ("rename of the draft", |path| {
                path.ends_with("/node-1/draft")
            }),
            ("its name", is_backups),
        ],
    );
    look(
        "keep-log",
        &[
            ("the name of the file", is_backups),
            ("the entries", |path| path.contains("/node-1/log-")),
        ],
    );
    look(
        "restore",
        &[
            ("the directory above", |path| path == "again"),
            ("the rows", is_table),
            ("where the log begins", is_wal),
            ("the count of starts", |path| path == "again/node/boot.new"),
            ("rename of the count", |path| path.ends_with("boot.new")),
            ("the names of log and state", |path| path == "again/node"),
            ("the identity", |path| path == "again/node/identity.new"),
            ("rename of the identity", |path| {
                path.ends_with("identity.new")
            }),
            ("its name", |path| path == "again/node"),
        ],
    );
    look(
        "begin-restore",
        &[
            ("the directory above", |path| path == "begun"),
            ("the note", |path| {
                path == "begun/node/restore-unfinished.new"
            }),
            ("rename of the note", |path| {
                path.ends_with("restore-unfinished.new")
            }),
            ("its name", |path| path == "begun/node"),
        ],
    );
    look(
        "recover",
        &[
            ("the trace of it", |path| path == "alone/recovered.new"),
            ("rename of the trace", |path| {
                path.ends_with("recovered.new")
            }),
            ("its name", |path| path == "alone"),
            ("the identity", |path| path == "alone/identity.new"),
            ("rename of the identity", |path| {
                path.ends_with("identity.new")
            }),
            ("its name", |path| path == "alone"),
            ("the log", is_wal),
        ],
    );
    look(
        "ask-to-join",
        &[
            ("the directory above", |path| path == "waiting"),
            ("the nonce", |path| path == "waiting/node/join-nonce.new"),
            ("rename of the nonce", |path| {
                path.ends_with("join-nonce.new")
            }),
            ("its name", |path| path == "waiting/node"),
        ],
    );
    look(
        "leave",
        &[
            ("the reason", |path| path.ends_with("left.new")),
            ("its name", |path| path == "above/node"),
        ],
    );
    assert_eq!(missing, [], "{steps:#?}");
}
