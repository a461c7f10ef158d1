//! Clouds to search candidates in, seeded through the REST API by many clients at once.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use placement_client::{Claim, Client, Error, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use uuid::Uuid;

use super::progress;

/// The class of a PCI device.
pub(super) const DEVICE: &str = "CUSTOM_PCI_DEVICE";
/// The trait of half of the devices of the nested estate.
pub(super) const FAST: &str = "CUSTOM_FAST";

const CLIENTS: u64 = 48;
const NEWS: Duration = Duration::from_secs(5);

/// Adds these hosts: one provider each, half of whose processors are in use.
pub(super) async fn flat(cluster: &Cluster, hosts: Range<u64>) -> anyhow::Result<()> {
    seed(cluster, "hosts", hosts, async |client, nth| {
        let host = uuid(nth, 0);
        let offer = [
            ("VCPU", Inventory::of(64)),
            ("MEMORY_MB", Inventory::of(262_144)),
            ("DISK_GB", Inventory::of(2_000)),
        ];
        provider(client, root(nth), &offer, &[]).await?;
        let claim = Claim::of(host, &[("VCPU", 32)]);
        client.put_allocations(Uuid::new_v4(), &claim).await
    })
    .await
}

/// Trees of seven: a root with disk, two NUMA nodes with processors and memory, and below each of
/// them a fast and a slow device.
pub(super) async fn nested(cluster: &Cluster, trees: u64) -> anyhow::Result<()> {
    let client = cluster.client();
    client.create_resource_class(DEVICE).await?;
    client.create_trait(FAST).await?;
    seed(cluster, "trees", 0..trees, async |client, nth| {
        let disk = [("DISK_GB", Inventory::of(2_000))];
        provider(client, root(nth), &disk, &[]).await?;
        for numa in [1, 4] {
            let offer = [
                ("VCPU", Inventory::of(32)),
                ("MEMORY_MB", Inventory::of(131_072)),
            ];
            provider(client, child(nth, numa, 0), &offer, &[]).await?;
            let device = [(DEVICE, Inventory::of(8))];
            provider(client, child(nth, numa + 1, numa), &device, &[FAST]).await?;
            provider(client, child(nth, numa + 2, numa), &device, &[]).await?;
        }
        Ok(())
    })
    .await
}

/// Hosts with processors and so many devices below, each a provider with one unit.
pub(super) async fn pci(cluster: &Cluster, hosts: u64, devices: u64) -> anyhow::Result<()> {
    cluster.client().create_resource_class(DEVICE).await?;
    seed(cluster, "PCI hosts", 0..hosts, async move |client, nth| {
        provider(client, root(nth), &[("VCPU", Inventory::of(64))], &[]).await?;
        for device in 1..=devices {
            let unit = [(DEVICE, Inventory::of(1))];
            provider(client, child(nth, device, 0), &unit, &[]).await?;
        }
        Ok(())
    })
    .await
}

fn uuid(tree: u64, node: u64) -> Uuid {
    let number = 0xe57a7e00_0000_4000_8000_000000000000 + (u128::from(tree) << 16);
    Uuid::from_u128(number + u128::from(node))
}

fn root(tree: u64) -> NewProvider {
    NewProvider::named(&format!("host-{tree}")).uuid(uuid(tree, 0))
}

fn child(tree: u64, node: u64, parent: u64) -> NewProvider {
    NewProvider::named(&format!("host-{tree}-{node}"))
        .uuid(uuid(tree, node))
        .child_of(uuid(tree, parent))
}

async fn provider(
    client: &Client,
    new: NewProvider,
    offer: &[(&str, Inventory)],
    traits: &[&str],
) -> Result<(), Error> {
    let made = client.create_provider(&new).await?;
    let offer = offer.iter().cloned();
    let set = client
        .set_inventories(made.uuid, made.generation, offer)
        .await?;
    if !traits.is_empty() {
        let traits = traits.iter().copied();
        client
            .set_provider_traits(made.uuid, set.resource_provider_generation, traits)
            .await?;
    }
    Ok(())
}

/// Makes each of a range, by many clients of all nodes at once; the first error ends it.
async fn seed<F>(
    cluster: &Cluster,
    what: &'static str,
    range: Range<u64>,
    make: F,
) -> anyhow::Result<()>
where
    F: AsyncFn(&Client, u64) -> Result<(), Error> + Clone + 'static,
{
    let next = Arc::new(AtomicU64::new(range.start));
    let done = Arc::new(AtomicU64::new(0));
    let all = range.end - range.start;
    let started = Instant::now();
    let ids = cluster.ids();
    // On one thread: the nodes need the others.
    let local = tokio::task::LocalSet::new();
    let mut makers = Vec::new();
    for (_, &id) in (0..CLIENTS).zip(ids.iter().cycle()) {
        let (next, done, make) = (next.clone(), done.clone(), make.clone());
        let client = cluster.client_of(id);
        makers.push(local.spawn_local(async move {
            loop {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                if nth >= range.end {
                    return Ok::<(), Error>(());
                }
                make(&client, nth).await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    let news = local.spawn_local(say_how_far(done, all, what));
    let result = local
        .run_until(async {
            for maker in makers {
                maker.await.expect("a maker does not panic")?;
            }
            Ok(())
        })
        .await;
    news.abort();
    progress(&format!(
        "{all} {what} made in {:.0} s",
        started.elapsed().as_secs_f64()
    ));
    result
}

async fn say_how_far(done: Arc<AtomicU64>, all: u64, what: &'static str) {
    loop {
        tokio::time::sleep(NEWS).await;
        progress(&format!("{} of {all} {what}", done.load(Ordering::Relaxed)));
    }
}
