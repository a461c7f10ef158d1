//! Distant nodes measure their round trips, and requests take no more round trips than necessary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Consistency};
use placement_tests::cluster::Cluster;
use placement_tests::wait::PATIENCE;

/// Round trip between two nodes: zero within a site, and the distance between sites otherwise.
fn apart(one: u64, other: u64) -> Duration {
    match (one.min(other), one.max(other)) {
        (1, 2) => Duration::ZERO,
        (1 | 2, 3) => Duration::from_millis(60),
        _ => Duration::ZERO,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_measures_its_round_trips() {
    let mut cluster = Cluster::prepare_far(3, "").unwrap();
    cluster.set_round_trips(apart);
    for id in cluster.ids() {
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let begun = Instant::now();
    loop {
        let statuses = cluster.statuses().await;
        let right = statuses.iter().filter(|status| {
            let ways = &status.round_trips;
            // A busy machine lengthens the measured round trips; nothing shortens them.
            let is_right = |node, ms: f64| {
                let least = apart(status.node_id, node).as_secs_f64() * 1e3;
                (least..least + 40.0).contains(&ms)
            };
            ways.len() == 2 && ways.iter().all(|way| is_right(way.node, way.ms))
        });
        if right.count() == 3 {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{statuses:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Round trip between any two of three sites: two with two voters each, and one with one voter.
const FAR: Duration = Duration::from_millis(200);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn linearizable_read_takes_one_round_trip_among_five_voters() {
    let config = "[raft]\nround_trip_ms = 200\n[cluster]\nleader_preference = [\"north\"]\n";
    let site = |id: u64| ["north", "north", "middle", "middle", "south"][id as usize - 1];
    let mut cluster = Cluster::prepare_far(5, config).unwrap();
    for id in cluster.ids() {
        cluster.start_node_at(id, site(id)).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let begun = Instant::now();
    while site(cluster.leader().await.unwrap()) != "north" {
        assert!(
            begun.elapsed() < PATIENCE,
            "the leadership was not transferred"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    cluster.set_round_trips(|one, other| {
        if site(one) == site(other) {
            Duration::ZERO
        } else {
            FAR
        }
    });
    for asked in [3, 5] {
        let client = cluster
            .client_of(asked)
            .with_consistency(Consistency::Linearizable);
        let mut least = Duration::MAX;
        // Takes the fastest of many reads, as the first ones set up connections and a busy machine
        // delays some. No read is faster than the round trip.
        for _ in 0..20 {
            let began = Instant::now();
            let answer = client.request(ApiRequest::get("/resource_providers"));
            assert!(answer.await.unwrap().status.is_success());
            least = least.min(began.elapsed());
        }
        assert!(least >= FAR, "node {asked} answers within {least:?}");
        assert!(least < FAR * 3 / 2, "node {asked} takes {least:?}");
    }
}
