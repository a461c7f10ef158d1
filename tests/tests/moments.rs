//! Scheduled backups of a node, and restores to any covered time.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use http::StatusCode;
use placement_client::{Admin, ApiRequest, Client, Consistency, IndexToken, NewProvider};
use placement_tests::backups::{Replay, back_up, printed, refusal, restore};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::host::create;
use placement_tests::wait::until;
use serde_json::{Value, json};

async fn providers(cluster: &Cluster) -> BTreeSet<String> {
    let found = cluster.client().providers(&[]).await.unwrap();
    found.into_iter().map(|provider| provider.name).collect()
}

/// Current time in the format of restore times, from the clock of this machine.
fn now() -> String {
    let output = Command::new("date")
        .args(["--utc", "+%Y-%m-%dT%H:%M:%S.%6NZ"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Value of a metric of a node.
async fn metric(cluster: &Cluster, id: u64, name: &str) -> f64 {
    let text = cluster.metrics(id).await;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(-1.0, |value| value.parse().unwrap())
}

#[tokio::test]
async fn any_time_since_the_oldest_backup_is_restorable_except_gaps() {
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
        let mut names: Vec<_> = fs::read_dir(&dir)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with("backup-"))
            .collect();
        names.sort();
        names
    };
    until("the first backup", async || !made().is_empty()).await;

    // Records a time between each write and the next.
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
    assert_eq!(
        left.len(),
        2,
        "the oldest backup is deleted once there are two newer ones"
    );
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

    // A restore from the newest backup in the directory, and one from the oldest backup and the
    // log, both give the state that the backup of the running node has.
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

    // Restores to a time in between and runs the cluster.
    let at = moments.len() - 3;
    let (mut new, output) = whole(&["--until", &moments[at]]);
    printed(&output);
    new.start_node(1).unwrap();
    new.wait_healthy().await.unwrap();
    let names = providers(&new).await;
    let expected: BTreeSet<_> = (0..=at).map(|number| format!("p{number}")).collect();
    assert_eq!(names, expected);

    // A time that is too early, a time for a single file, and a time for which the log is missing.
    let words = refusal(&whole(&["--until", "2020-01-01T00:00:00Z"]).1, 1);
    assert!(words.contains("after the requested moment"), "{words}");
    let words = refusal(
        &restore(
            &Cluster::prepare(1, "").unwrap(),
            1,
            &file,
            &["--until", &moments[at]],
        ),
        1,
    );
    assert!(words.contains("is a single backup"), "{words}");
    let (_, output) = whole(&["--until", "2100-01-01T00:00:00Z"]);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("the archived log ends there"), "{words}");

    // The node runs without its backup directory until it has purged entries that were not kept.
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
    // The gap is detected without a further entry.
    until("the gap is found", async || {
        cluster.log(1, 2000).contains("has a gap")
    })
    .await;
    assert!(metric(&cluster, 1, "placement_backup_log_gaps_total").await > 0.0);
    until("a backup after the gap", async || {
        cluster.log(1, 2000).matches("made a backup").count() > 0 && made().len() == 2
    })
    .await;
    // Later entries are kept again, and a backup follows the gap.
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

/// Status and code of a refused write.
async fn refused(client: &Client, name: &str) -> (Option<StatusCode>, String) {
    let refused = client.create_provider(&NewProvider::named(name)).await;
    let error = refused.unwrap_err();
    (error.status(), error.to_string())
}

#[tokio::test]
async fn replayed_backup_answers_the_tools_of_a_cluster() {
    let backups = tempfile::tempdir().unwrap();
    let config = format!("[backup]\ndirectory = {:?}\n", backups.path());
    let cluster = Cluster::start_with(1, &config).await.unwrap();
    let status = cluster.admin_of(1).status().await.unwrap();
    let node = format!("{}/node-1", status.cluster_id.unwrap());
    let dir = backups.path().join(node);
    let made = cluster.placementctl(&["partitions", "create", "north"]);
    assert!(made.unwrap().status.success());
    let north = cluster.admin_of(1).placement("north");
    create(&north, "northern").await;
    let client = cluster.client();
    create(&client, "before").await;
    let moment = now();
    create(&client, "after").await;
    let applied = cluster.admin_of(1).status().await.unwrap().applied.unwrap();
    until("the log is kept", async || {
        metric(&cluster, 1, "placement_backup_log_index").await >= applied as f64
    })
    .await;

    // The node that writes to the directory still runs.
    let replay = Replay::start(&dir, "north", &["--until", &moment]);
    let (epoch, index) = (&replay.printed["epoch"], &replay.printed["index"]);
    assert!(index.parse::<u64>().unwrap() < applied);
    assert!(replay.printed["default"].starts_with("1 providers, 0 consumers, "));
    let past = Client::new([&replay.address]).unwrap();
    let listed = past.providers(&[]).await.unwrap();
    let names = listed.iter().map(|one| one.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["before"]);
    let answer = past.call(ApiRequest::get("/resource_providers")).await;
    let token = format!("{epoch}.{index}");
    let answer = answer.unwrap();
    assert_eq!(answer.header("placement-index"), Some(&*token));
    let url = format!("http://{}", replay.address);
    let ctl = |arguments: &[&str]| {
        let mut command = Command::new(binaries::placementctl().unwrap());
        let output = command
            .args(["--endpoint", &url])
            .args(arguments)
            .output()
            .unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        (output.status.success(), out + &err)
    };
    let (shown, words) = ctl(&["providers", "list", "--partition", "north"]);
    assert!(shown && words.contains("northern"), "{words}");
    let (shown, words) = ctl(&["history"]);
    assert!(!shown && words.contains("not kept any more"), "{words}");
    for command in [
        &["status"][..],
        &["topology"],
        &["top", "--once"],
        &["join-token", "list"],
    ] {
        let (shown, words) = ctl(command);
        let says = "this is `placementd replay`, which serves the content of a backup";
        assert!(!shown && words.contains(says), "{command:?}: {words}");
    }
    let (shown, words) = ctl(&["capacity", "--partition", "south"]);
    assert!(
        !shown && words.contains("`placementctl partitions`"),
        "{words}"
    );
    for (path, shown) in [
        ("/web/", "north"),
        ("/web/placement/default/providers", "before"),
        ("/web/placement/north/capacity", "Capacity"),
    ] {
        let page = past.request(ApiRequest::get(path)).await.unwrap();
        let text = String::from_utf8_lossy(&page.body);
        assert!(
            page.status == StatusCode::OK && text.contains(shown),
            "{text}"
        );
    }
    let missing = past.request(ApiRequest::get("/web/topology")).await;
    assert_eq!(missing.unwrap().status, StatusCode::NOT_FOUND);
    let checked = Command::new(binaries::placementd().unwrap())
        .arg("check-backup")
        .arg(&dir)
        .output();
    let checked = String::from_utf8(checked.unwrap().stdout).unwrap();
    for held in [
        "default: 2 providers, 0 consumers\n",
        "north: 1 providers, 0 consumers\n",
    ] {
        assert!(checked.contains(held), "{checked}");
    }

    // The replay is read-only, and answers queries about changes.
    let refused_here = Some(StatusCode::FORBIDDEN);
    for client in [&past, &Admin::new(past.clone()).placement("north")] {
        let (status, words) = refused(client, "late").await;
        assert_eq!(status, refused_here, "{words}");
        assert!(words.contains("is read-only"), "{words}");
    }
    let body = json!({
        "changes": [{ "method": "POST", "path": "/resource_providers", "body": { "name": "late" } }],
        "ask": [{ "capacity": {} }],
    });
    let asked = ApiRequest::post("/placementd/v1/what-if").json(&body);
    let answer: Value = past.call(asked).await.unwrap().json().unwrap();
    assert_eq!(answer["changes"][0]["status"], 200, "{answer}");
    let later = Consistency::Session(IndexToken::new(format!("{epoch}.{}", applied + 1)));
    let read = ApiRequest::get("/resource_providers").consistency(later);
    let answer = past.request(read).await.unwrap();
    assert_eq!(answer.status, StatusCode::PRECONDITION_FAILED);
    let events = ApiRequest::get("/placementd/v1/events").query("after", &format!("{epoch}.1"));
    let answer = past.request(events).await.unwrap();
    assert_eq!(answer.status, StatusCode::GONE);
    let page = ApiRequest::get("/resource_providers").header("origin", "http://page.example");
    let answer = past.request(page).await.unwrap();
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    replay.interrupt();

    // Replays the log to its end, on a listener that others can reach.
    let replay = Replay::start(&dir, "north", &[]);
    assert!(replay.printed["default"].starts_with("2 providers, "));
    let program = binaries::placementd().unwrap();
    let mut open = Command::new(program);
    open.arg("replay").arg(&dir).args(["--listen", "0.0.0.0:0"]);
    let words = refusal(&open.output().unwrap(), 1);
    assert!(words.contains("requires no token"), "{words}");
}

#[tokio::test]
async fn naive_model_reproduces_the_kept_log_of_a_node() {
    let backups = tempfile::tempdir().unwrap();
    let config = format!(
        "[backup]\ndirectory = {:?}\nevery_s = 1\nkeep = 100\n",
        backups.path()
    );
    let mut cluster = Cluster::start_with(1, &config).await.unwrap();
    let status = cluster.admin_of(1).status().await.unwrap();
    let node = format!("{}/node-1", status.cluster_id.unwrap());
    let dir = backups.path().join(node);
    let made = cluster.placementctl(&["partitions", "create", "north"]);
    assert!(made.unwrap().status.success());
    for client in [cluster.client(), cluster.admin_of(1).placement("north")] {
        create(&client, "host").await;
        let again = client.create_provider(&NewProvider::named("host")).await;
        assert!(again.unwrap_err().is_conflict());
    }
    let count = || fs::read_dir(&dir).into_iter().flatten().count();
    until("two backups and the log", async || count() >= 3).await;
    create(&cluster.client(), "another").await;
    let applied = cluster.admin_of(1).status().await.unwrap().applied.unwrap();
    until("the log is kept", async || {
        metric(&cluster, 1, "placement_backup_log_index").await >= applied as f64
    })
    .await;
    cluster.stop_node(1).await.unwrap();

    let simulate = binaries::tool("simulate").unwrap();
    for kept in [&dir, &cluster.place(1).data_dir] {
        let output = Command::new(&simulate)
            .arg("replay")
            .arg(kept)
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}{errors}");
        assert!(words.contains("no difference: "), "{words}");
        // A node that has just started has not written its rows to a file yet.
        assert!(*kept != dir || !words.contains(" 0 digests"), "{words}");
    }
}

#[tokio::test]
async fn gap_found_at_start_triggers_a_backup() {
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

    // Without its backup directory the node serves writes and purges its log.
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
