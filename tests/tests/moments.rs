//! Backups that a node makes by itself, and the moments that can be restored from them.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use placement_client::NewProvider;
use placement_tests::backups::{back_up, printed, refusal, restore};
use placement_tests::cluster::Cluster;
use placement_tests::host::create;
use placement_tests::wait::until;

async fn providers(cluster: &Cluster) -> BTreeSet<String> {
    let found = cluster.client().providers(&[]).await.unwrap();
    found.into_iter().map(|provider| provider.name).collect()
}

/// The time of a command, as a tool prints and takes it, from the clock of this machine.
fn now() -> String {
    let output = Command::new("date")
        .args(["--utc", "+%Y-%m-%dT%H:%M:%S.%6NZ"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The metric of a node.
async fn metric(cluster: &Cluster, id: u64, name: &str) -> f64 {
    let text = cluster.metrics(id).await;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(-1.0, |value| value.parse().unwrap())
}

#[tokio::test]
async fn any_moment_since_the_oldest_backup_can_be_restored_and_none_in_a_gap() {
    let backups = tempfile::tempdir().unwrap();
    let config = format!(
        "[backup]\ndirectory = {:?}\nevery_s = 4\nkeep = 2\n",
        backups.path()
    );
    let mut cluster = Cluster::start_with(1, &config).await.unwrap();
    let status = cluster.admin_of(1).status().await.unwrap();
    let dir = backups
        .path()
        .join(status.cluster_id.unwrap())
        .join("node-1");
    let made = || {
        let names = fs::read_dir(&dir).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.filter(|name| name.starts_with("backup-")).collect();
        names.sort();
        names
    };
    until("the first backup", async || !made().is_empty()).await;

    // Writes with a moment between each of them and the next.
    let client = cluster.client();
    let mut moments = Vec::new();
    let mut write = async |count: usize| {
        for _ in 0..count {
            let name = format!("p{}", moments.len());
            create(&client, &name).await;
            moments.push(now());
        }
        moments.clone()
    };
    let first = made()[0].clone();
    let left = loop {
        let names = made();
        if !names.contains(&first) {
            break names;
        }
        write(1).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(left.len(), 2, "the oldest goes once there are two others");
    assert!(metric(&cluster, 1, "placement_backup_last_timestamp_seconds").await > 1.7e9);
    assert!(
        cluster
            .admin_of(1)
            .status()
            .await
            .unwrap()
            .last_backup
            .is_some()
    );
    let moments = write(5).await;
    let applied = cluster.admin_of(1).status().await.unwrap().applied.unwrap();
    until("the log is kept", async || {
        metric(&cluster, 1, "placement_backup_log_index").await >= applied as f64
    })
    .await;
    let file = cluster.directory().join("now");
    let taken = printed(&back_up(&cluster, &file));
    cluster.stop_node(1).await.unwrap();

    // The last moment that is there is the same by the oldest backup and the log, by the newest backup, and by the
    // node's own report.
    let whole = |further: &[&str]| {
        let cluster = Cluster::prepare(1, "").unwrap();
        let output = restore(&cluster, 1, &dir, further);
        (cluster, output)
    };
    let newest = printed(&whole(&[]).1);
    assert_eq!(
        (&newest["index"], &newest["digest"]),
        (&taken["index"], &taken["digest"])
    );
    let hidden = cluster.directory().join("hidden");
    fs::rename(dir.join(made().last().unwrap()), &hidden).unwrap();
    let (_, output) = whole(&[]);
    let oldest = printed(&output);
    assert_eq!(
        (&oldest["index"], &oldest["digest"]),
        (&taken["index"], &taken["digest"])
    );

    // A moment in between, in a cluster that runs.
    let at = moments.len() - 3;
    let (mut new, output) = whole(&["--until", &moments[at]]);
    printed(&output);
    new.start_node(1).unwrap();
    new.wait_healthy().await.unwrap();
    let names = providers(&new).await;
    let expected: BTreeSet<_> = (0..=at).map(|number| format!("p{number}")).collect();
    assert_eq!(names, expected);

    // One that is too early, one of a file, and one for which the log is missing.
    let words = refusal(&whole(&["--until", "2020-01-01T00:00:00Z"]).1, 1);
    assert!(words.contains("of a later moment"), "{words}");
    let words = refusal(
        &restore(
            &Cluster::prepare(1, "").unwrap(),
            1,
            &file,
            &["--until", &moments[at]],
        ),
        1,
    );
    assert!(words.contains("is of one moment"), "{words}");
    let (_, output) = whole(&["--until", "2100-01-01T00:00:00Z"]);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        words.contains("the log that was kept ends there"),
        "{words}"
    );

    // The node runs without its place for backups for so long that its log is cut.
    fs::rename(backups.path(), cluster.directory().join("away")).unwrap();
    fs::write(backups.path(), "not a directory").unwrap();
    cluster.start_node(1).unwrap();
    cluster.wait_healthy().await.unwrap();
    let mut lost = String::new();
    for number in 0..60 {
        let name = format!("lost{number}");
        let provider = NewProvider::named(&name);
        client.create_provider(&provider).await.unwrap();
        if number == 30 {
            lost = now();
        }
    }
    until("failures are counted", async || {
        metric(&cluster, 1, "placement_backup_failures_total").await > 0.0
    })
    .await;
    cluster.ctl_in_time(&["compact"]).await;
    let problem = "the directory for backups cannot be used";
    cluster.until_logged(&[1], problem).await;
    fs::remove_file(backups.path()).unwrap();
    fs::rename(cluster.directory().join("away"), backups.path()).unwrap();
    // It shows by itself, with no further entry.
    until("the gap is found", async || {
        cluster.log(1, 2000).contains("has a gap")
    })
    .await;
    assert!(metric(&cluster, 1, "placement_backup_log_gaps_total").await > 0.0);
    until("a backup after the gap", async || {
        cluster.log(1, 2000).matches("made a backup").count() > 0 && made().len() == 2
    })
    .await;
    // What is written then is kept again, and the gap is behind a backup.
    let provider = NewProvider::named("after");
    client.create_provider(&provider).await.unwrap();
    until("the next entry is kept", async || {
        let status = cluster.admin_of(1).status().await.unwrap();
        let kept = metric(&cluster, 1, "placement_backup_log_index").await;
        kept >= status.applied.unwrap() as f64 && status.backup_problem.is_none()
    })
    .await;
    cluster.stop_node(1).await.unwrap();
    let words = refusal(&whole(&["--until", &lost]).1, 1);
    assert!(words.contains("cannot be restored"), "{words}");
    printed(&whole(&["--until", &moments[at]]).1);
    printed(&whole(&[]).1);
}

#[tokio::test]
async fn a_gap_that_a_start_finds_is_followed_by_a_backup_at_once() {
    let root = tempfile::tempdir().unwrap();
    let (backups, away) = (root.path().join("backups"), root.path().join("away"));
    let config = format!("[backup]\ndirectory = {backups:?}\n");
    let mut cluster = Cluster::start_with(1, &config).await.unwrap();
    let last_backup = async |cluster: &Cluster| {
        let status = cluster.admin_of(1).status().await.unwrap();
        (status.last_backup, status.backup_problem)
    };
    until("the first backup", async || {
        last_backup(&cluster).await.0.is_some()
    })
    .await;
    let (first, _) = last_backup(&cluster).await;
    cluster.stop_node(1).await.unwrap();

    // Without its place for backups it writes, and drops its log.
    fs::rename(&backups, &away).unwrap();
    fs::write(&backups, "not a directory").unwrap();
    cluster.start_node(1).unwrap();
    cluster.wait_healthy().await.unwrap();
    let provider = NewProvider::named("unkept");
    cluster.client().create_provider(&provider).await.unwrap();
    cluster.ctl_in_time(&["compact"]).await;
    until("a warning", async || {
        let problem = last_backup(&cluster).await.1;
        problem.is_some_and(|words| words.contains("cannot be used"))
    })
    .await;
    fs::remove_file(&backups).unwrap();
    fs::rename(&away, &backups).unwrap();
    until("the gap, and a backup behind it", async || {
        let gaps = metric(&cluster, 1, "placement_backup_log_gaps_total").await;
        gaps == 1.0 && last_backup(&cluster).await.1.is_none()
    })
    .await;
    assert!(last_backup(&cluster).await.0 > first);
}
