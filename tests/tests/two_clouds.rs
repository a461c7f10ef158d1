//! Two regions, each with a Nova of its own, in one cluster: a Nova sees its own hosts only, and neither loses
//! anything when a region is lost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use placement_client::{ApiRequest, Claim, Client, Error, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use serde_json::Value;
use tokio::task::JoinHandle;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);
/// The nodes of the two regions; the fifth is a witness in a third.
const NORTH: [u64; 2] = [1, 2];
const SOUTH: [u64; 2] = [3, 4];
const CONFIG: &str = r#"
    [[partitions]]
    name = "north"
    region = "north"

    [[partitions]]
    name = "south"
    region = "south"

    [log]
    level = "warn,placement::access=off"
"#;
/// More than a Nova claims here.
const VCPUS: u64 = 100_000;

/// A host of whichever cloud: both have the same UUIDs.
fn host(number: u128) -> Uuid {
    Uuid::from_u128(0xa000 + number)
}

/// A server of whichever cloud, likewise.
fn server(number: u128) -> Uuid {
    Uuid::from_u128(0xb000_0000 + number)
}

/// What a Nova knows of its servers.
#[derive(Debug, Default)]
struct Servers {
    /// Where each is that was claimed for.
    acknowledged: BTreeMap<Uuid, Uuid>,
    /// Those of which it is not known.
    unknown: BTreeSet<Uuid>,
}

/// A Nova with these hosts: looks for room, claims it, and so on until it is told to stop.
struct Nova {
    client: Client,
    work: JoinHandle<Servers>,
    is_over: Arc<AtomicBool>,
}

impl Nova {
    async fn start(client: Client, hosts: u128) -> Self {
        for number in 0..hosts {
            let new = NewProvider::named(&format!("host {number}")).uuid(host(number));
            client.create_provider(&new).await.unwrap();
            let offer = [("VCPU", Inventory::of(VCPUS))];
            client
                .replace_inventories(host(number), 0, offer)
                .await
                .unwrap();
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let work = tokio::spawn(schedule(client.clone(), is_over.clone()));
        Self {
            client,
            work,
            is_over,
        }
    }

    /// Ends its work, and holds what it was told against what is there.
    async fn judge(self, name: &str, hosts: u128) {
        self.is_over.store(true, Ordering::Relaxed);
        let servers = self.work.await.unwrap();
        assert!(servers.acknowledged.len() > 20, "{name}: {servers:?}");
        for (server, host) in &servers.acknowledged {
            let found = self.client.allocations(*server).await.unwrap();
            let at: Vec<&Uuid> = found.allocations.keys().collect();
            assert_eq!(at, [host], "{name}: {server}");
        }
        let mut used = 0;
        for number in 0..hosts {
            let usages = self.client.provider_usages(host(number)).await.unwrap();
            used += usages.usages.get("VCPU").copied().unwrap_or_default();
        }
        let most = servers.acknowledged.len() + servers.unknown.len();
        let claimed = servers.acknowledged.len() as u64..=most as u64;
        assert!(claimed.contains(&used), "{name}: {used} of {claimed:?}");
    }
}

async fn schedule(client: Client, is_over: Arc<AtomicBool>) -> Servers {
    let mut servers = Servers::default();
    let mut next = 0;
    while !is_over.load(Ordering::Relaxed) {
        next += 1;
        let asked = ApiRequest::get("/allocation_candidates?resources=VCPU:1&limit=1");
        let Ok(found) = client.call(asked).await else {
            continue;
        };
        let found: Value = found.json().unwrap();
        let offered = found["allocation_requests"][0]["allocations"]
            .as_object()
            .unwrap();
        let at: Uuid = offered.keys().next().unwrap().parse().unwrap();
        let server = server(next);
        let claim = Claim::by("project", "user").and(at, &[("VCPU", 1)]);
        match client.put_allocations(server, &claim).await {
            Ok(()) => {
                servers.acknowledged.insert(server, at);
            }
            Err(Error::Refused(refused)) => panic!("there is room for all: {refused}"),
            Err(_) => drop(servers.unknown.insert(server)),
        }
    }
    servers
}

/// What is told of the hosts of a cloud.
async fn hosts(client: &Client) -> usize {
    let found = client
        .call(ApiRequest::get("/resource_providers"))
        .await
        .unwrap();
    let found: Value = found.json().unwrap();
    found["resource_providers"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_novas_share_a_cluster_and_each_region_may_be_lost() {
    let mut cluster = Cluster::prepare(5, CONFIG).unwrap();
    for id in cluster.ids() {
        let region = match id {
            1 | 2 => "north",
            3 | 4 => "south",
            _ => "witness",
        };
        cluster.start_node_at(id, region).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    for name in ["north", "south"] {
        let prefix = format!("/{name}");
        let made = cluster.create_partition(name, &[], &[&prefix]).await;
        made.unwrap();
    }

    // Each asks its own region first, and the others if that does not answer.
    let at = |ids: [u64; 5], prefix| {
        let client = cluster.client_in_order(ids).with_patience(PATIENCE);
        client.below(prefix)
    };
    let north = Nova::start(at([1, 2, 3, 4, 5], "/north"), 3).await;
    let south = Nova::start(at([3, 4, 1, 2, 5], "/south"), 5).await;

    for lost in [NORTH, SOUTH] {
        tokio::time::sleep(Duration::from_secs(2)).await;
        for id in lost {
            cluster.kill_9(id);
        }
        // Both clouds are written to and read in the other region meanwhile.
        let left = if lost == NORTH { 3 } else { 1 };
        for (name, client) in [("north", &north.client), ("south", &south.client)] {
            let here = cluster
                .client_of(left)
                .with_patience(PATIENCE)
                .below(&format!("/{name}"));
            here.ensure_trait(&format!("CUSTOM_WITHOUT_{}", lost[0]))
                .await
                .unwrap();
            assert_eq!(hosts(&here).await, hosts(client).await, "{name}");
        }
        for id in lost {
            let region = if lost == NORTH { "north" } else { "south" };
            cluster.start_node_at(id, region).unwrap();
        }
        cluster.wait_healthy().await.unwrap();
    }

    assert_eq!(
        (hosts(&north.client).await, hosts(&south.client).await),
        (3, 5)
    );
    assert_eq!(
        hosts(&cluster.client()).await,
        0,
        "the default partition has none"
    );
    north.judge("north", 3).await;
    south.judge("south", 5).await;
    cluster.assert_equal_states().await;
}
