//! Nodes come and go, led by an operator with `placementctl`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Claim, Client, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use serde_json::Value;
use uuid::Uuid;

/// Runs `placementctl`, which must succeed, and returns what it printed.
fn ctl(cluster: &Cluster, arguments: &[&str]) -> String {
    let output = cluster.placementctl(arguments).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "placementctl {arguments:?}: {said}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The status, whatever its exit code says of the cluster.
fn status(cluster: &Cluster) -> Value {
    let output = cluster.placementctl(&["status", "--output", "json"]);
    serde_json::from_slice(&output.unwrap().stdout).unwrap()
}

fn member(status: &Value, id: u64) -> Option<&Value> {
    status["members"]
        .as_array()?
        .iter()
        .find(|member| member["id"] == id)
}

async fn write(client: &Client, host: Uuid, count: u64) {
    for _ in 0..count {
        let claim = Claim::by("project", "user").and(host, &[("VCPU", 1)]);
        client
            .put_allocations(Uuid::new_v4(), &claim)
            .await
            .unwrap();
    }
}

async fn host(client: &Client) -> Uuid {
    let uuid = Uuid::new_v4();
    client
        .create_provider(&NewProvider::named("host").uuid(uuid))
        .await
        .unwrap();
    client
        .replace_inventories(uuid, 0, [("VCPU", Inventory::of(1_000_000))])
        .await
        .unwrap();
    uuid
}

async fn used(client: &Client, host: Uuid) -> u64 {
    client.provider_usages(host).await.unwrap().usages["VCPU"]
}

#[tokio::test]
async fn status_is_a_table_for_people_and_json_for_programs() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let leader = cluster.leader().await.unwrap();
    let json = status(&cluster);
    assert_eq!(json["leader"], leader);
    assert_eq!(json["members"].as_array().unwrap().len(), 3);
    let line = member(&json, leader).unwrap();
    assert_eq!(line["role"], "leader");
    assert_eq!(line["lag"], 0);
    let table = ctl(&cluster, &["status"]);
    assert!(
        table.contains("LAG") && table.contains("follower"),
        "{table}"
    );
    cluster.kill_9(leader % 3 + 1);
    let output = cluster.placementctl(&["status"]).unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("unreachable"), "{table}");
}

#[tokio::test]
async fn a_fresh_node_joins_is_promoted_and_another_one_leaves() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    let host = host(&client).await;
    write(&client, host, 20).await;

    let place = cluster.add_place();
    cluster.start_node(4).unwrap();
    // It must listen before it can be invited.
    let door = cluster.admin_of(4);
    assert_eq!(door.status().await.unwrap().cluster_id, None);
    ctl(&cluster, &["members", "add", "4", "--peer", &place.peer()]);
    assert_eq!(member(&status(&cluster), 4).unwrap()["role"], "learner");
    ctl(&cluster, &["members", "promote", "4"]);
    cluster.wait_ready(4).await.unwrap();
    assert_eq!(used(&cluster.client_of(4), host).await, 20);

    let leader = cluster.leader().await.unwrap();
    let gone = if leader == 2 { 3 } else { 2 };
    ctl(&cluster, &["members", "remove", &gone.to_string()]);
    let json = status(&cluster);
    assert!(member(&json, gone).is_none(), "{json:#}");
    cluster.kill_9(gone);
    write(&client, host, 5).await;
    assert_eq!(used(&cluster.client_of(4), host).await, 25);

    // A number is never used twice.
    let again =
        cluster.placementctl(&["members", "add", &gone.to_string(), "--peer", &place.peer()]);
    assert!(!again.unwrap().status.success());
}

#[tokio::test]
async fn a_leader_that_is_demoted_leads_no_longer_and_gets_its_vote_back() {
    let cluster = Cluster::start(3).await.unwrap();
    let leader = cluster.leader().await.unwrap();
    let id = leader.to_string();
    ctl(&cluster, &["members", "demote", &id]);
    let json = status(&cluster);
    assert_eq!(
        member(&json, leader).unwrap()["role"],
        "learner",
        "{json:#}"
    );
    assert_ne!(cluster.leader().await.unwrap(), leader);
    ctl(&cluster, &["members", "promote", &id]);
    let json = status(&cluster);
    assert_ne!(
        member(&json, leader).unwrap()["role"],
        "learner",
        "{json:#}"
    );
}

#[tokio::test]
async fn a_removed_node_that_goes_on_running_gives_no_orders() {
    let cluster = Cluster::start(3).await.unwrap();
    ctl(&cluster, &["members", "remove", "3", "--yes"]);
    let of_node_3 = Client::new([cluster.place(3).admin()]).unwrap();
    let orders = [
        ("POST", "/v1/nodes/1/drain"),
        ("POST", "/v1/nodes/2/drain"),
        ("POST", "/v1/leader"),
        ("DELETE", "/v1/members/2"),
    ];
    for (method, path) in orders {
        let order = ApiRequest::new(method.parse().unwrap(), path);
        let refused = of_node_3.request_once(order).await.unwrap();
        let words = String::from_utf8_lossy(&refused.body).into_owned();
        assert!(refused.status.as_u16() >= 400, "{method} {path}: {words}");
        assert!(
            words.contains("node 3 was removed from this cluster")
                || words.contains("was removed from its cluster"),
            "{method} {path}: {words}"
        );
    }
    for id in [1, 2] {
        let status = cluster.admin_of(id).status().await.unwrap();
        assert!(status.ready, "node {id} is drained: {status:?}");
        assert_eq!(status.members.len(), 2, "{status:?}");
    }
    // Nor does it take the leadership away by votes.
    let before = status(&cluster);
    tokio::time::sleep(Duration::from_secs(6)).await;
    let after = status(&cluster);
    assert_eq!(
        (&before["leader"], &before["term"]),
        (&after["leader"], &after["term"])
    );
}

/// So long that nothing but a hand-over can explain a new leader within less.
const ELECTION_MIN: Duration = Duration::from_secs(20);

#[tokio::test]
async fn leadership_is_handed_over_on_request_and_when_the_leader_stops() {
    let election_min_ms = ELECTION_MIN.as_millis();
    let config = format!(
        "[raft]\nelection_min_ms = {election_min_ms}\nelection_max_ms = {}\n",
        2 * election_min_ms
    );
    let mut cluster = Cluster::start_with(3, &config).await.unwrap();
    let client = cluster.client();
    let host = host(&client).await;
    let old = cluster.leader().await.unwrap();
    let new = old % 3 + 1;
    ctl(&cluster, &["transfer-leader", "--to", &new.to_string()]);
    let asked = Instant::now();
    while cluster.leader().await.unwrap() != new {
        assert!(
            asked.elapsed() < Duration::from_secs(10),
            "{:#}",
            status(&cluster)
        );
    }
    // The leader stops while a client writes through another node: its successor leads long before
    // anybody could have missed its heartbeats.
    let client = cluster.client_of(old);
    let term = status(&cluster)["term"].as_u64().unwrap();
    let stopped = AtomicBool::new(false);
    let writes = async {
        let mut longest = Duration::ZERO;
        // Some more after the end of the old leader.
        let mut more = 5;
        while more > 0 {
            let asked = Instant::now();
            write(&client, host, 1).await;
            longest = longest.max(asked.elapsed());
            more -= u64::from(stopped.load(Ordering::Relaxed));
        }
        longest
    };
    let stop = async {
        cluster.stop_node(new).await.unwrap();
        stopped.store(true, Ordering::Relaxed);
    };
    let (longest, ()) = tokio::join!(writes, stop);
    assert!(longest < ELECTION_MIN, "a write waited {longest:?}");
    let json = status(&cluster);
    assert_ne!(json["leader"], new);
    assert!(json["term"].as_u64().unwrap() > term, "{json:#}");
}

#[tokio::test]
async fn whoever_missed_more_than_the_log_keeps_is_sent_a_snapshot() {
    let config = "[raft]\nsnapshot_after = 50\nlog_keep = 10\n";
    let mut cluster = Cluster::start_with(3, config).await.unwrap();
    let client = cluster.client();
    let host = host(&client).await;
    write(&client, host, 20).await;
    let away = cluster.followers().await.unwrap()[0];
    cluster.stop_node(away).await.unwrap();
    write(&client, host, 150).await;
    for id in cluster.ids() {
        if id != away {
            cluster.admin_of(id).compact().await.unwrap();
        }
    }
    let json = status(&cluster);
    let leader = json["leader"].as_u64().unwrap();
    assert!(
        member(&json, leader).unwrap()["snapshot"].as_u64().unwrap() > 100,
        "{json:#}"
    );

    cluster.start_node(away).unwrap();
    cluster.wait_ready(away).await.unwrap();
    assert_eq!(used(&cluster.client_of(away), host).await, 170);

    // A node that lost its disk comes back under a new number.
    cluster.kill_9(away);
    std::fs::remove_dir_all(cluster.data_dir(away)).unwrap();
    ctl(&cluster, &["members", "remove", &away.to_string(), "--yes"]);
    let place = cluster.add_place();
    cluster.start_node(place.id).unwrap();
    cluster.admin_of(place.id).status().await.unwrap();
    ctl(
        &cluster,
        &[
            "members",
            "add",
            &place.id.to_string(),
            "--peer",
            &place.peer(),
        ],
    );
    ctl(&cluster, &["members", "promote", &place.id.to_string()]);
    cluster.wait_ready(place.id).await.unwrap();
    assert_eq!(used(&cluster.client_of(place.id), host).await, 170);
}
