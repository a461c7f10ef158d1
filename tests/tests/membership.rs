//! Nodes come and go, led by an operator with `placementctl`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Client};
use placement_tests::cluster::Cluster;
use placement_tests::host;
use placement_tests::wait::until;
use serde_json::Value;

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

#[tokio::test]
async fn a_leader_that_is_demoted_leads_no_longer_and_gets_its_vote_back() {
    let cluster = Cluster::start(3).await.unwrap();
    let leader = cluster.leader().await.unwrap();
    let id = leader.to_string();
    cluster.ctl(&["members", "demote", &id]);
    let json = status(&cluster);
    assert_eq!(
        member(&json, leader).unwrap()["role"],
        "learner",
        "{json:#}"
    );
    assert_ne!(cluster.leader().await.unwrap(), leader);
    cluster.ctl(&["members", "promote", &id]);
    let json = status(&cluster);
    assert_ne!(
        member(&json, leader).unwrap()["role"],
        "learner",
        "{json:#}"
    );
}

#[tokio::test]
async fn a_removed_node_that_goes_on_running_gives_no_orders() {
    // No node of a busy machine misses a heartbeat for so long.
    let cluster = (Cluster::start_with(3, "[raft]\nround_trip_ms = 400\n").await).unwrap();
    cluster.ctl(&["members", "remove", "3", "--yes"]);
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
        let admin = cluster.admin_of(id);
        let is_ready = async || admin.status().await.is_ok_and(|status| status.ready);
        until(&format!("node {id} is not drained"), is_ready).await;
        let status = admin.status().await.unwrap();
        assert_eq!(status.members.len(), 2, "{status:?}");
    }
    // Nor does it take the leadership away by votes.
    let before = status(&cluster);
    tokio::time::sleep(Duration::from_secs(12)).await;
    let after = status(&cluster);
    assert_eq!(
        (&before["leader"], &before["term"]),
        (&after["leader"], &after["term"])
    );
}

/// So long that nothing but a hand-over can explain a new leader within less.
const ELECTION_MIN: Duration = Duration::from_secs(12);

#[tokio::test]
async fn leadership_is_handed_over_on_request_and_when_the_leader_stops() {
    let config = "[raft]\nround_trip_ms = 2000\n";
    let mut cluster = Cluster::start_with(3, config).await.unwrap();
    let client = cluster.client();
    let host = host::with_processors(&client).await;
    let old = cluster.leader().await.unwrap();
    let new = old % 3 + 1;
    cluster.ctl(&["transfer-leader", "--to", &new.to_string()]);
    cluster.until_leader(new).await;
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
            host::claim(&client, host).await.unwrap();
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
