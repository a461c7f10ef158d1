//! Membership changes and leadership transfers with `placementctl`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Client};
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::host;
use placement_tests::wait::{until, until_ok};
use serde_json::Value;

/// The status, whatever the exit code.
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
async fn a_demoted_leader_steps_down_and_can_be_promoted_again() {
    let cluster = Cluster::start(3).await.unwrap();
    let leader = cluster.leader().await.unwrap();
    let id = leader.to_string();
    cluster.ctl_in_time(&["members", "demote", &id]).await;
    // The node that answers may lag by one entry.
    let is_learner = |json: &Value| member(json, leader).unwrap()["role"] == "learner";
    until("a learner", async || is_learner(&status(&cluster))).await;
    cluster.leader_other_than(Some(leader)).await.unwrap();
    cluster.ctl_in_time(&["members", "promote", &id]).await;
    until("a voter again", async || !is_learner(&status(&cluster))).await;
}

#[tokio::test]
async fn running_removed_node_cannot_change_the_cluster() {
    let cluster = Cluster::start_with(3, STEADY_LEADER).await.unwrap();
    (cluster.ctl_in_time(&["members", "remove", "3", "--yes"])).await;
    let of_node_3 = Client::new([cluster.place(3).admin()]).unwrap();
    let orders = [
        ("POST", "/v1/nodes/1/drain"),
        ("POST", "/v1/nodes/2/drain"),
        ("POST", "/v1/leader"),
        ("DELETE", "/v1/members/2"),
    ];
    for (method, path) in orders {
        // The nodes learn of the removal one after the other.
        until_ok(
            "an answer of a node that knows of the removal",
            async || {
                let order = ApiRequest::new(method.parse().unwrap(), path);
                let refused = of_node_3.request_once(order).await.unwrap();
                let reason = String::from_utf8_lossy(&refused.body).into_owned();
                assert!(refused.status.as_u16() >= 400, "{method} {path}: {reason}");
                let is_known = reason.contains("node 3 was removed from this cluster")
                    || reason.contains("was removed from its cluster");
                is_known.then_some(()).ok_or(reason)
            },
        )
        .await;
    }
    for id in [1, 2] {
        let admin = cluster.admin_of(id);
        let goes_on = async || {
            let status = admin.status().await;
            status.is_ok_and(|status| status.ready && status.members.len() == 2)
        };
        until(&format!("node {id} is not drained"), goes_on).await;
    }
    // The removed node does not depose the leader by votes either.
    let before = status(&cluster);
    tokio::time::sleep(Duration::from_secs(12)).await;
    let after = status(&cluster);
    assert_eq!(
        (&before["leader"], &before["term"]),
        (&after["leader"], &after["term"])
    );
}

/// An election takes longer than this, so only a transfer explains a faster change of leaders.
const ELECTION_MIN: Duration = Duration::from_secs(12);

#[tokio::test]
async fn leadership_is_transferred_on_request_and_on_shutdown() {
    let config = "[raft]\nround_trip_ms = 2000\n";
    let mut cluster = Cluster::start_with(3, config).await.unwrap();
    let client = cluster.client();
    let host = host::with_processors(&client).await;
    let old = cluster.leader().await.unwrap();
    let new = old % 3 + 1;
    (cluster.ctl_in_time(&["transfer-leader", "--to", &new.to_string()])).await;
    cluster.until_leader(new).await;
    // The leader stops while a client writes through another node. Its successor leads long before
    // a follower could have missed the heartbeats.
    let client = cluster.client_of(old);
    let term = status(&cluster)["term"].as_u64().unwrap();
    let stopped = AtomicBool::new(false);
    let writes = async {
        let mut longest = Duration::ZERO;
        // Continues for some writes after the end of the old leader.
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
    assert!(longest < ELECTION_MIN, "a write took {longest:?}");
    let json = status(&cluster);
    assert_ne!(json["leader"], new);
    assert!(json["term"].as_u64().unwrap() > term, "{json:#}");
}
