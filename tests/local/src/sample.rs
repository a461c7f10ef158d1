//! A small sample cloud, loaded through the public REST API: compute nodes with NUMA nodes below
//! them, storage that they share by an aggregate, and a host with PCI devices.

use placement_client::{
    AllocationCandidates, CandidateQuery, Claim, Client, Error, Inventory, NewProvider,
};
use uuid::Uuid;

/// Aggregate through which the storage is shared.
pub const AGGREGATE: Uuid = Uuid::from_u128(0xa6600000_0000_4000_8000_000000000001);
/// Consumer of the sample's claim.
pub const CONSUMER: Uuid = Uuid::from_u128(0xc0000000_0000_4000_8000_000000000001);

const STORAGE: Uuid = Uuid::from_u128(0x50000000_0000_4000_8000_000000000001);
const PCI_HOST: u128 = 0x9c000000_0000_4000_8000_000000000000;
const COMPUTE: u128 = 0xc1000000_0000_4000_8000_000000000000;
const COMPUTE_NODES: u128 = 4;
const NUMA_NODES: u128 = 2;
const PCI_DEVICES: u128 = 4;
const PCI_CLASS: &str = "CUSTOM_PCI_10DE_1EB8";

/// Whether the sample cloud is loaded. The storage is its last part.
pub async fn is_loaded(client: &Client) -> Result<bool, Error> {
    let found = client.providers(&[("uuid", &STORAGE.to_string())]).await?;
    Ok(!found.is_empty())
}

/// Loads the sample cloud, or completes an interrupted attempt. Calls `progress` for each provider.
pub async fn load(client: &Client, mut progress: impl FnMut(&str)) -> Result<(), Error> {
    client.ensure_resource_class(PCI_CLASS).await?;
    for nth in 1..=COMPUTE_NODES {
        progress(&format!("compute-{nth}"));
        compute_node(client, nth).await?;
    }
    progress("pci-host");
    pci_host(client).await?;
    progress("shared-storage");
    shared_storage(client).await
}

/// Candidate query for a new instance of 4 CPUs on a host with NUMA and shared storage.
pub fn query() -> CandidateQuery {
    CandidateQuery::resources(&[("VCPU", 4), ("MEMORY_MB", 8192), ("DISK_GB", 40)])
        .with("required", "HW_NUMA_ROOT")
        .limit(2)
}

/// Claims the first candidate for the sample's consumer and replaces its earlier claim.
pub async fn claim(client: &Client, candidates: &AllocationCandidates) -> anyhow::Result<Claim> {
    let first = candidates
        .allocation_requests
        .first()
        .ok_or_else(|| anyhow::anyhow!("the sample cloud is full: no candidates"))?;
    let mut claim = first.claim("project", "user");
    claim.consumer_generation = client.allocations(CONSUMER).await?.consumer_generation;
    client.put_allocations(CONSUMER, &claim).await?;
    Ok(claim)
}

async fn compute_node(client: &Client, nth: u128) -> Result<(), Error> {
    let root = Uuid::from_u128(COMPUTE + (nth << 8));
    let name = format!("compute-{nth}");
    provider(client, NewProvider::named(&name).uuid(root)).await?;
    aggregates(client, root).await?;
    for numa in 0..NUMA_NODES {
        let child = Uuid::from_u128(COMPUTE + (nth << 8) + numa + 1);
        let below = NewProvider::named(&format!("{name}-numa-{numa}"))
            .uuid(child)
            .child_of(root);
        provider(client, below).await?;
        let offer = [
            ("VCPU", Inventory::with_total(16).ratio(4.0)),
            ("MEMORY_MB", Inventory::with_total(65_536).reserved(1024)),
        ];
        inventories(client, child, offer).await?;
        traits(client, child, ["HW_NUMA_ROOT", "HW_CPU_X86_AVX2"]).await?;
    }
    Ok(())
}

async fn pci_host(client: &Client) -> Result<(), Error> {
    let root = Uuid::from_u128(PCI_HOST);
    provider(client, NewProvider::named("pci-host").uuid(root)).await?;
    let offer = [
        ("VCPU", Inventory::with_total(32)),
        ("MEMORY_MB", Inventory::with_total(131_072)),
        ("DISK_GB", Inventory::with_total(2_000)),
    ];
    inventories(client, root, offer).await?;
    for device in 0..PCI_DEVICES {
        let child = Uuid::from_u128(PCI_HOST + device + 1);
        let below = NewProvider::named(&format!("pci-host_0000:81:00.{device}"))
            .uuid(child)
            .child_of(root);
        provider(client, below).await?;
        inventories(client, child, [(PCI_CLASS, Inventory::with_total(1))]).await?;
    }
    Ok(())
}

async fn shared_storage(client: &Client) -> Result<(), Error> {
    provider(client, NewProvider::named("shared-storage").uuid(STORAGE)).await?;
    inventories(
        client,
        STORAGE,
        [("DISK_GB", Inventory::with_total(100_000))],
    )
    .await?;
    traits(client, STORAGE, ["MISC_SHARES_VIA_AGGREGATE"]).await?;
    aggregates(client, STORAGE).await
}

async fn provider(client: &Client, provider: NewProvider) -> Result<(), Error> {
    match client.create_provider(&provider).await {
        Err(error) if error.is_conflict() => Ok(()),
        other => other.map(drop),
    }
}

async fn generation(client: &Client, provider: Uuid) -> Result<u64, Error> {
    Ok(client.provider(provider).await?.generation)
}

async fn inventories<const N: usize>(
    client: &Client,
    provider: Uuid,
    offer: [(&str, Inventory); N],
) -> Result<(), Error> {
    let generation = generation(client, provider).await?;
    client
        .replace_inventories(provider, generation, offer)
        .await
        .map(drop)
}

async fn traits<const N: usize>(
    client: &Client,
    provider: Uuid,
    names: [&str; N],
) -> Result<(), Error> {
    let generation = generation(client, provider).await?;
    client
        .replace_provider_traits(provider, generation, names)
        .await
        .map(drop)
}

async fn aggregates(client: &Client, provider: Uuid) -> Result<(), Error> {
    let generation = generation(client, provider).await?;
    client
        .replace_provider_aggregates(provider, generation, [AGGREGATE])
        .await
        .map(drop)
}
