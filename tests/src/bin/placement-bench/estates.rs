//! Clouds to search candidates in, seeded through the REST API by many clients at once.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use placement_client::{CandidateQuery, Claim, Client, Error, Inventory, NewProvider};
use uuid::Uuid;

use super::progress;

/// The class of a PCI device.
pub(super) const DEVICE: &str = "CUSTOM_PCI_DEVICE";
/// The trait of half of the devices of the nested estate.
pub(super) const FAST: &str = "CUSTOM_FAST";

const CLIENTS: u64 = 48;
const NEWS: Duration = Duration::from_secs(5);

/// Adds these hosts: one provider each, half of whose processors are in use.
pub(super) async fn flat(clients: &[Client], hosts: Range<u64>) -> anyhow::Result<()> {
    seed(clients, "hosts", hosts, async |client, nth| {
        let host = root_uuid(nth);
        let offer = [
            ("VCPU", Inventory::of(64)),
            ("MEMORY_MB", Inventory::of(262_144)),
            ("DISK_GB", Inventory::of(2_000)),
        ];
        provider(client, root(nth), &offer, &[]).await?;
        let claim = Claim::by("project", "user").and(host, &[("VCPU", 32)]);
        client.put_allocations(Uuid::new_v4(), &claim).await
    })
    .await
}

/// What is asked of [`flat`].
pub(super) fn flat_query() -> CandidateQuery {
    CandidateQuery::resources(&[("VCPU", 2), ("MEMORY_MB", 2048), ("DISK_GB", 20)])
}

/// Providers with room for everything that will be written.
pub(super) async fn boundless(client: &Client, providers: u128) -> anyhow::Result<Vec<Uuid>> {
    progress("making providers without bounds");
    let mut uuids = Vec::new();
    for nth in 1..=providers {
        let uuid = Uuid::from_u128(nth);
        let new = NewProvider::named(&format!("boundless-{nth}")).uuid(uuid);
        let offer = [
            ("VCPU", Inventory::of(1_000_000_000)),
            ("MEMORY_MB", Inventory::of(2_000_000_000)),
        ];
        provider(client, new, &offer, &[]).await?;
        uuids.push(uuid);
    }
    Ok(uuids)
}

/// Trees of seven: a root with disk, two NUMA nodes with processors and memory, and below each of
/// them a fast and a slow device.
pub(super) async fn nested(clients: &[Client], trees: u64) -> anyhow::Result<()> {
    clients[0].ensure_resource_class(DEVICE).await?;
    clients[0].ensure_trait(FAST).await?;
    seed(clients, "trees", 0..trees, async |client, nth| {
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
pub(super) async fn pci(clients: &[Client], hosts: u64, devices: u64) -> anyhow::Result<()> {
    clients[0].ensure_resource_class(DEVICE).await?;
    seed(clients, "PCI hosts", 0..hosts, async move |client, nth| {
        provider(client, root(nth), &[("VCPU", Inventory::of(64))], &[]).await?;
        for device in 1..=devices {
            let unit = [(DEVICE, Inventory::of(1))];
            provider(client, child(nth, device, 0), &unit, &[]).await?;
        }
        Ok(())
    })
    .await
}

/// The root of a host's or tree's providers.
pub(super) fn root_uuid(tree: u64) -> Uuid {
    uuid(tree, 0)
}

fn uuid(tree: u64, node: u64) -> Uuid {
    let number = 0xe57a7e00_0000_4000_8000_000000000000 + (u128::from(tree) << 16);
    Uuid::from_u128(number + u128::from(node))
}

fn root(tree: u64) -> NewProvider {
    NewProvider::named(&format!("host-{tree}")).uuid(root_uuid(tree))
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
        .replace_inventories(made.uuid, made.generation, offer)
        .await?;
    if !traits.is_empty() {
        let traits = traits.iter().copied();
        client
            .replace_provider_traits(made.uuid, set.resource_provider_generation, traits)
            .await?;
    }
    Ok(())
}

/// Makes each of a range, by many clients at once, which are spread over these; the first error
/// ends it.
async fn seed<F>(
    clients: &[Client],
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
    // On one thread: the nodes need the others.
    let local = tokio::task::LocalSet::new();
    let mut makers = Vec::new();
    for (_, client) in (0..CLIENTS).zip(clients.iter().cycle()) {
        let (next, done, make) = (next.clone(), done.clone(), make.clone());
        let client = client.clone();
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
