//! Disks that take two seconds for a sync: slow, but not dead.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::time::{Duration, Instant};

use placement_client::NewProvider;
use placement_tests::cluster::Cluster;
use placement_tests::{shim, skip::skipped};
use uuid::Uuid;

/// Stands between a process and its disk: while a file is there, each sync takes two seconds.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
int fdatasync(int fd) {
    const char *gate = getenv("PLACEMENT_TEST_SLOW_WHILE");
    if (gate && access(gate, F_OK) == 0) usleep(2000000);
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return real(fd);
}
"#;

const SYNC: Duration = Duration::from_secs(2);

/// A cluster whose followers are slow from now on, and its leader; `None` without a C compiler.
async fn with_slow_followers() -> Option<(Cluster, u64)> {
    let mut cluster = Cluster::prepare(3, "").unwrap();
    let Some(shim) = shim::compile(cluster.directory(), SHIM) else {
        skipped("disks that are slow", "there is no C compiler");
        return None;
    };
    let gate = |id: u64| cluster.directory().join(format!("disk-{id}-is-slow"));
    let gates = [gate(1), gate(2), gate(3)];
    for (id, gate) in (1..).zip(&gates) {
        cluster.options_mut().environment = vec![
            ("LD_PRELOAD".to_owned(), shim.display().to_string()),
            (
                "PLACEMENT_TEST_SLOW_WHILE".to_owned(),
                gate.display().to_string(),
            ),
        ];
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let leader = cluster.leader().await.unwrap();
    for (id, gate) in (1..).zip(&gates) {
        if id != leader {
            fs::write(gate, "").unwrap();
        }
    }
    Some((cluster, leader))
}

/// Each commit waits for one of the followers. Reads ask for no commit: a quorum that is there is
/// enough, and its heartbeats do not wait for its disks.
#[tokio::test]
async fn slow_followers_cost_writes_time_but_neither_reads_nor_the_leader_s_office() {
    let Some((cluster, leader)) = with_slow_followers().await else {
        return;
    };
    let before = cluster.admin_of(leader).status().await.unwrap();

    // Something is synced on both all the time.
    let writing = cluster.client_of(leader).with_patience(Duration::ZERO);
    let writes = tokio::spawn(async move {
        loop {
            let provider = NewProvider::named(&Uuid::new_v4().to_string()).uuid(Uuid::new_v4());
            let _ = tokio::time::timeout(SYNC / 4, writing.create_provider(&provider)).await;
        }
    });
    tokio::time::sleep(SYNC / 2).await;
    let reader = cluster.client_of(leader).with_patience(Duration::ZERO);
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    let mut reads = 0;
    while began.elapsed() < 4 * SYNC {
        let asked = Instant::now();
        reader.providers(&[("name", "nobody")]).await.unwrap();
        slowest = slowest.max(asked.elapsed());
        reads += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    writes.abort();
    assert!(reads > 50, "{reads} reads");
    assert!(slowest < SYNC / 2, "a read took {slowest:?}");
    let after = cluster.admin_of(leader).status().await.unwrap();
    assert_eq!((after.leader, after.term), (before.leader, before.term));
    assert!(after.last_log > before.last_log, "nothing was written");
}

/// A sync takes longer than an election may, and each write still has its answer.
#[tokio::test]
async fn writes_go_on_being_acknowledged_by_slow_followers() {
    let Some((cluster, leader)) = with_slow_followers().await else {
        return;
    };
    let before = cluster.admin_of(leader).status().await.unwrap();
    let writers = (0..8).map(|_| {
        // Where writes have waited for long, a node lets no more in, and says so.
        let client = cluster.client_of(leader).with_patience(20 * SYNC);
        tokio::spawn(async move {
            for _ in 0..3 {
                let name = Uuid::new_v4().to_string();
                let provider = NewProvider::named(&name).uuid(Uuid::new_v4());
                client.create_provider(&provider).await.unwrap();
            }
        })
    });
    let began = Instant::now();
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let took = began.elapsed();
    assert!(took >= 3 * SYNC, "the disks were not slow: {took:?}");
    let after = cluster.admin_of(leader).status().await.unwrap();
    assert_eq!((after.leader, after.term), (before.leader, before.term));
}
