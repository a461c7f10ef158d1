//! A data directory that is put back from an older copy has forgotten what its node has acknowledged.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use placement_client::{Client, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::layout::NodePlace;
use placement_tests::node_process::{NodeProcess, StartOptions, log_tail};
use placement_tests::private;
use uuid::Uuid;

const LIMIT: Duration = Duration::from_secs(30);

async fn create(client: &Client, name: &str) {
    let client = client.clone().with_patience(Duration::from_secs(60));
    client
        .create_provider(&NewProvider::named(name).uuid(Uuid::new_v4()))
        .await
        .unwrap();
}

/// Copies the data directory of a stopped node, starts the node, writes through it, stops it, and
/// puts the copy back.
async fn put_back(cluster: &mut Cluster, id: u64) {
    let data = cluster.data_dir(id);
    let older: PathBuf = data.with_extension("older");
    cluster.stop_node(id).await.unwrap();
    private::copy(&data, &older).unwrap();
    cluster.start_node(id).unwrap();
    cluster.wait_healthy().await.unwrap();
    create(&cluster.client_of(id), "acknowledged").await;
    cluster.stop_node(id).await.unwrap();
    fs::remove_dir_all(&data).unwrap();
    fs::rename(older, data).unwrap();
}

fn said(cluster: &Cluster, id: u64, words: &str) -> usize {
    cluster.log(id, 1000).matches(words).count()
}

/// Waits until a node has said these words once more than `before`.
async fn wait_for_words(cluster: &Cluster, id: u64, words: &str, before: usize) {
    let started = Instant::now();
    while said(cluster, id, words) <= before {
        let log = cluster.log(id, 30);
        assert!(started.elapsed() < LIMIT, "no {words:?} in:\n{log}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn an_older_copy_is_refused_before_it_takes_part_if_another_node_answers() {
    let mut cluster = Cluster::start(3).await.unwrap();
    put_back(&mut cluster, 2).await;
    for _ in 0..2 {
        cluster.start_node(2).unwrap();
        let ended = cluster.process(2).wait(LIMIT).unwrap();
        assert!(!ended.success(), "{ended}");
        let said = cluster.log(2, 5);
        assert!(said.contains("by its own count"), "{said}");
        assert!(said.contains("is an older copy"), "{said}");
        assert!(said.contains("join anew"), "{said}");
    }
    create(&cluster.client_of(1), "afterwards").await;
}

#[tokio::test]
async fn an_older_copy_that_starts_alone_leaves_once_it_hears_of_itself() {
    let mut cluster = Cluster::start(3).await.unwrap();
    put_back(&mut cluster, 2).await;
    for id in [1, 3] {
        cluster.stop_node(id).await.unwrap();
    }
    let before = said(&cluster, 2, "replication runs");
    cluster.start_node(2).unwrap();
    wait_for_words(&cluster, 2, "replication runs", before).await;
    for id in [1, 3] {
        cluster.start_node(id).unwrap();
    }
    wait_for_words(&cluster, 2, "is an older copy", 0).await;
    // The others go on without it, with what was acknowledged.
    create(&cluster.client_of(1), "afterwards").await;
    let other = cluster.client_of(3);
    let kept = other.providers(&[("name", "acknowledged")]).await.unwrap();
    assert_eq!(kept.len(), 1);
    let said = cluster.placementctl(&["status"]).unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("is an older copy"), "{said}");
    // Nor does it come back.
    cluster.kill_9(2);
    cluster.start_node(2).unwrap();
    let ended = cluster.process(2).wait(LIMIT).unwrap();
    assert!(!ended.success(), "{ended}");
    let said = cluster.log(2, 5);
    assert!(said.contains("takes no part any more"), "{said}");
}

/// Rebuilds a node from the others: on its machine, at its addresses, under a new number.
async fn rebuild(cluster: &mut Cluster, old: u64, new: u64) {
    let place = NodePlace {
        id: new,
        data_dir: cluster.directory().join("rebuilt"),
        log: cluster.directory().join("rebuilt.log"),
        ..cluster.place(old).clone()
    };
    let options = StartOptions {
        initial_members: String::new(),
        ..cluster.options().clone()
    };
    let _process = NodeProcess::start(&place, &options).unwrap();
    let replace = |cluster: &Cluster| {
        let (old, new) = (old.to_string(), new.to_string());
        let peer = place.peer();
        let words = ["members", "replace", &old, "--by", &new, "--peer", &peer];
        cluster.placementctl(&words).unwrap()
    };
    let started = Instant::now();
    let output = loop {
        let output = replace(cluster);
        // It may not listen yet.
        if output.status.success() || started.elapsed() > LIMIT {
            break output;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success(),
        "{said}\n{}",
        log_tail(&place.log, 30)
    );
    let status = cluster.placementctl(&["status"]).unwrap();
    let said = String::from_utf8(status.stdout).unwrap();
    assert!(status.status.success(), "{said}");
    assert!(said.contains("healthy: 3 of 3, can lose 1"), "{said}");
    // Once more changes nothing.
    assert!(replace(cluster).status.success());
    // With the node's vote, and without another one.
    cluster.stop_node(3).await.unwrap();
    let client = Client::new([place.api_url()]).unwrap();
    create(&client, "by the rebuilt one").await;
    let found = client.providers(&[("name", "four")]).await.unwrap();
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn a_node_whose_log_is_damaged_is_refused_and_rebuilt_from_the_others() {
    let mut cluster = Cluster::start(3).await.unwrap();
    for name in ["one", "two", "three", "four"] {
        create(&cluster.client_of(2), name).await;
    }
    cluster.kill_9(2);
    let files = fs::read_dir(cluster.data_dir(2).join("log")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let logs = paths.filter(|path| path.extension().is_some_and(|it| it == "log"));
    let newest = logs.max().unwrap();
    let mut bytes = fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(newest, bytes).unwrap();

    cluster.start_node(2).unwrap();
    let ended = cluster.process(2).wait(LIMIT).unwrap();
    assert!(!ended.success(), "{ended}");
    let said = cluster.log(2, 5);
    assert!(said.contains("has lost what was on disk"), "{said}");
    assert!(said.contains("members replace"), "{said}");
    rebuild(&mut cluster, 2, 4).await;
}

#[tokio::test]
async fn a_lost_count_of_starts_is_refused_in_words() {
    let mut cluster = Cluster::start(3).await.unwrap();
    cluster.stop_node(3).await.unwrap();
    let boot = cluster.data_dir(3).join("boot");
    let aside = boot.with_extension("aside");
    fs::rename(&boot, &aside).unwrap();
    cluster.start_node(3).unwrap();
    let ended = cluster.process(3).wait(LIMIT).unwrap();
    assert!(!ended.success(), "{ended}");
    let said = cluster.log(3, 5);
    assert!(said.contains("has started 0 times"), "{said}");
    fs::rename(&aside, &boot).unwrap();
    cluster.start_node(3).unwrap();
    cluster.wait_ready(3).await.unwrap();
}
