//! What `placementctl` tells an operator, by words and by exit code.

use std::process::{Command, Output};
use std::time::Duration;

use placement_client::{ApiRequest, NodeRole};
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::node_process::{NodeProcess, StartOptions};
use placement_tests::wait::{until, until_ok};
use serde_json::json;

/// What a command said, and how it ended.
fn ctl(cluster: &Cluster, arguments: &[&str]) -> (i32, String, String) {
    let output = cluster.placementctl(arguments).unwrap();
    words(&output)
}

fn words(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let code = output.status.code().expect("it is not killed");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Asks for the status until it is what is expected: nodes need a moment to notice.
async fn status_becomes(cluster: &Cluster, code: i32, summary: &str) -> String {
    until_ok(summary, async || {
        let (found, table, said) = ctl(cluster, &["status"]);
        if found == code && table.contains(summary) {
            return Ok(table);
        }
        Err((found, table, said))
    })
    .await
}

#[tokio::test]
async fn status_says_how_many_more_nodes_may_be_lost_and_its_exit_code_says_it_to_scripts() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let table = status_becomes(&cluster, 0, "healthy: 3 of 3, can lose 1").await;
    for word in ["VERSION", env!("CARGO_PKG_VERSION"), "READY", "DISK FREE"] {
        assert!(table.contains(word), "{word} is missing:\n{table}");
    }
    let report = cluster.statuses().await.remove(0);
    assert!(report.ready && report.not_ready.is_none(), "{report:?}");
    assert!(report.disk_used_bytes.unwrap() > 0, "{report:?}");
    assert!(report.disk_free_bytes.unwrap() > 0, "{report:?}");

    let leader = cluster.leader().await.unwrap();
    cluster.kill_9(leader);
    let table = status_becomes(&cluster, 1, "degraded: 2 of 3, can lose 0").await;
    assert!(
        table.contains(&format!("node {leader} does not answer")),
        "{table}"
    );
    let (code, found, _) = ctl(&cluster, &["check"]);
    let unchecked = format!("node {leader} could not be checked");
    assert!(code == 2 && found.contains(&unchecked), "{code}: {found}");
    let next = cluster.leader_other_than(Some(leader)).await.unwrap();
    cluster.kill_9(next);
    status_becomes(&cluster, 2, "no quorum: 0 of 3, 2 needed").await;
    let (code, json, _) = ctl(&cluster, &["status", "--output", "json"]);
    assert_eq!(code, 2);
    assert!(json.contains("\"condition\": \"no_quorum\""), "{json}");

    for id in cluster.ids() {
        cluster.kill_9(id);
    }
    let (code, _, said) = ctl(&cluster, &["status", "--timeout", "1"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("no node answered"), "{said}");
}

#[tokio::test]
async fn leadership_goes_only_to_a_node_that_is_heard_and_the_answer_says_who_leads() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let leader = cluster.leader().await.unwrap();
    let dead = leader % 3 + 1;
    let alive = dead % 3 + 1;
    cluster.kill_9(dead);
    // What was heard a moment ago counts as heard.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (code, _, said) = ctl(&cluster, &["transfer-leader", "--to", &dead.to_string()]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains(&format!("node {dead} has not answered lately"))
            && said.contains(&format!("node {leader} goes on leading")),
        "{said}"
    );
    assert_eq!(cluster.leader().await.unwrap(), leader);

    let (code, done, said) = ctl(&cluster, &["transfer-leader", "--to", &alive.to_string()]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(done, format!("node {alive} leads\n"));
}

#[tokio::test]
async fn a_removal_that_leaves_no_spare_is_asked_about_and_the_removed_node_knows_its_fate() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let gone = cluster.followers().await.unwrap()[0];
    let remove = ["members", "remove", &gone.to_string()];
    let (code, _, said) = ctl(&cluster, &remove);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("survives no further loss") && said.contains("--yes"),
        "{said}"
    );
    status_becomes(&cluster, 0, "healthy: 3 of 3").await;

    let (code, done, said) = ctl(&cluster, &[&remove[..], &["--yes"]].concat());
    assert_eq!(code, 0, "{said}");
    assert!(done.contains("survives no further loss now"), "{done}");

    for restarted in [false, true] {
        if restarted {
            cluster.stop_node(gone).await.unwrap();
            cluster.start_node(gone).unwrap();
        }
        let admin = cluster.admin_of(gone);
        until("the removal", async || {
            admin.status().await.unwrap().role == NodeRole::Removed
        })
        .await;
        let readyz = cluster
            .client_of(gone)
            .request_once(ApiRequest::get("/readyz"))
            .await
            .unwrap();
        assert_eq!(readyz.status.as_u16(), 503);
        let why = String::from_utf8_lossy(&readyz.body).into_owned();
        assert!(why.contains("was removed from its cluster"), "{why}");
        let log = cluster.log(gone, 200);
        assert!(log.contains("was removed from its cluster"), "{log}");
    }

    // The removed node, asked first, reports the cluster as it is now.
    let output = Command::new(binaries::placementctl().unwrap())
        .args(["--endpoint", &cluster.place(gone).admin(), "status"])
        .output()
        .unwrap();
    let (code, table, _) = words(&output);
    assert_eq!(code, 1, "{table}");
    assert!(table.contains("degraded: 2 of 2, can lose 0"), "{table}");
    assert!(
        table.contains(&format!("node {gone} was removed")),
        "{table}"
    );
}

#[tokio::test]
async fn nodes_without_a_list_wait_and_are_formed_into_a_cluster_by_init() {
    let cluster = Cluster::prepare(3, "").unwrap();
    let options = StartOptions {
        initial_members: String::new(),
        ..cluster.options().clone()
    };
    let mut processes = Vec::new();
    let mut init = vec!["init".to_owned()];
    for id in cluster.ids() {
        let place = cluster.place(id);
        processes.push(NodeProcess::start(place, &options).unwrap());
        init.push("--member".to_owned());
        init.push(format!("{id}={}", place.peer()));
    }
    for id in cluster.ids() {
        let report = cluster.admin_of(id).status().await.unwrap();
        assert_eq!(report.role, NodeRole::Waiting);
    }
    let (code, table, _) = ctl(&cluster, &["status"]);
    assert_eq!(code, 2, "{table}");
    assert!(table.contains("there is no cluster yet"), "{table}");
    let waits = cluster.client_of(1);
    let get = async |path| waits.request_once(ApiRequest::get(path)).await.unwrap();
    assert_eq!(get("/readyz").await.status.as_u16(), 503);
    assert_eq!(get("/livez").await.status.as_u16(), 200);
    let write = ApiRequest::post("/resource_providers").json(&json!({ "name": "early" }));
    let refused = waits.request_once(write).await.unwrap();
    let why = String::from_utf8_lossy(&refused.body);
    assert!(why.contains("does not belong to a cluster"), "{why}");
    // Without a history there is no place in one.
    let answer = get("/").await;
    assert_eq!(answer.header("placement-node"), Some("1"));
    assert_eq!(answer.header("placement-index"), None);

    let init: Vec<&str> = init.iter().map(String::as_str).collect();
    let (code, done, said) = ctl(&cluster, &init);
    assert_eq!(code, 0, "{said}");
    assert!(done.contains("its members are 1, 2, 3"), "{done}");
    status_becomes(&cluster, 0, "healthy: 3 of 3, can lose 1").await;
    let (code, _, said) = ctl(&cluster, &init);
    assert_eq!(code, 1);
    assert!(said.contains("formed cluster already"), "{said}");
}

#[test]
fn ordinary_errors_are_one_line_whatever_rust_backtrace_says() {
    let mut placementctl = Command::new(binaries::placementctl().unwrap());
    placementctl.args(["--endpoint", "127.0.0.1:1", "--timeout", "0.1"]);
    placementctl.args(["transfer-leader"]);
    let mut placementd = Command::new(binaries::placementd().unwrap());
    placementd.args(["--config", "/nowhere/placementd.toml"]);
    for mut command in [placementctl, placementd] {
        let output = command.env("RUST_BACKTRACE", "full").output().unwrap();
        let (code, _, said) = words(&output);
        assert_eq!(code, 1, "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("placementctl: ") || said.starts_with("placementd: "));
    }
}
