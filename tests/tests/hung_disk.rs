//! A disk that hangs: no error, no answer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use placement_client::NewProvider;
use placement_tests::cluster::Cluster;
use placement_tests::skip::skipped;
use uuid::Uuid;

/// Stands between a process and its disk: while a file is there, no sync comes back.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static void wait_out(void) {
    const char *gate = getenv("PLACEMENT_TEST_HANGS_WHILE");
    while (gate && access(gate, F_OK) == 0) usleep(10000);
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

/// `None` without a C compiler.
fn shim(dir: &Path) -> Option<PathBuf> {
    let (source, library) = (dir.join("shim.c"), dir.join("shim.so"));
    fs::write(&source, SHIM).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status();
    compiled
        .is_ok_and(|status| status.success())
        .then_some(library)
}

#[tokio::test]
async fn a_hung_disk_costs_the_leader_its_office_and_then_ends_its_process() {
    let config = "[disk]\nhung_after_ms = 12000\n[cluster]\nwait_ms = 2000\n";
    let mut cluster = Cluster::prepare(3, config).unwrap();
    let Some(shim) = shim(cluster.directory()) else {
        skipped("a disk that hangs", "there is no C compiler");
        return;
    };
    let gate = |id: u64| cluster.directory().join(format!("disk-{id}-hangs"));
    let gates = [gate(1), gate(2), gate(3)];
    for (id, gate) in (1..).zip(&gates) {
        cluster.options_mut().environment = vec![
            ("LD_PRELOAD".to_owned(), shim.display().to_string()),
            (
                "PLACEMENT_TEST_HANGS_WHILE".to_owned(),
                gate.display().to_string(),
            ),
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
