//! Slow disks, and hung disks, which return neither a result nor an error.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Claim, Client, Error, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::host;
use placement_tests::wait::{PATIENCE, until};
use placement_tests::{shim, skip::skipped};
use uuid::Uuid;

/// Preloaded library. While a file exists, syncs hang or take two seconds, writes of the reached
/// mark hang, or reads of directories hang.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
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
DIR *opendir(const char *name) {
    // /proc is not on this disk.
    if (strncmp(name, "/proc/", 6) != 0) wait_for("PLACEMENT_TEST_LOOKS_HANG_WHILE");
    DIR *(*real)(const char *) = (DIR *(*)(const char *))dlsym(RTLD_NEXT, "opendir");
    return real(name);
}
int fdatasync(int fd) {
    const char *slow = getenv("PLACEMENT_TEST_SLOW_WHILE");
    if (slow && access(slow, F_OK) == 0) usleep(2000000);
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

/// Starts a cluster of three; returns the files that make the disk of each node fail. `None`
/// without a C compiler.
async fn behind_shims(config: &str, variable: &str) -> Option<(Cluster, [PathBuf; 3])> {
    let mut cluster = Cluster::prepare(3, config).unwrap();
    let Some(shim) = shim::compile(cluster.directory(), SHIM) else {
        skipped("disks that are slow or hang", "there is no C compiler");
        return None;
    };
    let gates = [1, 2, 3].map(|id| cluster.directory().join(format!("disk-{id}")));
    for (id, gate) in (1..).zip(&gates) {
        cluster.options_mut().environment = vec![
            ("LD_PRELOAD".to_owned(), shim.display().to_string()),
            (variable.to_owned(), gate.display().to_string()),
        ];
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    Some((cluster, gates))
}

#[tokio::test]
async fn leader_with_a_hung_disk_steps_down_and_exits() {
    hang("PLACEMENT_TEST_HANGS_WHILE").await;
}

#[tokio::test]
async fn hang_while_writing_the_reached_mark_is_detected() {
    hang("PLACEMENT_TEST_REACHED_HANGS_WHILE").await;
}

/// Soft and hard limit of a process's core dumps (/proc/PID/limits).
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

/// Generation of a consumer, which counts its writes.
async fn generation(client: &Client, consumer: Uuid) -> u64 {
    let seen = client.allocations(consumer).await.unwrap();
    seen.consumer_generation.unwrap_or(0)
}

/// Writes a consumer; its generation makes sure that each step is applied once. Returns false if
/// the outcome is unknown.
async fn next_step(client: &Client, host: Uuid, consumer: Uuid, step: u64) -> bool {
    let mut claim = Claim::by("project", "user").and(host, &[("VCPU", step)]);
    claim.consumer_generation = (step > 1).then_some(step - 1);
    match client.put_allocations(consumer, &claim).await {
        Ok(()) => true,
        Err(Error::OutcomeUnknown { .. }) => false,
        Err(error) => panic!("step {step}: {error}"),
    }
}

async fn hang(variable: &str) {
    let config = "[disk]\nhung_after_ms = 12000\n[cluster]\nwait_ms = 2000\n";
    let Some((mut cluster, gates)) = behind_shims(config, variable).await else {
        return;
    };
    let client = cluster.client().with_patience(PATIENCE);
    let host = host::with_processors(&client).await;
    let own = Uuid::new_v4();
    assert!(next_step(&client, host, own, 1).await);

    let leader = cluster.leader().await.unwrap();
    let gate = &gates[usize::try_from(leader - 1).unwrap()];
    let limits = core_limits(cluster.process(leader).pid());
    assert!(limits.iter().all(|limit| *limit <= 1), "{limits:?}");
    let before_it_hangs = Instant::now();
    fs::write(gate, "").unwrap();
    // An acknowledged write was committed by the other nodes.
    let is_known = next_step(&client, host, own, 2).await;
    let next = cluster.leader_other_than(Some(leader)).await.unwrap();
    assert_ne!(next, leader);
    assert!(
        cluster.runs(leader),
        "the process ended before another node led"
    );
    // An unknown write is read, not repeated. Under the next leader its outcome is final.
    let mut step = generation(&client, own).await;
    assert!(
        step == 2 || (!is_known && step == 1),
        "it was written {step} times"
    );
    // The disk of the new leader works, so each write is acknowledged unless the machine is too
    // busy.
    for _ in 0..5 {
        if !next_step(&cluster.client_of(next), host, own, step + 1).await {
            let written = generation(&client, own).await;
            assert!([step, step + 1].contains(&written), "{written}");
            step = written;
            continue;
        }
        step += 1;
    }
    let slow = "a disk operation has not returned";
    cluster.until_logged(&[leader], slow).await;

    let ended = cluster.process(leader).wait(PATIENCE).unwrap();
    assert!(!ended.success(), "{ended}");
    assert!(!ended.core_dumped(), "{ended}");
    assert!(before_it_hangs.elapsed() >= Duration::from_secs(12));
    let log = cluster.log(leader, 20);
    assert!(log.contains("the disk hangs; the process ends"), "{log}");

    // The disk works again, and so does the node.
    fs::remove_file(gate).unwrap();
    cluster.start_node(leader).unwrap();
    cluster.wait_healthy().await.unwrap();
    assert_eq!(generation(&client, own).await, step);
    cluster.assert_equal_states().await;
}

/// Limit for an answer that takes a quarter of a second on an idle machine.
const HASTE: Duration = Duration::from_secs(5);
/// More scrapes than a node has HTTP threads.
const SCRAPES: usize = 20;

#[tokio::test]
async fn metrics_and_status_do_not_wait_for_a_hung_disk() {
    let variable = "PLACEMENT_TEST_LOOKS_HANG_WHILE";
    let Some((mut cluster, gates)) = behind_shims("", variable).await else {
        return;
    };
    let used = "\nplacement_disk_used_bytes ";
    until("metrics of the disk", async || {
        cluster.metrics(1).await.contains(used)
    })
    .await;
    fs::write(&gates[0], "").unwrap();
    let tasks = format!("/proc/{}/task", cluster.process(1).pid());
    let threads = || fs::read_dir(&tasks).unwrap().count();
    let before = threads();
    for _ in 0..SCRAPES {
        let scrape = tokio::time::timeout(HASTE, cluster.metrics(1)).await;
        assert!(
            scrape.unwrap().contains(used),
            "the scrape has the previous value"
        );
    }
    assert!(threads() < before + SCRAPES / 2, "scrapes block threads");
    let admin = cluster.admin_of(1);
    let status = tokio::time::timeout(HASTE, admin.status()).await;
    assert!(status.unwrap().unwrap().disk_used_bytes.is_some());
    let client = cluster.client_of(1);
    for path in ["/readyz", "/traits"] {
        let asked = client.request_once(ApiRequest::get(path));
        let answer = tokio::time::timeout(HASTE, asked).await.unwrap().unwrap();
        assert_eq!(answer.status, 200, "{path}");
    }
    fs::remove_file(&gates[0]).unwrap();
    host::with_processors(&client).await;
}

/// Duration of a sync on a slow disk.
const SYNC: Duration = Duration::from_secs(2);
/// Maximum number of observations. A delay by the slow disks would disturb each of them; other load
/// of the machine disturbs only some.
const OBSERVATIONS: usize = 4;

/// Each commit waits for one of the followers. Reads need no commit, only the answers of a quorum,
/// and heartbeats do not wait for the disk.
#[tokio::test]
async fn slow_followers_delay_writes_but_neither_reads_nor_heartbeats() {
    let Some((cluster, gates)) = behind_shims("", "PLACEMENT_TEST_SLOW_WHILE").await else {
        return;
    };
    let mut disturbed = Vec::new();
    while disturbed.len() < OBSERVATIONS {
        match observe_slow_followers(&cluster, &gates).await {
            Ok(()) => return,
            Err(disturbance) => disturbed.push(disturbance),
        }
    }
    panic!("all observations failed: {disturbed:#?}");
}

/// Reads for a while from a leader whose followers have slow disks.
///
/// # Errors
/// If there was an election, or reads took long.
async fn observe_slow_followers(cluster: &Cluster, gates: &[PathBuf]) -> Result<(), String> {
    for gate in gates {
        // An earlier observation may have had another leader.
        let _ = fs::remove_file(gate);
    }
    let leader = cluster.leader().await.unwrap();
    for (id, gate) in (1..).zip(gates) {
        if id != leader {
            fs::write(gate, "").unwrap();
        }
    }
    let before = cluster.admin_of(leader).status().await.unwrap();

    // Keeps both followers syncing.
    let writing = cluster.client_of(leader).with_patience(Duration::ZERO);
    let writes = tokio::spawn(async move {
        loop {
            let provider = NewProvider::named(&Uuid::new_v4().to_string()).uuid(Uuid::new_v4());
            let _ = tokio::time::timeout(SYNC / 4, writing.create_provider(&provider)).await;
        }
    });
    tokio::time::sleep(SYNC / 2).await;
    let reader = cluster.client_of(leader);
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    while began.elapsed() < 4 * SYNC {
        let asked = Instant::now();
        reader.providers(&[("name", "unknown")]).await.unwrap();
        slowest = slowest.max(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    writes.abort();
    let after = cluster.admin_of(leader).status().await.unwrap();
    if (after.leader, after.term) != (before.leader, before.term) {
        return Err(format!("an election: {before:?}, {after:?}"));
    }
    assert!(after.last_log > before.last_log, "nothing was written");
    if slowest < SYNC / 2 {
        Ok(())
    } else {
        Err(format!("a read took {slowest:?}"))
    }
}
