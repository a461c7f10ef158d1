//! A disk that hangs: no error, no answer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use placement_client::NewProvider;
use placement_tests::cluster::Cluster;
use placement_tests::{shim, skip::skipped};
use uuid::Uuid;

/// Stands between a process and its disk: while a file is there, no sync comes back, or no write to the note how far
/// the log has come.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void wait_for(const char *name) {
    const char *gate = getenv(name);
    while (gate && access(gate, F_OK) == 0) usleep(10000);
}
static void wait_out(void) { wait_for("PLACEMENT_TEST_HANGS_WHILE"); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t named = readlink(link, path, sizeof path - 1);
    path[named < 0 ? 0 : named] = 0;
    const char *name = strrchr(path, '/');
    if (name && strcmp(name, "/reached") == 0) wait_for("PLACEMENT_TEST_REACHED_HANGS_WHILE");
    ssize_t (*real)(int, const void *, size_t, off64_t) =
        (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    return real(fd, bytes, length, offset);
}
int fdatasync(int fd) {
    wait_out();
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return real(fd);
}
int fsync(int fd) {
    wait_out();
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return real(fd);
}
"#;

#[tokio::test]
async fn a_hung_disk_costs_the_leader_its_office_and_then_ends_its_process() {
    hang("PLACEMENT_TEST_HANGS_WHILE").await;
}

#[tokio::test]
async fn a_disk_that_hangs_in_the_note_beside_the_log_is_noticed_too() {
    hang("PLACEMENT_TEST_REACHED_HANGS_WHILE").await;
}

/// The longest core dump that a process may leave, as Linux says.
fn core_limits(pid: u32) -> Vec<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let columns = line.unwrap().split_whitespace().skip(4).take(2);
    columns
        .map(|limit| limit.parse().unwrap_or(u64::MAX))
        .collect()
}

async fn hang(variable: &str) {
    let config = "[disk]\nhung_after_ms = 12000\n[cluster]\nwait_ms = 2000\n";
    let mut cluster = Cluster::prepare(3, config).unwrap();
    let Some(shim) = shim::compile(cluster.directory(), SHIM) else {
        skipped("a disk that hangs", "there is no C compiler");
        return;
    };
    let gate = |id: u64| cluster.directory().join(format!("disk-{id}-hangs"));
    let gates = [gate(1), gate(2), gate(3)];
    for (id, gate) in (1..).zip(&gates) {
        cluster.options_mut().environment = vec![
            ("LD_PRELOAD".to_owned(), shim.display().to_string()),
            (variable.to_owned(), gate.display().to_string()),
        ];
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let client = cluster.client().with_patience(Duration::from_secs(60));
    client
        .create_provider(&NewProvider::named("before").uuid(Uuid::new_v4()))
        .await
        .unwrap();

    let leader = cluster.leader().await.unwrap();
    let gate = &gates[usize::try_from(leader - 1).unwrap()];
    let limits = core_limits(cluster.process(leader).pid());
    assert!(limits.iter().all(|limit| *limit <= 1), "{limits:?}");
    fs::write(gate, "").unwrap();
    let hangs = Instant::now();
    // A write that comes back at all was committed by the others.
    let during = NewProvider::named("during").uuid(Uuid::new_v4());
    client
        .repeating_unknown()
        .create_provider(&during)
        .await
        .unwrap();
    let next = cluster.leader_other_than(Some(leader)).await.unwrap();
    assert_ne!(next, leader);
    assert!(
        cluster.runs(leader),
        "another leads before the process has ended"
    );
    let log = cluster.log(leader, 200);
    assert!(
        log.contains("a call to the disk does not come back"),
        "{log}"
    );

    let ended = cluster
        .process(leader)
        .wait(Duration::from_secs(40))
        .unwrap();
    assert!(!ended.success(), "{ended}");
    assert!(!ended.core_dumped(), "{ended}");
    assert!(hangs.elapsed() >= Duration::from_secs(12));
    let log = cluster.log(leader, 20);
    assert!(log.contains("the disk hangs; the process ends"), "{log}");

    // Its disk is well again, and so is it.
    fs::remove_file(gate).unwrap();
    cluster.start_node(leader).unwrap();
    cluster.wait_healthy().await.unwrap();
    assert!(cluster.has_provider("during").await);
    cluster.assert_equal_states().await;
}
