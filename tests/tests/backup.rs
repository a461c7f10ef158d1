//! Backups of a cluster under load, and new clusters that are restored from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::StatusCode;
use placement_client::{ApiRequest, Consistency};
use placement_tests::backups::{back_up, check, printed, refusal, restore, restored};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::host::create;
use placement_tests::power::Power;
use placement_tests::private;
use placement_tests::skip::skipped;
use placement_tests::wait::{PATIENCE, until, until_ok};
use tokio::task::JoinHandle;

async fn providers(cluster: &Cluster) -> BTreeSet<String> {
    let found = cluster.client().providers(&[]).await.unwrap();
    found.into_iter().map(|provider| provider.name).collect()
}

/// For each provider, when its creation began and when it was acknowledged.
type Writes = Arc<Mutex<BTreeMap<String, (Instant, Option<Instant>)>>>;

/// Clients that create providers through all nodes as fast as they can.
struct Writers {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
    writes: Writes,
}

impl Writers {
    fn start(cluster: &Cluster) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let writes = Writes::default();
        let write = |(writer, client): (usize, placement_client::Client)| {
            let (stop, writes) = (stop.clone(), writes.clone());
            tokio::spawn(async move {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let name = format!("w{writer}-{number}");
                    let begun = Instant::now();
                    writes.lock().unwrap().insert(name.clone(), (begun, None));
                    create(&client, &name).await;
                    let acknowledged = Instant::now();
                    writes
                        .lock()
                        .unwrap()
                        .insert(name, (begun, Some(acknowledged)));
                }
            })
        };
        let tasks = cluster
            .clients()
            .into_iter()
            .enumerate()
            .map(write)
            .collect();
        Self {
            stop,
            tasks,
            writes,
        }
    }

    /// Waits for an acknowledged write that began after this moment.
    async fn write_after(&self, moment: Instant) {
        until("a write", async || {
            let writes = self.writes.lock().unwrap();
            let mut all = writes.values();
            all.any(|(begun, acknowledged)| *begun > moment && acknowledged.is_some())
        })
        .await;
    }

    async fn stop(self) -> BTreeMap<String, (Instant, Option<Instant>)> {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        self.writes.lock().unwrap().clone()
    }
}

/// Digest of the state after an entry, replayed from the log that another node stores with its
/// backups.
async fn digest_after(index: &str, kept: &Path) -> String {
    until_ok("the log", async || {
        let scratch = Cluster::prepare(3, "").unwrap();
        let restored = printed(&restore(&scratch, 1, kept, &["--until-index", index]));
        if restored["index"] == index {
            Ok(restored["digest"].clone())
        } else {
            Err(restored)
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_under_load_is_restored_into_a_new_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let config = format!("[backup]\ndirectory = {:?}\n", directory.path());
    let cluster = Cluster::start_with(3, &config).await.unwrap();
    let session = cluster.client().with_session();
    create(&session, "first").await;
    // Otherwise the first backup of node 3 may be newer than the one that is taken below.
    cluster.wait_backed_up(cluster.ids()).await.unwrap();
    let old_token = session.session_index().unwrap();
    let started = Instant::now();
    let writers = Writers::start(&cluster);
    writers.write_after(started).await;
    let file = cluster.directory().join("backup");
    let (place, path) = (cluster.place(1).admin(), file.clone());
    let begun = Instant::now();
    let output = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(binaries::placementctl().unwrap());
        command
            .args(["--endpoint", &place, "backup"])
            .arg(path)
            .output()
            .unwrap()
    });
    let taken = printed(&output.await.unwrap());
    let ended = Instant::now();
    let kept = directory.path().join(&taken["cluster_id"]).join("node-3");
    assert_eq!(taken["digest"], digest_after(&taken["index"], &kept).await);
    writers.write_after(ended).await;
    let writes = writers.stop().await;
    let mut checked = printed(&check(&file));
    checked.retain(|key, _| taken.contains_key(key));
    assert_eq!(checked, taken);

    let (restored, report) = restored(&file, &[]).await;
    for key in ["cluster_id", "epoch", "index", "digest", "time"] {
        assert_eq!(report[key], taken[key], "{key}");
    }
    restored.assert_equal_states().await;
    // The digest is another one as soon as a node has recorded its start.
    for status in restored.statuses().await {
        assert_eq!(status.cluster_id.as_ref(), Some(&report["new_cluster_id"]));
    }
    assert_ne!(report["new_cluster_id"], taken["cluster_id"]);

    let names = providers(&restored).await;
    assert!(names.contains("first"));
    let (mut before, mut after) = (0, 0);
    for (name, (sent, acknowledged)) in &writes {
        if acknowledged.is_some_and(|at| at < begun) {
            assert!(names.contains(name), "{name} was acknowledged before");
            before += 1;
        }
        if *sent > ended {
            assert!(!names.contains(name), "{name} was written after");
            after += 1;
        }
    }
    assert!(before > 0 && after > 0, "{before} before, {after} after");

    // A consistency token of the old cluster is refused.
    let request =
        ApiRequest::get("/resource_providers").consistency(Consistency::Session(old_token));
    let response = restored.client().request(request).await.unwrap();
    assert_eq!(response.status, StatusCode::PRECONDITION_FAILED);
    let reason = String::from_utf8_lossy(&response.body).into_owned();
    assert!(reason.contains("belongs to another history"), "{reason}");

    // The cluster is fully usable: it accepts writes at all nodes, survives the loss of one, and
    // knows the addresses of its members.
    for (client, name) in restored.clients().into_iter().zip(["n1", "n2", "n3"]) {
        create(&client, name).await;
    }
    let expected: BTreeSet<_> = restored
        .ids()
        .into_iter()
        .map(|id| restored.place(id).admin())
        .collect();
    until("addresses", async || {
        let status = restored.admin_of(1).status().await.unwrap();
        let known = status.members.into_iter().map(|member| member.admin);
        known.collect::<BTreeSet<_>>() == expected
    })
    .await;
    let mut restored = restored;
    let leader = restored.leader().await.unwrap();
    restored.kill_9(leader);
    let client = restored.client();
    create(&client, "without").await;
    restored.start_node(leader).unwrap();
    restored.wait_healthy().await.unwrap();
    restored.assert_equal_states().await;
    assert!(restored.has_provider("without").await);
}

#[tokio::test]
async fn damaged_backups_and_used_directories_are_refused() {
    let cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    create(&client, "one").await;
    let (file, later) = (
        cluster.directory().join("one"),
        cluster.directory().join("two"),
    );
    let taken = printed(&back_up(&cluster, &file));
    let mode = fs::metadata(&file).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600, "other users can read the file");
    create(&client, "two").await;
    printed(&back_up(&cluster, &later));
    let words = refusal(&back_up(&cluster, &file), 1);
    assert!(words.contains("exists already"), "{words}");
    let missing = cluster.directory().join("missing/file");
    let words = refusal(&back_up(&cluster, &missing), 1);
    assert!(words.contains("No such file or directory"), "{words}");

    // The data directory of a running node.
    let words = refusal(&restore(&cluster, 1, &file, &[]), 1);
    assert!(words.contains("in use by another placementd"), "{words}");

    let new = Cluster::prepare(3, "").unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let damaged = cluster.directory().join("damaged");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged, &bytes).unwrap();
    let words = refusal(&check(&damaged), 1);
    assert!(
        words.contains("is not a valid backup: it is damaged"),
        "{words}"
    );
    let words = refusal(&restore(&new, 1, &damaged, &[]), 1);
    assert!(words.contains("it is damaged"), "{words}");
    fs::write(&damaged, &bytes[..middle]).unwrap();
    let words = refusal(&check(&damaged), 1);
    assert!(words.contains("it is cut off"), "{words}");
    let words = refusal(&check(Path::new("/dev/null")), 1);
    assert!(words.contains("not a snapshot"), "{words}");

    // A directory with a foreign file, and the directory of another node.
    let dir = &new.place(1).data_dir;
    private::make_dir(dir).unwrap();
    fs::write(dir.join("letter"), "from home").unwrap();
    let words = refusal(&restore(&new, 1, &file, &[]), 1);
    assert!(words.contains("contains data"), "{words}");
    fs::remove_file(dir.join("letter")).unwrap();
    let first = printed(&restore(&new, 1, &file, &[]));
    assert_eq!(first["digest"], taken["digest"]);
    let words = refusal(&restore(&new, 1, &file, &[]), 1);
    assert!(words.contains("is the data directory of node 1"), "{words}");

    // All nodes must be restored from the same backup.
    let id = first["new_cluster_id"].as_str();
    let words = refusal(&restore(&new, 2, &later, &["--as", id]), 1);
    assert!(words.contains("another backup"), "{words}");
    printed(&restore(&new, 2, &file, &["--as", id]));
    let drawn_again = printed(&restore(&new, 3, &file, &[]));
    assert_ne!(drawn_again["new_cluster_id"], id);
    assert_ne!(drawn_again["new_epoch"], first["new_epoch"]);
}

/// Node numbers start again in the restored cluster. A node that is started although its restore
/// was refused does not form an empty cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_cluster_starts_only_with_its_own_node_numbers() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    create(&client, "kept").await;
    cluster.kill_9(3);
    (cluster.ctl_in_time(&["members", "remove", "3", "--yes"])).await;
    let file = cluster.directory().join("backup");
    let taken = printed(&back_up(&cluster, &file));

    let mut new = Cluster::prepare(3, "").unwrap();
    let token = ["--join", "127.0.0.1:1", "--join-token-file", "/nowhere"];
    for id in new.ids() {
        let words = refusal(&restore(&new, id, &file, &token), 1);
        assert!(words.contains("set node_id and initial_members"), "{words}");
        new.start_node(id).unwrap();
        let ended = new.process(id).wait(PATIENCE).unwrap();
        assert!(!ended.success());
        let log = new.log(id, 20);
        assert!(log.contains("Run the restore again"), "{log}");
    }
    let first = printed(&restore(&new, 1, &file, &[]));
    assert_eq!(first["digest"], taken["digest"]);
    for id in [2, 3] {
        printed(&restore(
            &new,
            id,
            &file,
            &["--as", &first["new_cluster_id"]],
        ));
    }
    for id in new.ids() {
        new.start_node(id).unwrap();
    }
    new.wait_healthy().await.unwrap();
    new.assert_equal_states().await;
    assert!(new.has_provider("kept").await);
    for (client, name) in new.clients().into_iter().zip(["n1", "n2", "n3"]) {
        create(&client, name).await;
    }
}

#[tokio::test]
async fn interrupted_backup_leaves_no_files() {
    // A pause of three seconds follows each piece of 64 KiB.
    let slow = "[raft]\nsnapshot_bytes_per_s = 21845\n";
    let mut cluster = Cluster::start_with(1, slow).await.unwrap();
    let client = cluster.client();
    let padding = "x".repeat(150);
    for number in 0..700 {
        let name = format!("{number}-{padding}");
        create(&client, &name).await;
    }
    let full = Command::new(binaries::placementctl().unwrap())
        .args(["--endpoint", &cluster.place(1).admin(), "backup", "-"])
        .stdout(File::options().write(true).open("/dev/full").unwrap())
        .output()
        .unwrap();
    let words = refusal(&full, 1);
    assert!(words.contains("No space left on device"), "{words}");

    let dir = cluster.directory().join("backups");
    fs::create_dir(&dir).unwrap();
    let start = |cluster: &Cluster| {
        let child = Command::new(binaries::placementctl().unwrap())
            .args(["--endpoint", &cluster.place(1).admin(), "backup"])
            .arg(dir.join("backup"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let started = Instant::now();
        let has_come = || {
            let mut files = fs::read_dir(&dir).unwrap();
            files.any(|file| file.unwrap().metadata().is_ok_and(|file| file.len() > 0))
        };
        while !has_come() {
            assert!(
                started.elapsed() < PATIENCE,
                "no bytes of the backup arrive"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        child
    };
    let is_empty = || fs::read_dir(&dir).unwrap().next().is_none();

    let child = start(&cluster);
    let words = refusal(&back_up(&cluster, &dir.join("second")), 2);
    assert!(words.contains("is already in progress"), "{words}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let words = refusal(&child.wait_with_output().unwrap(), 1);
    assert!(words.contains("interrupted"), "{words}");
    assert!(is_empty());

    // The node accepts another backup once it has noticed the interruption.
    until("another backup", async || {
        back_up(&cluster, Path::new("-")).status.success()
    })
    .await;
    let child = start(&cluster);
    cluster.kill_9(1);
    let words = refusal(&child.wait_with_output().unwrap(), 2);
    assert!(words.contains("was interrupted after"), "{words}");
    assert!(is_empty());
}

#[tokio::test]
async fn finished_backup_survives_power_loss() {
    let cluster = Cluster::start(1).await.unwrap();
    let Some(power) = Power::new(cluster.directory()) else {
        skipped("a backup and a loss of power", "there is no C compiler");
        return;
    };
    let taken = |number: u64, unsynced: Option<&str>| {
        let dir = cluster.directory().join(format!("backups-{number}"));
        fs::create_dir(&dir).unwrap();
        let file = dir.join("monday");
        let output = Command::new(binaries::placementctl().unwrap())
            .envs(power.environment(number, unsynced).unwrap())
            .args(["--endpoint", &cluster.place(1).admin(), "backup"])
            .arg(&file)
            .output()
            .unwrap();
        printed(&output);
        power.cut(number, &dir).unwrap();
        check(&file)
    };
    printed(&taken(8, None));
    // Without either of the syncs the backup is lost, so the test would detect a missing sync.
    refusal(&taken(9, Some(".part$")), 1);
    refusal(&taken(10, Some("/backups-10/$")), 1);
}
