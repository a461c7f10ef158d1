//! The wall clock of one machine is temporarily a day ahead.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use placement_tests::backups::{check, printed, restore};
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::host::create;
use placement_tests::wait::{until, until_ok};
use placement_tests::{shim, skip::skipped};

/// Preloaded library: while a file exists, the wall clock is a day ahead.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    const char *gate = getenv("PLACEMENT_TEST_AHEAD_WHILE");
    if (clock == CLOCK_REALTIME && gate && access(gate, F_OK) == 0) time->tv_sec += 86400;
    return result;
}
"#;

async fn lead(cluster: &Cluster, id: u64) {
    until_ok("a leader", async || {
        if cluster.leader().await.unwrap() == id {
            return Ok(());
        }
        let handed_over = cluster.admin_of(id).transfer_leader(Some(id)).await;
        Err(format!("{handed_over:?}"))
    })
    .await;
}

/// Acknowledged writes are restored up to the time of the operator's clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restore_to_a_time_is_complete_although_a_leader_clock_was_ahead() {
    let mut cluster = Cluster::prepare(3, STEADY_LEADER).unwrap();
    let Some(shim) = shim::compile(cluster.directory(), SHIM) else {
        return skipped("a clock that is ahead", "there is no C compiler");
    };
    let backups = cluster.directory().join("backups");
    let gate = cluster.directory().join("clock-is-ahead");
    let variable = |name: &str, value: String| (name.to_owned(), value);
    cluster.options_mut().environment = vec![
        variable("LD_PRELOAD", shim.display().to_string()),
        variable("PLACEMENT_TEST_AHEAD_WHILE", gate.display().to_string()),
    ];
    cluster.start_node(1).unwrap();
    cluster.options_mut().environment = vec![variable(
        "PLACEMENTD_BACKUP_DIRECTORY",
        backups.display().to_string(),
    )];
    cluster.start_node(2).unwrap();
    cluster.options_mut().environment.clear();
    cluster.start_node(3).unwrap();
    cluster.wait_healthy().await.unwrap();
    let cluster_id = cluster.admin_of(2).status().await.unwrap().cluster_id;
    let kept = backups.join(cluster_id.unwrap()).join("node-2");
    let names = |kept: &Path| -> Vec<String> {
        let entries = fs::read_dir(kept).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    };
    until("a backup", async || {
        names(&kept).iter().any(|name| name.starts_with("backup-"))
    })
    .await;

    lead(&cluster, 1).await;
    fs::write(&gate, "").unwrap();
    create(&cluster.client(), "a").await;
    until_ok("a warning", async || {
        let problem = cluster.admin_of(1).status().await.unwrap().clock_problem;
        match &problem {
            Some(words) if words.contains("s ahead of the clocks") => Ok(()),
            _ => Err(problem),
        }
    })
    .await;
    fs::remove_file(&gate).unwrap();
    lead(&cluster, 2).await;
    create(&cluster.client(), "b").await;
    until_ok("the log is kept with the backup", async || {
        let status = cluster.admin_of(2).status().await.unwrap();
        let kept = printed(&check(&kept));
        if kept["index"].parse().ok() != status.applied {
            return Err(kept);
        }
        assert_eq!(Some(&kept["digest"]), status.digest.as_ref());
        Ok(())
    })
    .await;
    for id in cluster.ids() {
        cluster.kill_9(id);
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = moment(since.unwrap().as_secs() + 1);
    // More entries may have been committed since.
    let whole = printed(&check(&kept));
    let new = Cluster::prepare(3, "").unwrap();
    let output = restore(&new, 1, &kept, &["--until", &now]);
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    let restored = printed(&output);
    assert_eq!(restored["digest"], whole["digest"], "{warnings}");
    assert!(
        !warnings.contains("the time in the log is ahead"),
        "{warnings}"
    );
}

/// Formats a time like `date -u +%FT%TZ`.
fn moment(seconds: u64) -> String {
    let output = Command::new("date")
        .args(["-u", "-d", &format!("@{seconds}"), "+%FT%TZ"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
