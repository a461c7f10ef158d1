//! `kill -9` of the leader in the middle of a stream of writes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use placement_client::{Claim, Client, Error, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use uuid::Uuid;

const WRITERS: u64 = 8;
/// An election takes at most a few seconds; a machine with other work a few more.
const PAUSE_MAX: Duration = Duration::from_secs(20);

/// What one writer knows in the end.
#[derive(Default)]
struct Log {
    /// Consumers of which a POST was acknowledged.
    acknowledged: BTreeSet<Uuid>,
    /// Consumers of which nobody could tell.
    unknown: BTreeSet<Uuid>,
    /// How often the writer's own consumer was written, acknowledged or found to be written.
    steps: u64,
    /// The longest time between two acknowledgements.
    pause: Duration,
}

async fn provider(client: &Client, name: &str) -> Uuid {
    let uuid = Uuid::new_v4();
    client
        .create_provider(&NewProvider::named(name).uuid(uuid))
        .await
        .unwrap();
    let offer = [("VCPU", Inventory::of(1_000_000_000))];
    client.replace_inventories(uuid, 0, offer).await.unwrap();
    uuid
}

/// One POST of a new consumer, and one of the writer's own consumer, whose generation counts how
/// often it was written and whose amount says the same. Until told to stop.
async fn write(client: Client, hosts: [Uuid; 2], own: Uuid, stop: Arc<AtomicBool>) -> Log {
    let mut log = Log::default();
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let fresh = Uuid::new_v4();
        let step = log.steps + 1;
        let mut own_claim = Claim::by("project", "user").and(hosts[0], &[("VCPU", step)]);
        own_claim.consumer_generation = (log.steps > 0).then_some(log.steps);
        let claims = BTreeMap::from([
            (
                fresh,
                Claim::by("project", "user").and(hosts[1], &[("VCPU", 3)]),
            ),
            (own, own_claim),
        ]);
        match client.post_allocations(&claims).await {
            Ok(()) => {
                log.acknowledged.insert(fresh);
                log.steps = step;
                log.pause = log.pause.max(last.elapsed());
                last = Instant::now();
            }
            Err(Error::OutcomeUnknown { .. }) => {
                log.unknown.insert(fresh);
                // Only reading tells; a conflict later would be of our own making.
                let seen = client.allocations(own).await.unwrap();
                log.steps = seen.consumer_generation.unwrap_or(0);
                assert!(
                    log.steps == step || log.steps == step - 1,
                    "{seen:?} after step {step}"
                );
            }
            Err(error) => panic!("writer {own}: {error}"),
        }
    }
    log
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_write_survives_and_none_happens_twice() {
    survives(Cluster::start(3).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_where_everything_is_encrypted() {
    survives(Cluster::start_secured(3, "").await.unwrap()).await;
}

async fn survives(mut cluster: Cluster) {
    let client = cluster.client().with_patience(Duration::from_secs(60));
    let hosts = [provider(&client, "a").await, provider(&client, "b").await];
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for nth in 0..WRITERS {
        let own = Uuid::new_v4();
        // Each begins with another node.
        let mut ids = cluster.ids();
        ids.rotate_left(usize::try_from(nth % 3).unwrap());
        let client = (cluster.client_in_order(ids)).with_patience(Duration::from_secs(60));
        writers.push((own, tokio::spawn(write(client, hosts, own, stop.clone()))));
    }

    tokio::time::sleep(Duration::from_secs(2)).await;
    let leader = cluster.leader().await.unwrap();
    cluster.kill_9(leader);
    cluster.leader_other_than(Some(leader)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    stop.store(true, Ordering::Relaxed);

    let mut acknowledged = BTreeSet::new();
    let mut unknown = BTreeSet::new();
    let mut steps = BTreeMap::new();
    for (own, writer) in writers {
        let log = writer.await.unwrap();
        assert!(
            log.pause < PAUSE_MAX,
            "a writer was held up for {:?}",
            log.pause
        );
        assert!(log.steps > 0, "a writer wrote nothing");
        acknowledged.extend(log.acknowledged);
        unknown.extend(log.unknown);
        steps.insert(own, log.steps);
    }
    eprintln!(
        "{} acknowledged, {} unknown",
        acknowledged.len(),
        unknown.len()
    );

    cluster.start_node(leader).unwrap();
    cluster.wait_healthy().await.unwrap();
    for node in cluster.ids() {
        let client = cluster.client_of(node);
        let fresh = client.provider_allocations(hosts[1]).await.unwrap();
        let present: BTreeSet<_> = fresh.allocations.keys().copied().collect();
        let lost: Vec<_> = acknowledged.difference(&present).collect();
        assert!(lost.is_empty(), "node {node} lost {lost:?}");
        let invented: Vec<_> = present
            .iter()
            .filter(|&consumer| !acknowledged.contains(consumer) && !unknown.contains(consumer))
            .collect();
        assert!(invented.is_empty(), "node {node} has {invented:?}");
        let usages = client.provider_usages(hosts[1]).await.unwrap();
        assert_eq!(
            usages.usages["VCPU"],
            3 * present.len() as u64,
            "node {node}"
        );

        let mut sum = 0;
        for (&own, &steps) in &steps {
            let seen = client.allocations(own).await.unwrap();
            assert_eq!(
                seen.consumer_generation,
                Some(steps),
                "node {node}, writer {own}"
            );
            assert_eq!(seen.allocations[&hosts[0]].resources["VCPU"], steps);
            sum += steps;
        }
        let usages = client.provider_usages(hosts[0]).await.unwrap();
        assert_eq!(usages.usages["VCPU"], sum, "node {node}");
    }
    // A few consumers in detail: written once.
    for &consumer in acknowledged.iter().step_by(acknowledged.len() / 20 + 1) {
        let seen = client.allocations(consumer).await.unwrap();
        assert_eq!(seen.consumer_generation, Some(1));
    }
}
