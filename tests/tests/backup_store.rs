//! Backups in an S3 store: copied, retained, fetched and restored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use placement_client::NewProvider;
use placement_tests::backups::{check, printed, refusal, restored};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::host::{self, claim, create};
use placement_tests::s3::{Mood, SECRET, Store, spoil};
use placement_tests::wait::{until, until_ok};
use tempfile::TempDir;

use crate::join::wait_for;

/// A cluster whose nodes take backups and copy them to a store.
struct Drill {
    cluster: Cluster,
    store: Store,
    backups: TempDir,
}

impl Drill {
    async fn start(nodes: u64, backup: &str) -> Self {
        let store = Store::start().await;
        Self::start_with(nodes, backup, store.settings(), store).await
    }

    async fn start_with(nodes: u64, backup: &str, settings: String, store: Store) -> Self {
        let backups = tempfile::tempdir().unwrap();
        let config = format!(
            "[backup]\ndirectory = {:?}\n{backup}\n{settings}",
            backups.path()
        );
        let cluster = Cluster::start_with(nodes, &config).await.unwrap();
        Self {
            cluster,
            store,
            backups,
        }
    }

    async fn place(&self, id: u64) -> String {
        let status = self.cluster.admin_of(id).status().await.unwrap();
        format!("{}/node-{id}", status.cluster_id.unwrap())
    }

    /// Waits until the store has all files of the node.
    async fn all_is_there(&self, id: u64) -> BTreeMap<String, u64> {
        let place = self.place(id).await;
        until_ok("copies", async || {
            let mut here = files(&self.backups.path().join(&place));
            here.remove("draft");
            let there = self.store.files(&place);
            if here == there && here.keys().any(|name| name.starts_with("backup-")) {
                return Ok(there);
            }
            Err((here, there, self.cluster.log(id, 20)))
        })
        .await
    }

    /// Waits until the backup warning of node 1 satisfies `expected`; returns the warning.
    async fn warning(&self, expected: impl Fn(Option<&str>) -> bool) -> Option<String> {
        let started = Instant::now();
        loop {
            let status = self.cluster.admin_of(1).status().await.unwrap();
            if expected(status.backup_problem.as_deref()) {
                return status.backup_problem;
            }
            // One request to the store may take a minute.
            let is_late = started.elapsed() > Duration::from_secs(150);
            assert!(!is_late, "{:?}", status.backup_problem);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the backup directory of a node contains the log up to the node's last write.
    /// Returns the digest of that state.
    async fn log_is_kept(&self, id: u64) -> String {
        let local = self.backups.path().join(self.place(id).await);
        until_ok("the last write in the directory", async || {
            let digest = self.cluster.admin_of(id).status().await.unwrap().digest;
            let checked = check(&local);
            let is_whole = checked.status.success();
            let kept = is_whole.then(|| printed(&checked)["digest"].clone());
            match (digest, kept) {
                (Some(digest), Some(kept)) if digest == kept => Ok(digest),
                differ => Err(differ),
            }
        })
        .await
    }

    /// Kills the first three nodes and restarts them.
    async fn crash(&mut self) {
        (1..=3).for_each(|id| self.cluster.kill_9(id));
        (1..=3).for_each(|id| self.cluster.start_node(id).unwrap());
        for id in 1..=3 {
            self.cluster.wait_ready(id).await.unwrap();
        }
    }

    async fn write(&self, name: &str) {
        create(&self.cluster.client(), name).await;
    }

    /// Runs `fetch-backup` as on a new machine, which has only the settings of the store.
    fn fetch(&self, arguments: &[&str]) -> Output {
        let file = self.backups.path().join("elsewhere.toml");
        let text = format!(
            "node_id = 9\n[backup]\ndirectory = \"/nowhere\"\n{}",
            self.store.settings()
        );
        fs::write(&file, text).unwrap();
        Command::new(binaries::placementd().unwrap())
            .args(["fetch-backup", "--config"])
            .arg(file)
            .args(arguments)
            .output()
            .unwrap()
    }
}

fn files(dir: &Path) -> BTreeMap<String, u64> {
    let found = fs::read_dir(dir).into_iter().flatten().flatten();
    found
        .filter_map(|entry| {
            let length = entry.metadata().ok()?.len();
            Some((entry.file_name().into_string().ok()?, length))
        })
        .collect()
}

fn words(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_made_under_load_are_restored() {
    let mut drill = Drill::start(3, "every_s = 2\nkeep = 3").await;
    let stop = Arc::new(AtomicBool::new(false));
    let writing = (drill.cluster.clients().into_iter().enumerate()).map(|(writer, client)| {
        let stop = stop.clone();
        tokio::spawn(async move {
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let name = format!("w{writer}-{number}-{}", "x".repeat(150));
                // A busy machine refuses some of the writes.
                let _ = client.create_provider(&NewProvider::named(&name)).await;
            }
        })
    });
    let writing: Vec<_> = writing.collect();
    let place = drill.place(2).await;
    until("copies that are made under load", async || {
        let names = drill.store.files(&place).into_keys();
        names.filter(|name| name.starts_with("backup-")).count() >= 3
    })
    .await;
    stop.store(true, Ordering::Relaxed);
    for task in writing {
        task.await.unwrap();
    }
    drill.cluster.assert_equal_states().await;
    let digest = drill.log_is_kept(2).await;
    drill.all_is_there(2).await;
    for id in drill.cluster.ids() {
        drill.cluster.kill_9(id);
    }
    let there = drill.store.files(&place);
    assert!(
        there
            .keys()
            .filter(|name| name.starts_with("backup-"))
            .count()
            <= 4
    );

    let listed = drill.fetch(&[]);
    let listed = printed(&listed);
    let newest = "newest backup copied 20";
    assert!(listed[&place].contains(newest), "{listed:?}");
    let target = drill.cluster.directory().join("fetched");
    let to = target.to_str().unwrap();
    let fetched = printed(&drill.fetch(&["--from", &place, "--to", to]));
    assert_eq!(&fetched["digest"], &digest);
    assert_eq!(files(&target), there);

    let again = refusal(&drill.fetch(&["--from", &place, "--to", to]), 1);
    assert!(again.contains("the directory is not empty"), "{again}");
    let unknown = ["--from", "unknown/node-1", "--to", "/tmp/none"];
    let unknown = refusal(&drill.fetch(&unknown), 1);
    assert!(
        unknown.contains(&place),
        "the error lists the prefixes: {unknown}"
    );

    let (restored, report) = restored(&target, &[]).await;
    assert_eq!(&report["digest"], &digest);
    restored.assert_equal_states().await;
    for id in drill.cluster.ids() {
        assert!(!drill.cluster.log(id, 10_000).contains(SECRET));
    }
}

/// The cluster has a history: crashes, a partition, used and unused join tokens, a retired number,
/// a replaced node. Then all machines are lost with their backup directories.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_with_history_is_restored_from_the_store_on_new_machines() {
    let mut drill = Drill::start(3, "every_s = 3600").await;
    let client = drill.cluster.client();
    let south = client.clone().with_prefix("/south");
    let host = host::with_processors(&client).await;
    let created = drill.cluster.create_partition("south", &[], &["/south"]);
    created.await.unwrap();
    let (mut claims, mut of_south) = (Vec::new(), Vec::new());
    let mut write = async || {
        for _ in 0..5 {
            claims.push(until_ok("a claim", async || claim(&client, host).await).await);
            of_south.push(create(&south, &format!("s{}", of_south.len())).await);
        }
    };
    write().await;

    // Node 4 joins and is removed, and its number is retired.
    drill.cluster.add_place();
    drill.cluster.admit(4).await.unwrap();
    let used = fs::read_to_string(drill.cluster.token_file(4)).unwrap();
    drill.cluster.start_node(4).unwrap();
    drill.cluster.wait_ready(4).await.unwrap();
    let remove = ["members", "remove", "4", "--yes"];
    drill.cluster.ctl_in_time(&remove).await;
    drill.cluster.kill_9(4);
    // After the restart the log continues in another file.
    drill.log_is_kept(3).await;
    drill.crash().await;
    write().await;

    // Node 5 replaces node 2, whose disk is lost.
    drill.cluster.kill_9(2);
    fs::remove_dir_all(drill.cluster.data_dir(2)).unwrap();
    let replacing = drill.cluster.ctl_in_time(&["replace", "node-2"]).await;
    drill.cluster.give_token(2, &replacing).unwrap();
    drill.cluster.start_node(2).unwrap();
    wait_for(&drill.cluster, "node 5 in the place of node 2", |members| {
        members.iter().map(|one| one.id).eq([1, 3, 5])
    })
    .await;
    let open = drill.cluster.ctl_in_time(&["join-token", "create"]).await;
    drill.crash().await;
    write().await;

    let mut digest = drill.log_is_kept(3).await;
    let there = loop {
        let there = drill.all_is_there(3).await;
        // The leader may have retired the number of node 2 in the meantime.
        let now = drill.log_is_kept(3).await;
        if now == digest {
            break there;
        }
        digest = now;
    };
    let logs = there.keys().filter(|name| name.starts_with("log-"));
    assert!(logs.count() >= 2, "the log in several files: {there:?}");
    let place = drill.place(3).await;
    for id in 1..=3 {
        drill.cluster.kill_9(id);
        fs::remove_dir_all(drill.cluster.data_dir(id)).unwrap();
    }
    fs::remove_dir_all(drill.backups.path().join(&place).parent().unwrap()).unwrap();

    let target = drill.cluster.directory().join("fetched");
    let to = target.to_str().unwrap();
    let fetched = printed(&drill.fetch(&["--from", &place, "--to", to]));
    assert_eq!(fetched["digest"], digest);
    // The second node of the new cluster has a retired number.
    let (mut restored, _) = restored(&target, &[]).await;
    restored.assert_equal_states().await;
    for id in restored.ids() {
        let client = restored.client_of(id);
        let seen = client.provider_allocations(host).await.unwrap();
        let lost: Vec<_> = (claims.iter())
            .filter(|claim| !seen.allocations.contains_key(*claim))
            .collect();
        assert!(lost.is_empty(), "node {id} has lost {lost:?}");
        let seen: BTreeSet<_> = client
            .with_prefix("/south")
            .providers(&[])
            .await
            .unwrap()
            .iter()
            .map(|provider| provider.uuid)
            .collect();
        assert_eq!(seen, of_south.iter().copied().collect());
        create(&restored.client_of(id), &format!("written by node {id}")).await;
    }

    for (id, token) in (4..).zip([used, replacing, open]) {
        restored.add_place();
        restored.give_token(id, &token).unwrap();
        restored.start_node(id).unwrap();
        let refused = "no node is expected with this token";
        restored.until_logged(&[id], refused).await;
        restored.kill_9(id);
    }
    // No number is assigned twice.
    restored.add_place();
    restored.admit(7).await.unwrap();
    restored.start_node(7).unwrap();
    restored.wait_ready(7).await.unwrap();
}

#[tokio::test]
async fn store_keeps_as_many_backups_as_the_directory() {
    let drill = Drill::start(1, "every_s = 1\nkeep = 2").await;
    drill.write("first").await;
    let first = drill.all_is_there(1).await;
    let oldest = first.keys().next().unwrap().clone();
    let place = drill.place(1).await;
    let mut number = 0;
    until("the deletion of the oldest backup", async || {
        number += 1;
        drill.write(&format!("p{number}")).await;
        !drill.store.files(&place).contains_key(&oldest)
    })
    .await;
    // The next backup may exist before the oldest one is deleted.
    until_ok("the configured number of backups", async || {
        let there = drill.store.files(&place);
        let backups = there.keys().filter(|name| name.starts_with("backup-"));
        (2..=3)
            .contains(&backups.count())
            .then_some(())
            .ok_or(there)
    })
    .await;
}

/// After a restart the log continues in another file. The previous file is deleted from the
/// directory and the store at once if a backup covers it: the next backup may be a day away.
#[tokio::test]
async fn log_covered_by_a_backup_is_deleted_when_the_next_file_begins() {
    let mut drill = Drill::start(1, "every_s = 1\nkeep = 1").await;
    drill.write("one").await;
    let place = drill.place(1).await;
    let local = drill.backups.path().join(&place);
    let first_log = format!("log-{:020}", 0);
    until("a backup with all writes", async || {
        let applied = drill.cluster.admin_of(1).status().await.unwrap().applied;
        let newest = format!("backup-{:020}", applied.unwrap());
        [&first_log, &newest]
            .iter()
            .all(|name| files(&local).contains_key(*name))
    })
    .await;
    drill.cluster.stop_node(1).await.unwrap();
    let file = drill.cluster.directory().join("placementd.toml");
    let settings = fs::read_to_string(&file).unwrap();
    let rarely = settings.replace("\nevery_s = 1\n", "\nevery_s = 3600\n");
    assert_ne!(settings, rarely);
    fs::write(file, rarely).unwrap();
    drill.cluster.start_node(1).unwrap();
    drill.cluster.wait_healthy().await.unwrap();
    drill.write("two").await;
    until("the deletion of the previous log file", async || {
        !files(&local).contains_key(&first_log)
    })
    .await;
    drill.all_is_there(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_store_causes_a_warning_and_copies_are_made_later() {
    let drill = Drill::start(1, "every_s = 3600").await;
    drill.all_is_there(1).await;
    drill.warning(|words| words.is_none()).await;
    // A reset may hit the connection while it is established or later.
    let (down, broke_off) = ("cannot connect to", "the connection failed");
    for (mood, expected) in [
        (
            Mood::Forbids,
            ["does not permit this with these credentials"].as_slice(),
        ),
        (Mood::Hangs, &["no answer within 60 s"]),
        (Mood::IsDown, &[down, broke_off]),
        (Mood::BreaksOff, &[broke_off]),
    ] {
        drill.store.set_mood(mood);
        let name = format!("{mood:?}");
        // Requests of clients are not delayed.
        drill.write(&name).await;
        let any = |words: &str| expected.iter().any(|expected| words.contains(expected));
        let words = drill.warning(|words| words.is_some_and(any)).await.unwrap();
        assert!(words.contains("not copied to the store"), "{words}");
        drill.store.set_mood(Mood::Well);
        drill.warning(|words| words.is_none()).await;
        drill.all_is_there(1).await;
    }
    let status = words(&drill.cluster.placementctl(&["status"]).unwrap());
    assert!(!status.contains("warning: backups"), "{status}");
    assert!(metric(&drill.cluster, "placement_backup_copy_failures_total").await >= 4.0);
    assert!(metric(&drill.cluster, "placement_backup_copied_timestamp_seconds").await > 1.7e9);

    // Damage in the store is detected when the backup is fetched.
    let place = drill.place(1).await;
    let dir = drill.store.directory(&place);
    let there = drill.store.files(&place);
    let backup = there
        .keys()
        .find(|name| name.starts_with("backup-"))
        .unwrap();
    spoil(&dir.join(backup));
    let target = drill.cluster.directory().join("damaged");
    let to = target.to_str().unwrap();
    let words = refusal(&drill.fetch(&["--from", &place, "--to", to]), 1);
    assert!(words.contains("damaged"), "{words}");
}

/// S3 receives and returns a long object in parts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_backup_is_copied_in_parts() {
    let store = Store::start().await;
    let settings = store.settings();
    let drill = Drill::start_with(1, "", settings, store).await;
    drill.all_is_there(1).await;
    let place = drill.place(1).await;
    let long: Vec<u8> = (0..20_000_000_u32)
        .map(|at| at.wrapping_mul(at).to_le_bytes()[2])
        .collect();
    let name = format!("backup-{:020}", 1);
    let making = drill.backups.path().join("long");
    fs::write(&making, &long).unwrap();
    fs::rename(making, drill.backups.path().join(&place).join(&name)).unwrap();
    let there = drill.all_is_there(1).await;
    assert_eq!(there[&name], 20_000_000);
    assert!(fs::read(drill.store.directory(&place).join(&name)).unwrap() == long);
    drill.warning(|words| words.is_none()).await;
}

#[tokio::test]
async fn differing_copy_is_rejected() {
    let store = Store::start().await;
    store.set_mood(Mood::Lies);
    let settings = store.settings();
    let drill = Drill::start_with(1, "", settings, store).await;
    let words = drill.warning(|words| words.is_some()).await.unwrap();
    assert!(
        words.contains("in the bucket differs from the file"),
        "{words}"
    );
    drill.store.set_mood(Mood::Well);
    drill.warning(|words| words.is_none()).await;
    let there = drill.all_is_there(1).await;
    let place = drill.place(1).await;
    let backup = there
        .keys()
        .find(|name| name.starts_with("backup-"))
        .unwrap();
    assert_eq!(
        fs::read(drill.store.directory(&place).join(backup)).unwrap(),
        fs::read(drill.backups.path().join(&place).join(backup)).unwrap()
    );
}

/// The disk of the directory was restored from an older image, so the store has entries that exist
/// nowhere else.
#[tokio::test]
async fn longer_copy_of_the_log_is_kept_when_the_directory_has_less() {
    let mut drill = Drill::start(1, "every_s = 3600").await;
    // The first backup precedes the writes: a log file that a backup covers would be deleted.
    drill.all_is_there(1).await;
    for number in 0..20 {
        drill.write(&format!("p{number}")).await;
    }
    drill.log_is_kept(1).await;
    let there = drill.all_is_there(1).await;
    let place = drill.place(1).await;
    drill.cluster.stop_node(1).await.unwrap();
    let log = there.keys().find(|name| name.starts_with("log-")).unwrap();
    let copy = drill.store.directory(&place).join(log);
    let copied = fs::read(&copy).unwrap();
    let file = drill.backups.path().join(&place).join(log);
    let file = fs::File::options().write(true).open(file).unwrap();
    // The directory lacks some of the last entries.
    file.set_len(copied.len() as u64 - 500).unwrap();
    drill.cluster.start_node(1).unwrap();
    drill.cluster.wait_healthy().await.unwrap();
    drill.write("one more").await;
    let reported = "the copy of this file in the bucket is longer";
    drill.cluster.until_logged(&[1], reported).await;
    // The next part of the log is still copied to the store.
    until("another part of the log", async || {
        let names = drill.store.files(&place).into_keys();
        names.filter(|name| name.starts_with("log-")).count() == 2
    })
    .await;
    assert_eq!(fs::read(&copy).unwrap(), copied);
}

#[tokio::test]
async fn wrong_credentials_are_reported_and_not_shown() {
    let wrong = "neverToBeShown";
    let store = Store::start().await;
    let settings = store.settings_with(wrong);
    let drill = Drill::start_with(1, "", settings, store).await;
    let words = drill.warning(|words| words.is_some()).await.unwrap();
    assert!(words.contains("it rejects the credentials"), "{words}");
    let log = drill.cluster.log(1, 10_000);
    assert!(log.contains("it rejects the credentials"), "{log}");
    assert!(!log.contains(wrong) && !words.contains(wrong));
    // The credentials are corrected without a restart.
    drill.store.settings();
    drill.warning(|words| words.is_none()).await;
    drill.all_is_there(1).await;
    assert!(!drill.cluster.log(1, 10_000).contains(SECRET));
}

#[tokio::test]
async fn a_store_with_tls_needs_a_trusted_certificate() {
    let store = Store::start_secure().await;
    let vouched = store.settings();
    let lines = vouched.lines().filter(|line| !line.starts_with("ca_file"));
    let settings = lines.collect::<Vec<_>>().join("\n");
    let mut drill = Drill::start_with(1, "", settings, store).await;
    let words = drill.warning(|words| words.is_some()).await.unwrap();
    assert!(words.contains("certificate"), "{words}");

    let backup = format!("[backup]\ndirectory = {:?}\n", drill.backups.path());
    drill.cluster.stop_node(1).await.unwrap();
    let file = drill.cluster.directory().join("placementd.toml");
    fs::write(file, format!("{backup}\n{vouched}")).unwrap();
    drill.cluster.start_node(1).unwrap();
    drill.cluster.wait_healthy().await.unwrap();
    drill.all_is_there(1).await;
}

async fn metric(cluster: &Cluster, name: &str) -> f64 {
    let text = cluster.metrics(1).await;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(-1.0, |value| value.parse().unwrap())
}
