//! One, two or all nodes stop, in good order or not, and come back with everything.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::time::Duration;

use placement_client::{Claim, Client, Consistency, Error, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use uuid::Uuid;

struct Estate {
    host: Uuid,
    /// Consumer to amount, acknowledged.
    written: BTreeMap<Uuid, u64>,
}

impl Estate {
    async fn new(client: &Client) -> Self {
        let host = Uuid::new_v4();
        client
            .create_provider(&NewProvider::named("host").uuid(host))
            .await
            .unwrap();
        let offer = [("VCPU", Inventory::of(100_000))];
        client.replace_inventories(host, 0, offer).await.unwrap();
        Self {
            host,
            written: BTreeMap::new(),
        }
    }

    async fn write(&mut self, client: &Client, count: u64) {
        for amount in 1..=count {
            let consumer = Uuid::new_v4();
            let claim = Claim::by("project", "user").and(self.host, &[("VCPU", amount)]);
            client.put_allocations(consumer, &claim).await.unwrap();
            self.written.insert(consumer, amount);
        }
    }

    async fn assert_on_every_node(&self, cluster: &Cluster) {
        for node in cluster.ids() {
            let client = cluster.client_of(node);
            let seen = client.provider_allocations(self.host).await.unwrap();
            let seen: BTreeMap<_, _> = seen
                .allocations
                .iter()
                .map(|(consumer, allocation)| (*consumer, allocation.resources["VCPU"]))
                .collect();
            assert_eq!(seen, self.written, "node {node}");
        }
        cluster.assert_equal_states().await;
    }
}

#[tokio::test]
async fn one_node_at_a_time_stops_and_the_cluster_goes_on() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    let mut estate = Estate::new(&client).await;
    for id in cluster.ids() {
        cluster.stop_node(id).await.unwrap();
        estate.write(&client, 5).await;
        cluster.start_node(id).unwrap();
        cluster.wait_ready(id).await.unwrap();
        estate.write(&client, 5).await;
    }
    estate.assert_on_every_node(&cluster).await;
}

#[tokio::test]
async fn two_nodes_die_and_come_back() {
    let mut cluster = Cluster::start_with(3, "[cluster]\nwait_ms = 1000\n")
        .await
        .unwrap();
    let client = cluster.client();
    let mut estate = Estate::new(&client).await;
    estate.write(&client, 10).await;
    let leader = cluster.leader().await.unwrap();
    let other = cluster.ids().into_iter().find(|&id| id != leader).unwrap();
    cluster.kill_9(leader);
    cluster.kill_9(other);
    let impatient = cluster.client().with_patience(Duration::from_secs(3));
    let refused = impatient
        .create_provider(&NewProvider::named("nobody"))
        .await;
    assert!(
        matches!(
            refused,
            Err(Error::NothingCommitted { .. }
                | Error::OutcomeUnknown { .. }
                | Error::Unreachable { .. })
        ),
        "{refused:?}"
    );
    cluster.start_node(leader).unwrap();
    cluster.start_node(other).unwrap();
    cluster.wait_healthy().await.unwrap();
    // What was said of the write holds: only one of which nobody could tell may be there.
    let is_there = cluster.has_provider("nobody").await;
    assert!(
        !is_there || matches!(refused, Err(Error::OutcomeUnknown { .. })),
        "the write was carried out, but its client was told {refused:?}"
    );
    estate.write(&client, 10).await;
    estate.assert_on_every_node(&cluster).await;
}

#[tokio::test]
async fn all_three_are_killed_at_once_and_nothing_is_lost() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    let mut estate = Estate::new(&client).await;
    for round in 0..2 {
        estate.write(&client, 20).await;
        for id in cluster.ids() {
            cluster.kill_9(id);
        }
        for id in cluster.ids() {
            cluster.start_node(id).unwrap();
        }
        cluster.wait_healthy().await.unwrap();
        eprintln!("round {round}: back");
    }
    estate.assert_on_every_node(&cluster).await;
    estate.write(&client, 5).await;
    // What a session saw before the end of the world holds after it, too.
    let session = cluster.client_of(1).with_session();
    session.provider(estate.host).await.unwrap();
    let token = session.session_index().unwrap();
    let other = cluster
        .client_of(2)
        .with_consistency(Consistency::Session(token));
    assert!(other.provider(estate.host).await.is_ok());
}

#[tokio::test]
async fn all_three_stop_in_good_order_and_come_back() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    let mut estate = Estate::new(&client).await;
    estate.write(&client, 20).await;
    for id in cluster.ids() {
        cluster.stop_node(id).await.unwrap();
    }
    for id in cluster.ids() {
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    estate.assert_on_every_node(&cluster).await;
}
