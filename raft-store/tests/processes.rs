//! Nodes in separate processes that are killed or fill their disk. These tests have their own
//! binary: a new process holds the locks of its parent until its program is loaded, and a
//! concurrent test of the parent could not reopen its store.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "../../tests/src/skip.rs"]
#[allow(
    unreachable_pub,
    reason = "it is public in the crate that it belongs to"
)]
mod skip;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{append, apply, blank, new_dir, opened, provider, read_all, run};
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use placement_raft_store::{TypeConfig, Vote};
use skip::skipped;

#[test]
#[ignore = "no test of its own: the process that a_killed_process_loses_nothing_acknowledged kills"]
fn child_that_appends_until_it_is_killed() {
    let dir = std::env::var("PLACEMENT_STORE_TEST_DIR").expect("started by the test that kills it");
    run(async {
        let mut store = opened(Path::new(&dir));
        let last = store.log.get_log_state().await.unwrap().last_log_id;
        let mut next = last.map_or(0, |id| id.index + 1);
        loop {
            let two = vec![provider(1, next), provider(1, next + 1)];
            append(&mut store.log, two.clone()).await;
            apply(&mut store.machine, two).await;
            println!("acknowledged {}", next + 1);
            std::io::stdout().flush().unwrap();
            next += 2;
        }
    });
}

#[test]
fn a_killed_process_loses_nothing_acknowledged() {
    let dir = new_dir();
    let mut acknowledged = 0;
    for round in 1..=3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--nocapture", "--exact"])
            .arg("child_that_appends_until_it_is_killed")
            .env("PLACEMENT_STORE_TEST_DIR", dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let indexes = lines.filter_map(|line| line.rsplit_once("acknowledged ")?.1.parse().ok());
        let mut seen = 0;
        for index in indexes {
            acknowledged = index;
            seen += 1;
            if seen == 40 * round {
                // SIGKILL. Data still in the pipe counts, too.
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= 40 * round, "the child ended by itself");
        run(async {
            let mut store = opened(dir.path());
            let entries = read_all(&mut store.log).await;
            let count = entries.len() as u64;
            assert!(count > acknowledged, "{count} of {acknowledged}");
            for (index, entry) in (0..).zip(&entries) {
                assert_eq!(*entry, provider(1, index));
            }
        });
    }
}

/// Runs in a small file system that its parent has mounted. Prints the number of acknowledged
/// entries.
#[test]
#[ignore = "no test of its own: a_full_disk_stops_the_node_and_loses_nothing starts it on a small disk"]
fn child_that_fills_its_disk() {
    let dir = std::env::var("PLACEMENT_STORE_TEST_SMALL_DISK").expect("started with a small disk");
    let dir = Path::new(&dir).join("data");
    placement_raft_store::create(&dir, common::identity(1)).unwrap();
    let acknowledged = run(async {
        let mut store = opened(&dir);
        let mut next = 0;
        loop {
            let entries: Vec<_> = (next..next + 200).map(|index| provider(1, index)).collect();
            let (sender, receiver) = TypeConfig::oneshot();
            let appended = store.log.append(entries, IOFlushed::signal(sender)).await;
            let result = match appended {
                Ok(()) => receiver.await.unwrap(),
                Err(error) => Err(error),
            };
            match result {
                Ok(()) => next += 200,
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
                    break;
                }
            }
        }
        let words = store.health.failure().unwrap();
        assert!(words.starts_with("the log in "), "{words}");
        assert!(words.contains("No space left on device"), "{words}");
        store.log.save_vote(&Vote::new(9, 1)).await.unwrap_err();
        next
    });
    assert!(acknowledged > 0);
    std::fs::remove_file(dir.join("../filler")).unwrap();
    run(async {
        let mut store = opened(&dir);
        let entries = read_all(&mut store.log).await;
        assert!(entries.len() as u64 >= acknowledged);
        assert_eq!(entries[0], provider(1, 0));
        append(&mut store.log, vec![blank(2, entries.len() as u64)]).await;
    });
    println!("acknowledged {acknowledged} before the disk was full");
}

#[test]
fn a_full_disk_stops_the_node_and_loses_nothing() {
    let mount = tempfile::TempDir::new().unwrap();
    // A private mount, which disappears with the child.
    let script = "mount -t tmpfs -o size=24m placement \"$PLACEMENT_STORE_TEST_SMALL_DISK\" \
         && head -c 16m /dev/zero >\"$PLACEMENT_STORE_TEST_SMALL_DISK/filler\" \
         && exec \"$0\" --ignored --exact child_that_fills_its_disk --nocapture";
    let test = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(test)
        .env("PLACEMENT_STORE_TEST_SMALL_DISK", mount.path())
        .output();
    let what = "a full disk under a store";
    let Ok(output) = output else {
        return skipped(what, "there is no `unshare` to mount a small disk with");
    };
    let (out, err) = (&output.stdout, &output.stderr);
    let [out, err] = [out, err].map(|bytes| String::from_utf8_lossy(bytes));
    if !out.contains("running 1 test") {
        let why = format!("a small disk cannot be mounted here: {err}");
        return skipped(what, &why);
    }
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("before the disk was full"), "{out}");
}
