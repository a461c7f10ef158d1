//! A majority is lost for good: one survivor is recovered alone, and the old nodes are refused.

use std::fs;
use std::process::{Command, Output};

use placement_client::{ApiRequest, Client};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::host::create;
use placement_tests::wait::PATIENCE;
use serde_json::Value;

const CONFIRM: &str = "--yes-the-others-are-gone-for-ever";

fn recover(cluster: &Cluster, id: u64, further: &[&str]) -> Output {
    Command::new(binaries::placementd().unwrap())
        .args(["recover", "--node-id", &id.to_string(), "--data-dir"])
        .arg(cluster.data_dir(id))
        .args(further)
        .output()
        .unwrap()
}

fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Term and index of the last entry of a stopped node.
fn last(cluster: &Cluster, id: u64) -> (u64, u64) {
    let output = Command::new(binaries::placementd().unwrap())
        .args(["inspect", "--json", "--data-dir"])
        .arg(cluster.data_dir(id))
        .output()
        .unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let last = &found["log"]["last"];
    (
        last["term"].as_u64().unwrap(),
        last["index"].as_u64().unwrap(),
    )
}

async fn has(client: &Client, name: &str) -> bool {
    !client
        .providers(&[("name", name)])
        .await
        .unwrap()
        .is_empty()
}

#[tokio::test]
async fn recovered_survivor_refuses_nodes_of_the_old_cluster() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    for name in ["one", "two", "three"] {
        create(&client, name).await;
    }
    let token = client
        .request(ApiRequest::get("/resource_providers"))
        .await
        .unwrap()
        .headers["placement-index"]
        .to_str()
        .unwrap()
        .to_owned();
    cluster.assert_equal_states().await;

    let reason = refusal(&recover(&cluster, 3, &[CONFIRM]));
    assert!(reason.contains("in use by another placementd"), "{reason}");
    // The leader crashes first, so that the others have voted since.
    let leader = cluster.leader().await.unwrap();
    let status = cluster.admin_of(1).status().await.unwrap();
    let old_cluster = status.cluster_id.unwrap();
    cluster.kill_9(leader);
    for id in cluster.ids() {
        cluster.kill_9(id);
    }
    let survivor = (cluster.ids().into_iter())
        .filter(|id| *id != leader)
        .max_by_key(|id| last(&cluster, *id))
        .unwrap();
    let ghost = cluster
        .ids()
        .into_iter()
        .find(|id| ![leader, survivor].contains(id))
        .unwrap();
    fs::remove_dir_all(cluster.data_dir(leader)).unwrap();

    let output = recover(&cluster, survivor, &[]);
    assert!(refusal(&output).contains("nothing was changed"));
    let report = String::from_utf8(output.stdout).unwrap();
    for words in ["Kept for certain", "Lost:", "Must be true:", "two clusters"] {
        assert!(report.contains(words), "{words:?} is not in {report}");
    }
    let output = recover(&cluster, survivor, &[CONFIRM]);
    assert!(output.status.success(), "{output:?}");
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(
        report.contains("is now the only voter of cluster"),
        "{report}"
    );
    let reason = refusal(&recover(&cluster, survivor, &[CONFIRM]));
    assert!(
        reason.contains("is the only voter of its cluster already"),
        "{reason}"
    );

    cluster.start_node(survivor).unwrap();
    cluster.wait_ready(survivor).await.unwrap();
    let alone = cluster.client_of(survivor);
    for name in ["one", "two", "three"] {
        assert!(has(&alone, name).await, "{name} is lost");
    }
    create(&alone, "four").await;
    let recovered = "an operator has recovered this node alone";
    cluster.until_logged(&[survivor], recovered).await;
    let stale = ApiRequest::get("/resource_providers")
        .header("placement-consistency", "session")
        .header("placement-min-index", &token);
    let refused = alone.request_once(stale).await.unwrap();
    assert_eq!(refused.status.as_u16(), 412);
    let new_cluster = cluster
        .admin_of(survivor)
        .status()
        .await
        .unwrap()
        .cluster_id;
    assert_ne!(new_cluster.as_ref(), Some(&old_cluster));

    // A node of the old cluster returns. It finds the survivor among its initial members and does
    // not start.
    cluster.start_node(ghost).unwrap();
    let ended = cluster.process(ghost).wait(PATIENCE).unwrap();
    assert!(!ended.success(), "{ended}");
    let log = cluster.log(ghost, 20);
    assert!(
        log.contains(&format!("belongs to cluster {old_cluster}")),
        "{log}"
    );
    // Without initial members it starts and is refused.
    let list = std::mem::take(&mut cluster.options_mut().initial_members);
    cluster.start_node(ghost).unwrap();
    let words = format!("another cluster than node {ghost}, whose is {old_cluster}");
    cluster.until_logged(&[ghost], &words).await;
    // The survivor starts even if its configuration lists that node and the node is running.
    cluster.options_mut().initial_members = list;
    cluster.stop_node(survivor).await.unwrap();
    cluster.start_node(survivor).unwrap();
    cluster.wait_ready(survivor).await.unwrap();
    cluster.kill_9(ghost);

    for id in [4, 5] {
        cluster.add_place();
        cluster.admit(id).await.unwrap();
        cluster.start_node(id).unwrap();
        cluster.wait_ready(id).await.unwrap();
        (cluster.ctl_in_time(&["members", "promote", &id.to_string()])).await;
        cluster.wait_ready(id).await.unwrap();
        for name in ["one", "two", "three", "four"] {
            assert!(has(&cluster.client_of(id), name).await, "{name} is lost");
        }
    }
    cluster.kill_9(survivor);
    create(&cluster.client_of(4), "five").await;
    assert!(has(&cluster.client_of(5), "five").await);
}
