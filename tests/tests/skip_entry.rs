//! An entry is skipped by hand, on all nodes, while all of them are stopped.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use placement_client::NewProvider;
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use serde_json::Value;
use uuid::Uuid;

/// Runs `placementd skip-entry` for a node.
fn skip(cluster: &Cluster, id: u64, index: u64, term: u64, further: &[&str]) -> Output {
    let place = cluster.place(id);
    Command::new(binaries::placementd().unwrap())
        .args(["skip-entry", "--node-id", &id.to_string(), "--data-dir"])
        .arg(&place.data_dir)
        .args(["--index", &index.to_string(), "--term", &term.to_string()])
        .args(further)
        .output()
        .unwrap()
}

fn refusal(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn a_skipped_entry_is_gone_on_all_nodes_and_leaves_a_trace() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client().with_patience(Duration::from_secs(60));
    for name in ["before", "poison", "after"] {
        let provider = NewProvider::named(name).uuid(Uuid::new_v4());
        client.create_provider(&provider).await.unwrap();
    }
    let status = cluster
        .placementctl(&["status", "--output", "json"])
        .unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let term = status["term"].as_u64().unwrap();
    let member = &status["members"][0];
    // The last two writes are the last two entries.
    let index = member["last_log"].as_u64().unwrap() - 1;

    let said = refusal(&skip(&cluster, 2, index, term, &["--i-understand"]));
    assert!(said.contains("in use by another placementd"), "{said}");
    for id in cluster.ids() {
        cluster.kill_9(id);
    }
    let said = refusal(&skip(&cluster, 2, index, term, &[]));
    assert!(said.contains("on all nodes before any of them"), "{said}");
    let said = refusal(&skip(&cluster, 2, index, term + 1, &["--i-understand"]));
    assert!(said.contains("not of term"), "{said}");
    let said = refusal(&skip(&cluster, 2, index + 50, term, &["--i-understand"]));
    assert!(said.contains("has no entry"), "{said}");

    for id in cluster.ids() {
        let output = skip(&cluster, id, index, term, &["--i-understand"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(told.contains("CreateProvider"), "{told}");
        assert!(told.contains("the same on every other node"), "{told}");
        let said = refusal(&skip(&cluster, id, index, term, &["--i-understand"]));
        assert!(said.contains("blank already"), "{said}");
    }
    for id in cluster.ids() {
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    assert!(cluster.has_provider("before").await);
    assert!(!cluster.has_provider("poison").await);
    assert!(cluster.has_provider("after").await);
    cluster.assert_equal_states().await;
    for id in cluster.ids() {
        let trace = fs::read_to_string(cluster.data_dir(id).join("skipped")).unwrap();
        assert!(trace.contains("CreateProvider"), "{trace}");
        let log = cluster.log(id, 100);
        assert!(log.contains("has had an entry of the log skipped"), "{log}");
    }
}
