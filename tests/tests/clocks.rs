//! The wall clock of one machine is temporarily a day ahead.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use placement_tests::backups::{Replay, check, printed, restore};
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::host::create;
use placement_tests::wait::{until, until_expired, until_ok};
use placement_tests::{shim, skip::skipped};
use tokio::time::sleep;

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
    let kept = first_backup(&cluster, 2, &backups).await;

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
    until_log_kept(&cluster, 2, &kept).await;
    for id in cluster.ids() {
        cluster.kill_9(id);
    }
    let now = moment(1);
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

/// A node whose clock is a day ahead rejects the certificates of the others, which are valid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_suspects_the_clock_of_a_node_that_rejects_valid_certificates() {
    let (mut cluster, _authority) = Cluster::start_with_peer_tls(3).await.unwrap();
    let Some(shim) = shim::compile(cluster.directory(), SHIM) else {
        return skipped("a clock that is ahead", "there is no C compiler");
    };
    let gate = cluster.directory().join("clock-is-ahead");
    fs::write(&gate, "").unwrap();
    cluster.kill_9(3);
    cluster.options_mut().environment =
        [("LD_PRELOAD", &shim), ("PLACEMENT_TEST_AHEAD_WHILE", &gate)]
            .map(|(name, path)| (name.to_owned(), path.display().to_string()))
            .into();
    // The certificates are valid for a day.
    until_expired().await;
    cluster.start_node(3).unwrap();
    let reason = [
        "node 3 ",
        "if the certificate is valid, the clock of that node is wrong",
    ];
    cluster.until_shown(&["status"], 1, &reason).await;
}

/// A single node starts with a clock that is ahead and is then corrected, so its clock is behind
/// the time in the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replay_warns_if_log_time_stood_still() {
    let mut cluster = Cluster::prepare(1, "").unwrap();
    let Some(shim) = shim::compile(cluster.directory(), SHIM) else {
        return skipped("a clock that is ahead", "there is no C compiler");
    };
    let backups = cluster.directory().join("backups");
    let gate = cluster.directory().join("clock-is-ahead");
    fs::write(&gate, "").unwrap();
    cluster.options_mut().environment = [
        ("LD_PRELOAD", &shim),
        ("PLACEMENT_TEST_AHEAD_WHILE", &gate),
        ("PLACEMENTD_BACKUP_DIRECTORY", &backups),
    ]
    .map(|(name, path)| (name.to_owned(), path.display().to_string()))
    .into();
    cluster.start_node(1).unwrap();
    cluster.wait_healthy().await.unwrap();
    let kept = first_backup(&cluster, 1, &backups).await;
    create(&cluster.client(), "first").await;
    fs::remove_file(&gate).unwrap();
    // Longer than clocks that agree may differ.
    let corrected = Instant::now();
    for nth in 0.. {
        create(&cluster.client(), &format!("later-{nth}")).await;
        if corrected.elapsed() > Duration::from_secs(8) {
            break;
        }
        sleep(Duration::from_millis(200)).await;
    }
    until_log_kept(&cluster, 1, &kept).await;
    let days = 2 * 86_400;
    let replay = Replay::start(&kept, "default", &["--until", &moment(days)]);
    let warnings = replay.interrupt();
    assert!(
        warnings.contains("warning: ") && warnings.contains("the time in the log stood still for"),
        "{warnings}"
    );
}

/// Waits for the first backup of a node. Returns its directory.
async fn first_backup(cluster: &Cluster, id: u64, backups: &Path) -> PathBuf {
    let cluster_id = cluster.admin_of(id).status().await.unwrap().cluster_id;
    let kept = backups.join(cluster_id.unwrap()).join(format!("node-{id}"));
    until("a backup", async || {
        let mut entries = fs::read_dir(&kept).into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_string_lossy().starts_with("backup-"))
    })
    .await;
    kept
}

/// Waits until the log up to the last applied entry is kept with the backup.
async fn until_log_kept(cluster: &Cluster, id: u64, kept: &Path) {
    until_ok("the log is kept with the backup", async || {
        let status = cluster.admin_of(id).status().await.unwrap();
        let kept = printed(&check(kept));
        if kept["index"].parse().ok() != status.applied {
            return Err(kept);
        }
        assert_eq!(Some(&kept["digest"]), status.digest.as_ref());
        Ok(())
    })
    .await;
}

/// The time so many seconds from now, like `date -u +%FT%TZ`.
fn moment(seconds: u64) -> String {
    let output = Command::new("date")
        .args(["-u", "-d", &format!("{seconds} seconds"), "+%FT%TZ"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
