//! Everything reported as durable was synced. strace traces a process that uses a data directory on
//! a real file system, from its creation to a quarantine. The process marks its steps by opening
//! files that do not exist.
//!
//! A kill does not clear the page cache, so a test that kills a process does not detect a missing
//! sync.
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

use crate::common::{
    append, applied, apply, blank, build, history, identity, install, log_id, opened, options,
    provider, run, send, stamp,
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

/// A directory that does not exist.
const STEPS: &str = "/no-such-directory/placement-step-";

/// Assigns everything traced from here on to a step.
fn step(name: &str) {
    File::open(format!("{STEPS}{name}")).unwrap_err();
}

#[test]
#[ignore = "no test of its own: acknowledged_data_was_synced traces it"]
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
        let receive = |follower: &Store| send(&snapshot.file, follower);
        // The node stops before it installs the received snapshot.
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
    // The state of node 1 is now ahead of its log, with another entry at its last index.
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
        log.append(RecordVersion::NEWEST, &history(3), stamp(3))
            .unwrap();
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

/// An operation on a file. Operations are in the order in which syncs ended and renames began.
#[derive(Debug, PartialEq, Eq)]
enum Done {
    Synced(String),
    Renamed(String),
}

/// Parses the strace output by step. Paths are relative to the test directory.
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

/// The description of an operation and its path, in which `*` matches any text. An operation whose
/// description begins with "rename" is a rename, every other one is a sync.
type Wanted = (&'static str, &'static str);

/// The operations that each step must do, in this order. A step may do others in between.
const WANTED: [(&str, &[Wanted]); 21] = [
    (
        "create",
        &[
            ("the directory above", "above"),
            ("the identity", "above/node/identity.new"),
            ("rename of the identity", "*identity.new"),
            ("its name", "above/node"),
        ],
    ),
    (
        "open",
        &[
            ("the last synced position", "above/node/reached"),
            ("the names of log and state", "above/node"),
            ("the count of starts", "above/node/boot.new"),
            ("rename of the count", "*boot.new"),
            ("its name", "above/node"),
        ],
    ),
    ("vote", &[("the log", WAL)]),
    ("append", &[("the log", WAL)]),
    (
        "truncate",
        &[
            ("the last synced position", "above/node/reached"),
            ("the log", WAL),
        ],
    ),
    ("build", &[("the rows", TABLE)]),
    (
        "close",
        &[("the last synced position", "above/node/reached")],
    ),
    (
        "find",
        &[
            ("the rows", "*third/state/*.sst"),
            ("the log, with the vote", WAL),
            ("the count of starts", "third/boot.new"),
        ],
    ),
    ("receive", &[("the snapshot", "*snapshots/incoming-*")]),
    (
        "verify",
        &[
            ("rename of the snapshot", "*incoming-*"),
            ("its name", "other/snapshots"),
        ],
    ),
    (
        "install",
        &[
            ("the note that it is being installed", "*other/state/*.sst"),
            ("the manifest of the note", "*other/state/MANIFEST*"),
            ("the rows", "*other/state/*.sst"),
            ("the manifest of the rows", "*other/state/MANIFEST*"),
        ],
    ),
    ("receive-much", &[("the snapshot", "*snapshots/incoming-*")]),
    (
        "overtaken",
        &[
            ("the last synced position", "above/node/reached"),
            ("the log", WAL),
            ("the last synced position", "above/node/reached"),
        ],
    ),
    (
        "skip",
        &[
            ("the record of it", "*skipped.new"),
            ("its name", "above/node"),
            ("the log", WAL),
        ],
    ),
    (
        "back-up",
        &[
            ("the directory above", "backups"),
            ("the draft", "*/node-1/draft"),
            ("rename of the draft", "*/node-1/draft"),
            ("its name", "backups/*/node-1"),
        ],
    ),
    (
        "keep-log",
        &[
            ("the name of the file", "backups/*/node-1"),
            ("the entries", "*/node-1/log-*"),
        ],
    ),
    (
        "restore",
        &[
            ("the directory above", "again"),
            ("the rows", TABLE),
            ("where the log begins", WAL),
            ("the count of starts", "again/node/boot.new"),
            ("rename of the count", "*boot.new"),
            ("the names of log and state", "again/node"),
            ("the identity", "again/node/identity.new"),
            ("rename of the identity", "*identity.new"),
            ("its name", "again/node"),
        ],
    ),
    (
        "begin-restore",
        &[
            ("the directory above", "begun"),
            ("the note", "begun/node/restore-unfinished.new"),
            ("rename of the note", "*restore-unfinished.new"),
            ("its name", "begun/node"),
        ],
    ),
    (
        "recover",
        &[
            ("the record of it", "alone/recovered.new"),
            ("rename of the record", "*recovered.new"),
            ("its name", "alone"),
            ("the identity", "alone/identity.new"),
            ("rename of the identity", "*identity.new"),
            ("its name", "alone"),
            ("the log", WAL),
        ],
    ),
    (
        "ask-to-join",
        &[
            ("the directory above", "waiting"),
            ("the nonce", "waiting/node/join-nonce.new"),
            ("rename of the nonce", "*join-nonce.new"),
            ("its name", "waiting/node"),
        ],
    ),
    (
        "leave",
        &[("the reason", "*left.new"), ("its name", "above/node")],
    ),
];
const WAL: &str = "*/log/*.log";
const STATE: &str = "*/state*";
const TABLE: &str = "*/state/*.sst";

fn is_like(path: &str, pattern: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return path == pattern;
    };
    let ends = |path: &str| (0..=path.len()).any(|at| is_like(&path[at..], rest));
    path.strip_prefix(head).is_some_and(ends)
}

/// The wanted operations that a step has not done.
fn left_out(done: &[Done], wanted: &[Wanted]) -> Vec<&'static str> {
    let mut left = done;
    let mut missing = Vec::new();
    for (what, pattern) in wanted {
        let found = left.iter().position(|one| match one {
            Done::Synced(path) => !what.starts_with("rename") && is_like(path, pattern),
            Done::Renamed(path) => what.starts_with("rename") && is_like(path, pattern),
        });
        match found {
            Some(position) => left = &left[position + 1..],
            None => missing.push(*what),
        }
    }
    missing
}

#[test]
fn acknowledged_data_was_synced() {
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
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{output}");
    let steps = read_trace(&text, root.path());
    for (step, wanted) in WANTED {
        let missing = left_out(&steps[step], wanted);
        assert_eq!(missing, Vec::<&str>::new(), "{step}: {steps:#?}");
    }
    // A flush has the same syncs for any number of changed tables: the file, the directory before
    // and after, and the manifest.
    let of_the_state = |done: &&Done| matches!(done, Done::Synced(path) if is_like(path, STATE));
    let flush = steps["build"].iter().filter(of_the_state);
    assert_eq!(flush.count(), 4, "a flush: {steps:#?}");
}
