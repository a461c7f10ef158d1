//! Imports a backup into a partition of a running cluster while clients write to the default one
//! and leaders crash. Afterwards the partition answers each request like a cluster that was
//! restored from the backup.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use placement_client::{ApiRequest, Client, Error};
use placement_tests::backups::{Replay, back_up, refusal};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::host;
use placement_tests::wait::PATIENCE;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;
use xxhash_rust::xxh3::xxh3_64;

use crate::transfer::{CANDIDATES, digest, placementd, stdout};

/// Enough consumers for many import commands.
const CONSUMERS: u64 = 6_000;

/// A backup made from an SQL dump.
struct Moved {
    directory: TempDir,
    /// Digest of the backup's content.
    digest: String,
}

impl Moved {
    /// The sample of `transfer.rs` with additional consumers, whose rows are long.
    fn new(consumers: u64) -> Self {
        let sample = include_str!("../../node/transfer/tests/dumps/sqlite.sql");
        let at = "'2026-11-27 09:22:48.021685',NULL";
        let long = "x".repeat(255);
        let mut more = format!(
            "INSERT INTO \"projects\" VALUES({at},9,'{long}');\nINSERT INTO \"users\" VALUES({at},9,'{long}');\n"
        );
        for nth in 100..100 + consumers {
            let uuid = format!("d0000000-0000-4000-8000-{nth:012}");
            more += &format!(
                "INSERT INTO \"consumers\" VALUES({at},{nth},'{uuid}',9,9,{nth},1);\n\
                 INSERT INTO \"allocations\" VALUES({at},{nth},7,'{uuid}',2,1);\n"
            );
        }
        let dump = sample.replace("COMMIT;", &format!("{more}COMMIT;"));
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("dump.sql"), dump).unwrap();
        let [from, to] = ["dump.sql", "backup"]
            .map(|name| directory.path().join(name).to_str().unwrap().to_owned());
        let report = stdout(placementd(&["import", &from, "--out", &to]));
        let digest = digest(&report).to_owned();
        Self { directory, digest }
    }

    fn path(&self, name: &str) -> String {
        self.directory
            .path()
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn backup(&self) -> String {
        self.path("backup")
    }
}

/// Starts an import through a node.
fn begin(cluster: &Cluster, node: u64, partition: &str, backup: &str) -> Child {
    Command::new(binaries::placementctl().unwrap())
        .env("PLACEMENTCTL_ENDPOINT", cluster.place(node).admin())
        .args(["partitions", "import", partition, backup])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn import(cluster: &Cluster, partition: &str, backup: &str) -> Output {
    let words = ["partitions", "import", partition, backup];
    cluster.placementctl(&words).unwrap()
}

async fn ended(import: Child) -> Output {
    let ended = tokio::task::spawn_blocking(|| import.wait_with_output());
    ended.await.unwrap().unwrap()
}

/// Waits until a node has consumers in a partition; returns their number.
async fn until_begun(cluster: &Cluster, node: u64, partition: &str) -> u64 {
    let admin = cluster.admin_of(node);
    loop {
        let all = admin.partitions().await.unwrap();
        let found = all.iter().find(|found| found.name == partition).unwrap();
        if found.consumers > 0 {
            return found.consumers;
        }
        sleep(Duration::from_millis(2)).await;
    }
}

/// Claims in the default partition until `is_over` is set; returns the number of acknowledged
/// claims.
async fn claim(client: Client, is_over: Arc<AtomicBool>) -> u64 {
    let client = client.with_patience(PATIENCE);
    let host = host::with_processors(&client).await;
    let mut made = 0;
    while !is_over.load(Ordering::Relaxed) {
        match host::claim(&client, host).await {
            Ok(_) => made += 1,
            Err(Error::OutcomeUnknown { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        sleep(Duration::from_millis(5)).await;
    }
    made
}

/// Output of `placementctl compare` of two services.
fn compared(one: &str, other: &str) -> String {
    let mut command = Command::new(binaries::placementctl().unwrap());
    let output = command.args(["compare", one, other]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Values by kind and key, from lines of events.
async fn values(client: &Client, query: &str) -> BTreeMap<String, Value> {
    let path = format!("/placementd/v1/events?follow=false{query}");
    let answer = client.call(ApiRequest::get(&path)).await.unwrap();
    let mut values = BTreeMap::new();
    let key = |it: &Value| format!("{} {}", it["kind"], it["key"]);
    for line in answer
        .body
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let line: Value = serde_json::from_slice(line).unwrap();
        match line["changes"].as_array() {
            Some(changes) => {
                for change in changes {
                    values.insert(key(change), change["after"].clone());
                }
            }
            None if line["kind"].is_string() => {
                drop(values.insert(key(&line), line["value"].clone()))
            }
            None => {}
        }
    }
    values
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_is_imported_into_a_partition_while_leaders_crash() {
    let moved = Moved::new(CONSUMERS);
    let mut cluster = Cluster::start(3).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(claim(cluster.client(), is_over.clone()));
    cluster.create_partition("north", &[], &[]).await.unwrap();

    // The importing node crashes: its partial import is refused, with instructions.
    let leader = cluster.leader().await.unwrap();
    let importing = begin(&cluster, leader, "north", &moved.backup());
    let begun = until_begun(&cluster, leader, "north").await;
    cluster.kill_9(leader);
    let broken = ended(importing).await;
    refusal(&broken, 1);
    let next = cluster.leader_other_than(Some(leader)).await.unwrap();
    let refused = refusal(&import(&cluster, "north", &moved.backup()), 1);
    let delete = ["partitions", "delete", "north", "--force"];
    assert!(
        refused.contains(&format!("placementctl {}", delete.join(" "))),
        "{refused}"
    );
    cluster.ctl(&delete);
    cluster.start_node(leader).unwrap();
    cluster.wait_healthy().await.unwrap();
    cluster.create_partition("north", &[], &[]).await.unwrap();
    let north = cluster.admin_of(next).placement("north");
    let created = north
        .call(ApiRequest::get("/traits"))
        .await
        .unwrap()
        .position()
        .index
        .unwrap();

    // The leader crashes, but not the node that imports.
    let leader = cluster.leader().await.unwrap();
    let follower = cluster.followers().await.unwrap()[0];
    let importing = begin(&cluster, follower, "north", &moved.backup());
    let half = until_begun(&cluster, follower, "north").await;
    cluster.kill_9(leader);
    for seen in [begun, half] {
        assert!(seen < CONSUMERS, "the import finished before the crash");
    }
    let printed = stdout(ended(importing).await);
    assert!(
        printed.contains(&format!("content digest of both: {}\n", moved.digest)),
        "{printed}"
    );
    cluster.start_node(leader).unwrap();
    cluster.wait_healthy().await.unwrap();
    is_over.store(true, Ordering::Relaxed);
    assert!(writer.await.unwrap() > 0);
    cluster.assert_equal_states().await;
    let check = cluster.ctl(&["check"]);
    assert!(
        check.contains("more is allocated than the capacity"),
        "{check}"
    );

    // Watchers see exactly the imported content.
    let north = cluster.admin_of(leader).placement("north");
    let seen = values(&north, &format!("&after={}", created.as_str())).await;
    let mut there = values(&north, "").await;
    // Standard names existed before.
    there.retain(|key, _| {
        seen.contains_key(key) || !key.contains("{\"trait\"") && !key.contains("class")
    });
    assert_eq!(seen.len(), there.len());
    assert!(seen == there);

    cluster.ctl(&["partitions", "route", "north", "--prefix", "/north"]);
    let replay = Replay::start(Path::new(&moved.backup()), "default", &[]);
    let restored = format!("http://{}", replay.address);
    let served = format!("http://{}/north", cluster.place(follower).api());
    let differences = compared(&restored, &served);
    assert!(
        differences.starts_with("0 differences in "),
        "{differences}"
    );
    let (restored, served) = (
        Client::new([restored]).unwrap(),
        cluster.client_of(follower).with_prefix("/north"),
    );
    for path in CANDIDATES {
        let ask = async |client: &Client| {
            let answer = client
                .call(ApiRequest::get(path).microversion("1.39"))
                .await;
            answer.unwrap().body
        };
        assert_eq!(ask(&restored).await, ask(&served).await, "{path}");
    }
    // The partition can be exported again.
    let taken = moved.path("taken");
    assert!(back_up(&cluster, Path::new(&taken)).status.success());
    let out = moved.path("out.sql");
    stdout(placementd(&[
        "export",
        "--from",
        &taken,
        "--partition",
        "north",
        "--dialect",
        "sqlite",
        "--out",
        &out,
    ]));
    let class = json!({"name": "CUSTOM_LATER"});
    let put = ApiRequest::post("/resource_classes").json(&class);
    served.call(put).await.unwrap();
    let differences = compared(
        &restored.endpoints()[0].to_string(),
        &format!("{}/north", served.endpoints()[0]),
    );
    assert!(differences.contains("CUSTOM_LATER"), "{differences}");
}

/// Replaces 9 bytes of a backup and corrects the checksums; the digest gets an unknown format.
fn forged(mut backup: Vec<u8>, from: &[u8; 9], to: &[u8; 9]) -> Vec<u8> {
    let mut at = 8;
    while at < backup.len() {
        let length = u32::from_le_bytes(backup[at..at + 4].try_into().unwrap());
        let (head, rest) = backup[at..].split_at_mut(12);
        let body = &mut rest[..length as usize];
        replace(body, b"\xd9\x221.", b"\xd9\x229.");
        replace(body, from, to);
        head[4..].copy_from_slice(&xxh3_64(body).to_le_bytes());
        at += 12 + body.len();
    }
    backup
}

fn replace<const N: usize>(body: &mut [u8], from: &[u8; N], to: &[u8; N]) {
    if let Some(at) = body.windows(N).position(|found| found == from) {
        body[at..at + N].copy_from_slice(to);
    }
}

#[tokio::test]
async fn invalid_imports_are_refused_without_changes() {
    let moved = Moved::new(0);
    let cluster = Cluster::start(1).await.unwrap();
    cluster.create_partition("north", &[], &[]).await.unwrap();

    let whole = fs::read(moved.backup()).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    // Creation time of the first provider, and a time before 1970 (-1).
    let (made, before_1970) = (
        b"\xcf\x00\x06\x61\x3e\x9a\x74\x73\x52",
        b"\xd3\xff\xff\xff\xff\xff\xff\xff\xff",
    );
    let before_1970 = forged(whole.clone(), made, before_1970);
    for (bytes, reason) in [
        (
            &whole[..whole.len() / 2],
            "it is cut off; nothing was changed",
        ),
        (
            &damaged[..],
            "the checksum of a frame does not match; nothing was changed",
        ),
        (
            &before_1970[..],
            "the backup: resource provider a0000000-0000-4000-8000-000000000001 has a time outside the years 1970 to \
             9999; nothing was changed",
        ),
        (
            &b"CREATE TABLE"[..],
            "the file is not a snapshot of placementd; nothing was changed",
        ),
        (
            &[],
            "the file is not a snapshot of placementd; nothing was changed",
        ),
    ] {
        let file = moved.path("bad");
        fs::write(&file, bytes).unwrap();
        let refused = refusal(&import(&cluster, "north", &file), 1);
        assert!(refused.contains(reason), "{refused}");
    }
    let routed = cluster.create_partition("routed", &[], &["/routed"]);
    routed.await.unwrap();
    cluster.create_partition("named", &[], &[]).await.unwrap();
    let named = cluster.admin_of(1).placement("named");
    named
        .call(ApiRequest::put("/traits/CUSTOM_MINE"))
        .await
        .unwrap();
    for (partition, reason) in [
        ("default", "requests are routed to partition 0"),
        ("routed", "requests are routed to partition 2"),
        ("named", "the partition is not empty"),
        ("south", "there is no partition south"),
        ("So uth", "there is no partition So uth"),
    ] {
        let refused = refusal(&import(&cluster, partition, &moved.backup()), 1);
        assert!(refused.contains(reason), "{refused}");
    }
    let printed = stdout(import(&cluster, "north", &moved.backup()));
    assert!(
        printed.contains("is imported into partition north: 7 providers, 5 consumers\n"),
        "{printed}"
    );
    let refused = refusal(&import(&cluster, "north", &moved.backup()), 1);
    assert!(refused.contains("the partition is not empty"), "{refused}");
}
