//! Clouds for candidate searches: their content, and how to load it into a service.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Context;
use futures::{StreamExt, TryStreamExt};
use placement_client::{CandidateQuery, Claim, Client, Error, Inventory, NewProvider};
use rand::rngs::SmallRng;
use rand::seq::IteratorRandom as _;
use rand::{Rng as _, SeedableRng as _};
use uuid::Uuid;

use crate::load::IN_TURN;
use crate::progress;

/// Resource class of a PCI device.
const DEVICE: &str = "CUSTOM_PCI_DEVICE";
const DEVICES_PER_HOST: u64 = 8;
/// Traits of a used host, and the number of traits they are drawn from.
const TRAITS_PER_HOST: usize = 30;
const TRAITS: usize = 60;
/// Numbers of the first consumer of a tree, and of the first consumer added later; providers have
/// lower numbers.
const FIRST_CONSUMER: u64 = 0x8000;
const FIRST_ADDED: u64 = 0x9000;
/// Number of trees that are created concurrently.
const CLIENTS: usize = 48;

#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// Hosts of one provider each; half of their processors are in use.
    Flat,
    /// Hosts with processors and eight child providers, each of one PCI device.
    Pci,
}

/// A cloud of provider trees, all of the same shape.
#[derive(Clone, Copy)]
pub(crate) struct Cloud {
    pub(crate) shape: Shape,
    pub(crate) size: u64,
    /// Whether each root has 30 of 60 traits, and claims of different sizes, as in a cloud in use.
    pub(crate) is_used: bool,
}

impl fmt::Display for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            Shape::Flat => write!(f, "flat, {} hosts", self.size)?,
            Shape::Pci => write!(f, "PCI, {} hosts of {DEVICES_PER_HOST}", self.size)?,
        }
        f.write_str(if self.is_used { ", used" } else { ", plain" })
    }
}

struct Provider {
    uuid: Uuid,
    name: String,
    parent: Option<Uuid>,
    inventories: Vec<(&'static str, Inventory)>,
    traits: Vec<String>,
}

/// Consumer, and its allocations from one root.
type Holding = (Uuid, Vec<(&'static str, u64)>);

/// Providers, parents first, and the allocations from the root.
struct Tree {
    providers: Vec<Provider>,
    holdings: Vec<Holding>,
}

impl Cloud {
    pub(crate) fn used(shape: Shape, size: u64) -> Self {
        Self {
            shape,
            size,
            is_used: true,
        }
    }

    pub(crate) fn plain(shape: Shape, size: u64) -> Self {
        Self {
            is_used: false,
            ..Self::used(shape, size)
        }
    }

    /// UUIDs of the roots that are queried in turn.
    pub(crate) fn roots(self) -> Vec<Uuid> {
        let trees = self.size.min(IN_TURN as u64);
        (0..trees).map(|tree| uuid(tree, 0)).collect()
    }

    /// Loads the cloud into a service through the REST API.
    pub(crate) async fn seed(self, clients: &[Client]) -> anyhow::Result<()> {
        progress(&format!("seeding {self}"));
        clients[0].ensure_resource_class(DEVICE).await?;
        for nth in 0..TRAITS {
            clients[0].ensure_trait(&trait_name(nth)).await?;
        }
        let make = async |client: &Client, nth| self.tree(nth).make(client).await;
        self.each(clients, make).await
    }

    /// Adds `count` consumers to each flat host.
    pub(crate) async fn add_consumers(self, clients: &[Client], count: u64) -> anyhow::Result<()> {
        progress(&format!("adding {count} consumers to each host"));
        let add = async |client: &Client, nth| {
            let numbers = FIRST_ADDED..FIRST_ADDED + count;
            let held = vec![("VCPU", 1), ("MEMORY_MB", 512), ("DISK_GB", 10)];
            let holdings = numbers.map(|number| (uuid(nth, number), held.clone()));
            claim(client, uuid(nth, 0), holdings.collect()).await
        };
        self.each(clients, add).await
    }

    /// Runs an action for each tree.
    async fn each(
        self,
        clients: &[Client],
        what: impl AsyncFn(&Client, u64) -> Result<(), Error>,
    ) -> anyhow::Result<()> {
        futures::stream::iter(0..self.size)
            .map(|nth| what(&clients[nth as usize % clients.len()], nth))
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
                .map(|(class, total)| (*class, Inventory::with_total(*total)))
                .collect(),
            traits: Vec::new(),
        };
        let (mut providers, mut held) = match self.shape {
            Shape::Flat => {
                let stock = [("VCPU", 1_024), ("MEMORY_MB", 262_144), ("DISK_GB", 2_000)];
                (vec![provider(0, None, &stock)], vec![vec![("VCPU", 512)]])
            }
            Shape::Pci => {
                let root = provider(0, None, &[("VCPU", 1_024)]);
                let device = |node| provider(node, Some(0), &[(DEVICE, 1)]);
                let devices = (1..=DEVICES_PER_HOST).map(device);
                ([root].into_iter().chain(devices).collect(), Vec::new())
            }
        };
        if self.is_used {
            let mut random = SmallRng::seed_from_u64(nth);
            let some = (0..TRAITS).choose_multiple(&mut random, TRAITS_PER_HOST);
            providers[0].traits = some.into_iter().map(trait_name).collect();
            for _ in 0..random.random_range(2..=12) {
                let units: u64 = random.random_range(1..=16);
                let each = [("VCPU", 1), ("MEMORY_MB", 1_000), ("DISK_GB", 10)]
                    .into_iter()
                    .take(providers[0].inventories.len());
                held.push(each.map(|(class, unit)| (class, units * unit)).collect());
            }
        }
        let consumers = (FIRST_CONSUMER..).map(|number| uuid(nth, number));
        Tree {
            providers,
            holdings: consumers.zip(held).collect(),
        }
    }
}

pub(crate) fn trait_name(nth: usize) -> String {
    format!("CUSTOM_TRAIT_{nth:02}")
}

fn uuid(tree: u64, node: u64) -> Uuid {
    let number = 0xe57a7e00_0000_4000_8000_000000000000 + (u128::from(tree) << 16);
    Uuid::from_u128(number + u128::from(node))
}

/// Candidate query for a flat cloud.
pub(crate) fn flat_query() -> CandidateQuery {
    CandidateQuery::resources(&[("VCPU", 2), ("MEMORY_MB", 2048), ("DISK_GB", 20)])
}

/// Candidate query for `groups` devices of one host, each in a request group of its own.
pub(crate) fn devices_query(groups: u32) -> CandidateQuery {
    let mut query = CandidateQuery::resources(&[("VCPU", 1)]);
    for group in 0..groups {
        query = query.with(&format!("resources_{group}"), &format!("{DEVICE}:1"));
    }
    query.with("group_policy", "none").limit(1000)
}

/// Creates providers with enough inventory for all writes, unless they exist.
pub(crate) async fn boundless(client: &Client) -> anyhow::Result<Vec<Uuid>> {
    let stock = [("VCPU", 1_000_000_000), ("MEMORY_MB", 2_000_000_000)];
    let make = |number| Provider {
        uuid: Uuid::from_u128(number),
        name: format!("boundless-{number}"),
        parent: None,
        inventories: (stock.map(|(class, total)| (class, Inventory::with_total(total)))).into(),
        traits: Vec::new(),
    };
    let uuids: Vec<Uuid> = (1..=IN_TURN).map(Uuid::from_u128).collect();
    if client.provider(uuids[uuids.len() - 1]).await.is_err() {
        futures::stream::iter((1..=IN_TURN).map(make))
            .map(async |provider| provider.make(client).await)
            .buffered(CLIENTS)
            .try_collect::<()>()
            .await?;
    }
    Ok(uuids)
}

impl Tree {
    async fn make(self, client: &Client) -> Result<(), Error> {
        for provider in &self.providers {
            provider.make(client).await?;
        }
        claim(client, self.providers[0].uuid, self.holdings).await
    }
}

async fn claim(client: &Client, root: Uuid, holdings: Vec<Holding>) -> Result<(), Error> {
    let claims: BTreeMap<_, _> = (holdings.into_iter())
        .map(|(consumer, held)| (consumer, Claim::by("project", "user").and(root, &held)))
        .collect();
    if claims.is_empty() {
        Ok(())
    } else {
        client.post_allocations(&claims).await
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
            let traits = self.traits.iter().map(String::as_str);
            client
                .replace_provider_traits(made.uuid, set.resource_provider_generation, traits)
                .await?;
        }
        Ok(())
    }
}
