//! `placementd inspect` reads a data directory without changing it and names its damage.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use placement_client::NewProvider;
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use serde_json::Value;
use uuid::Uuid;

fn inspect(dir: &Path, further: &[&str]) -> Output {
    Command::new(binaries::placementd().unwrap())
        .arg("inspect")
        .args(further)
        .arg("--data-dir")
        .arg(dir)
        .output()
        .unwrap()
}

#[test]
fn closed_pipes_do_not_make_commands_panic() {
    for task in [
        &["check-config", "--node-id", "1", "--data-dir", "/nowhere"][..],
        &["config", "sample"],
    ] {
        let mut child = Command::new(binaries::placementd().unwrap())
            .args(task)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && !words.contains("panicked"),
            "{words}"
        );
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        let reason = String::from_utf8_lossy(&output.stderr);
        panic!("{error}: {reason}")
    })
}

/// Each file with its content and modification time.
fn contents(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else if path.is_file() {
            // A killed node leaves its socket behind.
            let changed = fs::metadata(&path).unwrap().modified().unwrap();
            all.insert(path.clone(), (fs::read(&path).unwrap(), changed));
        }
    }
    all
}

/// Files with the rows of a database.
fn rows_files(dir: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    names
        .filter(|path| path.extension().is_some_and(|kind| kind == "sst"))
        .collect()
}

fn damage(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    for part in [1, 2] {
        let place = bytes.len() * part / 3;
        bytes[place] ^= 0x55;
    }
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn inspect_names_damage_and_changes_nothing() {
    let mut cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    for name in ["one", "two", "three"] {
        let provider = NewProvider::named(name).uuid(Uuid::new_v4());
        client.create_provider(&provider).await.unwrap();
    }
    // The rows are still in memory only. This must not look like a loss.
    cluster.kill_9(1);
    let words = String::from_utf8(inspect(&cluster.data_dir(1), &[]).stdout).unwrap();
    let not_written = "not written yet: the next start computes it from the ";
    assert!(words.contains(not_written), "{words}");
    assert!(!words.contains("digest"), "{words}");
    cluster.start_node(1).unwrap();
    cluster.wait_ready(1).await.unwrap();
    let output = cluster.placementctl(&["compact"]).unwrap();
    assert!(output.status.success(), "{output:?}");
    let provider = NewProvider::named("four").uuid(Uuid::new_v4());
    client.create_provider(&provider).await.unwrap();
    let status = cluster.statuses().await.remove(0);
    let dir = cluster.data_dir(1);

    let running = inspect(&dir, &[]);
    assert_eq!(running.status.code(), Some(1));
    let reason = String::from_utf8_lossy(&running.stderr).into_owned();
    assert!(reason.contains("in use by another placementd"), "{reason}");

    // A partial snapshot, as left by a node that ends while one is being sent: a backup has the
    // format of a snapshot.
    let sent = dir.join("snapshots").join("snapshot-being-sent");
    let file = sent.to_str().unwrap();
    let output = cluster.placementctl(&["backup", file]).unwrap();
    assert!(output.status.success(), "{output:?}");

    cluster.kill_9(1);
    let before = contents(&dir);
    let output = inspect(&dir, &["--json"]);
    let found = json(&output);
    assert!(output.status.success(), "{found:#}");
    assert_eq!(found["identity"]["node"], 1);
    assert_eq!(
        found["identity"]["cluster"],
        status.cluster_id.clone().unwrap()
    );
    assert_eq!(found["boots"], 2);
    assert_eq!(found["log"]["last"]["index"], status.last_log.unwrap());
    assert_eq!(found["log"]["vote"]["term"], status.term);
    assert_eq!(found["state"]["membership"]["voters"][0][0], 1);
    assert_eq!(found["snapshots"][0]["verified"], true);
    assert_eq!(found["problems"], Value::Array(Vec::new()));

    let words = String::from_utf8(inspect(&dir, &[]).stdout).unwrap();
    for expected in [
        "cluster ",
        "vote ",
        "committed ",
        "digest ",
        "verified, covers",
    ] {
        assert!(words.contains(expected), "{expected:?} is not in {words}");
    }

    let last = status.last_log.unwrap().to_string();
    let output = inspect(&dir, &["log", "--from", &last, "--to", &last]);
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(line.contains("CreateProvider"), "{line}");
    assert!(line.contains("of node 1, boot 2, write"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    let output = inspect(&dir, &["log", "--from", &last, "--json"]);
    let line = json(&output);
    assert_eq!(line["content"]["CreateProvider"]["name"], "four");
    assert_eq!(line["write_id"]["origin"], 1);

    let rows = json(&inspect(&dir, &["rows", "--json"]));
    let of = |name: &str| {
        let tables = rows.as_array().unwrap().iter();
        tables.filter(|table| table["table"] == name).count()
    };
    assert_eq!(of("providers"), 1, "{rows:#}");

    assert!(before == contents(&dir), "inspect changed the directory");

    damage(&sent);
    let tables = rows_files(&dir.join("state"));
    assert!(!tables.is_empty());
    for table in tables {
        damage(&table);
    }
    let output = inspect(&dir, &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let found = json(&output);
    let problems = found["problems"].to_string();
    assert!(problems.contains("snapshots/snapshot-"), "{problems}");
    assert!(problems.contains("state"), "{problems}");
    assert_eq!(found["log"]["last"]["index"], status.last_log.unwrap());
    assert_eq!(inspect(&dir, &["rows"]).status.code(), Some(1));

    fs::remove_dir_all(dir.join("log")).unwrap();
    let found = json(&inspect(&dir, &["--json"]));
    let problems = found["problems"].to_string();
    assert!(problems.contains("it contains no database"), "{problems}");
    assert_eq!(inspect(&dir.join("nothing"), &[]).status.code(), Some(1));
}
