//! Clouds to search candidates in: what is in them, and how it gets into a service.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Context;
use futures::{StreamExt, TryStreamExt};
use placement_client::{CandidateQuery, Claim, Client, Error, Inventory, NewProvider};
use uuid::Uuid;

use crate::load::IN_TURN;
use crate::progress;

/// The class of a PCI device.
const DEVICE: &str = "CUSTOM_PCI_DEVICE";
/// The trait of half of the devices of the nested cloud.
const FAST: &str = "CUSTOM_FAST";
const DEVICES_PER_HOST: u64 = 8;
/// The number of the first consumer among those of a tree; providers have those below.
const FIRST_CONSUMER: u64 = 0x8000;
/// How many trees are made at once.
const CLIENTS: usize = 48;

#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// Hosts of one provider each, half of whose processors are in use.
    Flat,
    /// Trees of seven: a root with disk, two NUMA nodes with processors and memory, and below each of
    /// them a fast and a slow device.
    Nested,
    /// Hosts with processors and eight devices below, each a provider with one unit.
    Pci,
}

/// So many trees of a shape.
#[derive(Clone, Copy)]
pub(crate) struct Cloud {
    pub(crate) shape: Shape,
    pub(crate) size: u64,
    /// Consumers of each root, in addition to the one that has half of a flat host's processors.
    pub(crate) consumers: u64,
}

impl fmt::Display for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            Shape::Flat => write!(f, "flat, {} hosts", self.size),
            Shape::Nested => write!(f, "nested, {} trees of 7", self.size),
            Shape::Pci => write!(f, "PCI, {} hosts of {DEVICES_PER_HOST}", self.size),
        }
    }
}

struct Provider {
    uuid: Uuid,
    name: String,
    parent: Option<Uuid>,
    inventories: Vec<(&'static str, Inventory)>,
    traits: Vec<&'static str>,
}

/// Providers, parents first, and consumers with what they hold of the first.
struct Tree {
    providers: Vec<Provider>,
    consumers: Vec<(Uuid, Vec<(&'static str, u64)>)>,
}

impl Cloud {
    pub(crate) fn of(shape: Shape, size: u64) -> Self {
        Self {
            shape,
            size,
            consumers: 0,
        }
    }

    /// What is asked of it; of the PCI cloud, one device.
    pub(crate) fn query(self) -> CandidateQuery {
        match self.shape {
            Shape::Flat => {
                CandidateQuery::resources(&[("VCPU", 2), ("MEMORY_MB", 2048), ("DISK_GB", 20)])
            }
            Shape::Nested => CandidateQuery::resources(&[("DISK_GB", 20)])
                .with("resources_CPU", "VCPU:2,MEMORY_MB:2048")
                .with("resources_DEV", &format!("{DEVICE}:1"))
                .with("required_DEV", FAST)
                .with("same_subtree", "_CPU,_DEV")
                .with("group_policy", "none"),
            Shape::Pci => devices_query(1),
        }
    }

    /// The first roots.
    pub(crate) fn roots(self) -> Vec<Uuid> {
        let trees = self.size.min(IN_TURN as u64);
        (0..trees).map(|tree| uuid(tree, 0)).collect()
    }

    /// The first consumer of each of the first trees.
    pub(crate) fn consumers(self) -> Vec<Uuid> {
        let trees = self.size.min(IN_TURN as u64);
        (0..trees).map(|tree| uuid(tree, FIRST_CONSUMER)).collect()
    }

    /// Puts it into a service, through the REST API.
    pub(crate) async fn seed(self, clients: &[Client]) -> anyhow::Result<()> {
        progress(&format!("seeding {self}"));
        clients[0].ensure_resource_class(DEVICE).await?;
        clients[0].ensure_trait(FAST).await?;
        futures::stream::iter(0..self.size)
            .map(|nth| async move {
                let client = &clients[nth as usize % clients.len()];
                self.tree(nth).make(client).await
            })
            .buffer_unordered(CLIENTS)
            .try_collect::<()>()
            .await
            .context("seeding")
    }

    fn tree(self, nth: u64) -> Tree {
        let provider = |node, parent: Option<u64>, stock: &[(&'static str, u64)]| Provider {
            uuid: uuid(nth, node),
            name: format!("host-{nth}-{node}"),
            parent: parent.map(|node| uuid(nth, node)),
            inventories: stock
                .iter()
                .map(|(class, total)| (*class, Inventory::of(*total)))
                .collect(),
            traits: Vec::new(),
        };
        let mut held = Vec::new();
        let providers = match self.shape {
            Shape::Flat => {
                held.push(vec![("VCPU", 512)]);
                let stock = [("VCPU", 1_024), ("MEMORY_MB", 262_144), ("DISK_GB", 2_000)];
                vec![provider(0, None, &stock)]
            }
            Shape::Nested => {
                let numa = [1, 4].into_iter().flat_map(|numa| {
                    let mut fast = provider(numa + 1, Some(numa), &[(DEVICE, 8)]);
                    fast.traits.push(FAST);
                    let slow = provider(numa + 2, Some(numa), &[(DEVICE, 8)]);
                    [
                        provider(numa, Some(0), &[("VCPU", 32), ("MEMORY_MB", 131_072)]),
                        fast,
                        slow,
                    ]
                });
                [provider(0, None, &[("DISK_GB", 2_000)])]
                    .into_iter()
                    .chain(numa)
                    .collect()
            }
            Shape::Pci => {
                let devices =
                    (1..=DEVICES_PER_HOST).map(|nth| provider(nth, Some(0), &[(DEVICE, 1)]));
                [provider(0, None, &[("VCPU", 1_024)])]
                    .into_iter()
                    .chain(devices)
                    .collect()
            }
        };
        let more = vec![("VCPU", 1), ("MEMORY_MB", 512), ("DISK_GB", 10)];
        held.extend((0..self.consumers).map(|_| more.clone()));
        let consumers = (FIRST_CONSUMER..)
            .map(|number| uuid(nth, number))
            .zip(held)
            .collect();
        Tree {
            providers,
            consumers,
        }
    }
}

fn uuid(tree: u64, node: u64) -> Uuid {
    let number = 0xe57a7e00_0000_4000_8000_000000000000 + (u128::from(tree) << 16);
    Uuid::from_u128(number + u128::from(node))
}

/// So many devices of one host, each in a group of its own.
pub(crate) fn devices_query(groups: u32) -> CandidateQuery {
    let mut query = CandidateQuery::resources(&[("VCPU", 1)]);
    for group in 0..groups {
        query = query.with(&format!("resources_{group}"), &format!("{DEVICE}:1"));
    }
    query.with("group_policy", "none").limit(1000)
}

/// Makes providers with room for everything that will be written, unless they are there.
pub(crate) async fn boundless(client: &Client) -> anyhow::Result<Vec<Uuid>> {
    let uuids: Vec<Uuid> = (1..=IN_TURN).map(Uuid::from_u128).collect();
    if client.provider(uuids[0]).await.is_ok() {
        return Ok(uuids);
    }
    for &uuid in &uuids {
        let stock = [("VCPU", 1_000_000_000), ("MEMORY_MB", 2_000_000_000)];
        let provider = Provider {
            uuid,
            name: format!("boundless-{uuid}"),
            parent: None,
            inventories: stock
                .map(|(class, total)| (class, Inventory::of(total)))
                .into(),
            traits: Vec::new(),
        };
        provider.make(client).await?;
    }
    Ok(uuids)
}

impl Tree {
    async fn make(&self, client: &Client) -> Result<(), Error> {
        for provider in &self.providers {
            provider.make(client).await?;
        }
        let root = self.providers[0].uuid;
        let claim = |held: &[_]| Claim::by("project", "user").and(root, held);
        let claims: BTreeMap<_, _> = (self.consumers.iter())
            .map(|(consumer, held)| (*consumer, claim(held)))
            .collect();
        if !claims.is_empty() {
            client.post_allocations(&claims).await?;
        }
        Ok(())
    }
}

impl Provider {
    async fn make(&self, client: &Client) -> Result<(), Error> {
        let mut new = NewProvider::named(&self.name).uuid(self.uuid);
        if let Some(parent) = self.parent {
            new = new.child_of(parent);
        }
        let made = client.create_provider(&new).await?;
        let inventories = self.inventories.iter().cloned();
        let set = client
            .replace_inventories(made.uuid, made.generation, inventories)
            .await?;
        if !self.traits.is_empty() {
            let traits = self.traits.iter().copied();
            client
                .replace_provider_traits(made.uuid, set.resource_provider_generation, traits)
                .await?;
        }
        Ok(())
    }
}
