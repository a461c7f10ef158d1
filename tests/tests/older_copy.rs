//! A data directory that is restored from an older copy lacks writes that its node has
//! acknowledged.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use placement_tests::cluster::Cluster;
use placement_tests::host::create;
use placement_tests::private;
use placement_tests::wait::{PATIENCE, until};

/// The line of a node whose start the cluster remembers.
const RECORDED: &str = "event=\"start-recorded\"";

/// Copies the data directory of a stopped node, starts the node, writes through the node `writer`,
/// stops the first node and restores the copy.
async fn put_back(cluster: &mut Cluster, id: u64, writer: u64) {
    let data = cluster.data_dir(id);
    let older: PathBuf = data.with_extension("older");
    cluster.stop_node(id).await.unwrap();
    private::copy(&data, &older).unwrap();
    let before = count(cluster, id, RECORDED);
    cluster.start_node(id).unwrap();
    cluster.wait_healthy().await.unwrap();
    until_logged_again(cluster, id, RECORDED, before).await;
    create(&cluster.client_of(writer), "acknowledged").await;
    cluster.stop_node(id).await.unwrap();
    fs::remove_dir_all(&data).unwrap();
    fs::rename(older, data).unwrap();
}

fn count(cluster: &Cluster, id: u64, words: &str) -> usize {
    cluster.log(id, 1000).matches(words).count()
}

/// Waits until a node's log has these words more than `before` times.
async fn until_logged_again(cluster: &Cluster, id: u64, words: &str, before: usize) {
    until(words, async || count(cluster, id, words) > before).await;
}

#[tokio::test]
async fn older_copy_is_quarantined_once_it_reaches_the_other_nodes() {
    let mut cluster = Cluster::start(3).await.unwrap();
    put_back(&mut cluster, 2, 2).await;
    for id in [1, 3] {
        cluster.stop_node(id).await.unwrap();
    }
    let before = count(&cluster, 2, "replication runs");
    cluster.start_node(2).unwrap();
    until_logged_again(&cluster, 2, "replication runs", before).await;
    for id in [1, 3] {
        cluster.start_node(id).unwrap();
    }
    cluster.until_logged(&[2], "is an older copy").await;
    // The other nodes continue without it and have the acknowledged write.
    create(&cluster.client_of(1), "afterwards").await;
    let other = cluster.client_of(3);
    let kept = other.providers(&[("name", "acknowledged")]).await.unwrap();
    assert_eq!(kept.len(), 1);
    let older = ["is an older copy"];
    cluster.until_shown(&["status"], 1, &older).await;
    // Failed calls by the other nodes are not logged each time.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let lines = count(&cluster, 2, "failed to send RaftMsg");
    assert!(lines < 10, "{lines} lines");
    assert_eq!(count(&cluster, 2, "event=\"quarantined\""), 1);
    // The node refuses to start again.
    cluster.kill_9(2);
    cluster.start_node(2).unwrap();
    let ended = cluster.process(2).wait(PATIENCE).unwrap();
    assert!(!ended.success(), "{ended}");
    let log = cluster.log(2, 5);
    assert!(log.contains("is quarantined"), "{log}");
}

#[tokio::test]
async fn older_copy_of_a_node_that_wrote_nothing_is_quarantined() {
    let mut cluster = Cluster::start(3).await.unwrap();
    put_back(&mut cluster, 2, 1).await;
    cluster.start_node(2).unwrap();
    cluster.until_logged(&[2], "is an older copy").await;
    for id in [1, 3] {
        create(&cluster.client_of(id), &format!("afterwards-{id}")).await;
    }
}
