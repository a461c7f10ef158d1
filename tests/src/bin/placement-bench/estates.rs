//! Clouds to search candidates in: what is in them, and how it gets into a service, through the REST
//! API by many clients at once.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use placement_client::{CandidateQuery, Claim, Client, Error, Inventory, NewProvider};
use rand::rngs::SmallRng;
use rand::seq::IteratorRandom as _;
use rand::{Rng as _, SeedableRng as _};
use uuid::Uuid;

use super::progress;

/// The class of a PCI device.
const DEVICE: &str = "CUSTOM_PCI_DEVICE";
/// The trait of half of the devices of the nested cloud.
const FAST: &str = "CUSTOM_FAST";

const DEVICES_PER_HOST: u64 = 8;
/// Traits of a host, and how many there are to choose from.
const TRAITS_PER_HOST: usize = 30;
const TRAITS: usize = 60;
/// Consumers of a host in a full cloud.
const CONSUMERS_PER_HOST: u64 = 10;
/// The number of the first consumer among those of a tree; providers have those below.
const FIRST_CONSUMER: u64 = 0x8000;

const CLIENTS: u64 = 48;
const NEWS: Duration = Duration::from_secs(5);

/// What a cloud is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    /// Hosts of one provider each, half of whose processors are in use.
    Flat,
    /// Trees of seven: a root with disk, two NUMA nodes with processors and memory, and below each of
    /// them a fast and a slow device.
    Nested,
    /// Hosts with processors and eight devices below, each a provider with one unit.
    Pci,
}

/// What is in it besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dress {
    /// Nothing.
    Plain,
    /// Thirty traits at each root.
    Traits,
    /// What a day of random claims, of which half were given back, leaves of processors at each root.
    Used,
    /// Ten consumers on each root.
    Full,
}

/// One cloud: so many trees of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cloud {
    pub(super) shape: Shape,
    pub(super) size: u64,
    pub(super) dress: Dress,
}

impl fmt::Display for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size;
        match self.shape {
            Shape::Flat => write!(f, "flat, {size} hosts")?,
            Shape::Nested => write!(f, "nested, {size} trees of 7")?,
            Shape::Pci => write!(f, "PCI, {size} hosts of {DEVICES_PER_HOST}")?,
        }
        match self.dress {
            Dress::Plain => Ok(()),
            Dress::Traits => write!(f, ", {TRAITS_PER_HOST} traits each"),
            Dress::Used => write!(f, ", after a day of claims"),
            Dress::Full => write!(f, ", {} consumers", size * CONSUMERS_PER_HOST),
        }
    }
}

/// A provider as it is made.
struct Provider {
    uuid: Uuid,
    name: String,
    parent: Option<Uuid>,
    offer: Vec<(&'static str, Inventory)>,
    traits: Vec<String>,
}

/// A consumer of a tree's root.
struct Holding {
    consumer: Uuid,
    resources: Vec<(&'static str, u64)>,
    /// Whether it is given back again.
    released: bool,
}

/// Providers, parents first, and who holds what of the first.
struct Tree {
    providers: Vec<Provider>,
    holdings: Vec<Holding>,
}

impl Cloud {
    pub(super) fn of(shape: Shape, size: u64) -> Self {
        let dress = Dress::Plain;
        Self { shape, size, dress }
    }

    pub(super) fn dressed(self, dress: Dress) -> Self {
        Self { dress, ..self }
    }

    /// What is asked of it; of the PCI cloud, one device.
    pub(super) fn query(self) -> CandidateQuery {
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

    /// The roots of the first trees, so many at most.
    pub(super) fn roots(self, most: u64) -> Vec<Uuid> {
        (0..self.size.min(most)).map(root_uuid).collect()
    }

    /// The first consumer of each of the first trees, so many at most.
    pub(super) fn consumers(self, most: u64) -> Vec<Uuid> {
        (0..self.size.min(most))
            .map(|tree| uuid(tree, FIRST_CONSUMER))
            .collect()
    }

    /// Puts its trees of this range into a service.
    pub(super) async fn seed(self, clients: &[Client], trees: Range<u64>) -> anyhow::Result<()> {
        self.seed_names(&clients[0]).await?;
        let what = match self.shape {
            Shape::Flat => "hosts",
            Shape::Nested => "trees",
            Shape::Pci => "PCI hosts",
        };
        seed(clients, what, trees, async move |client, nth| {
            self.tree(nth).make(client).await
        })
        .await
    }

    /// Makes the classes and traits that are no standard ones.
    pub(super) async fn seed_names(self, client: &Client) -> anyhow::Result<()> {
        client.ensure_resource_class(DEVICE).await?;
        client.ensure_trait(FAST).await?;
        if self.dress == Dress::Traits {
            for nth in 0..TRAITS {
                client.ensure_trait(&trait_name(nth)).await?;
            }
        }
        Ok(())
    }

    /// The same cloud as rows of upstream's database, in which these names are already.
    pub(super) fn sql(self) -> String {
        let mut sql = String::from(
            "START TRANSACTION;\n\
             INSERT INTO projects (id, external_id) VALUES (1000, 'seeded');\n\
             INSERT INTO users (id, external_id) VALUES (1000, 'seeded');\n",
        );
        let mut id = 1000;
        for nth in 0..self.size {
            self.tree(nth).write_sql(&mut sql, &mut id);
        }
        // Its optimiser shall know what is there, as it does after a day.
        sql.push_str(
            "COMMIT;\nANALYZE TABLE resource_providers, inventories, allocations, \
             resource_provider_traits, consumers;\n",
        );
        sql
    }

    fn tree(self, nth: u64) -> Tree {
        let mut tree = match self.shape {
            Shape::Flat => flat(nth),
            Shape::Nested => nested(nth),
            Shape::Pci => pci(nth),
        };
        let mut random = SmallRng::seed_from_u64(nth);
        match self.dress {
            Dress::Plain => {}
            Dress::Traits => {
                let some = (0..TRAITS).choose_multiple(&mut random, TRAITS_PER_HOST);
                tree.providers[0].traits = some.into_iter().map(trait_name).collect();
            }
            Dress::Used => {
                let of = tree.providers[0].offer[0].0;
                for _ in 0..random.random_range(4..24) {
                    let amount = random.random_range(1..=16);
                    let released = random.random();
                    tree.hold(nth, vec![(of, amount)], released);
                }
            }
            Dress::Full => {
                for _ in 0..CONSUMERS_PER_HOST {
                    let resources = vec![("VCPU", 1), ("MEMORY_MB", 512), ("DISK_GB", 10)];
                    tree.hold(nth, resources, false);
                }
            }
        }
        tree
    }
}

/// So many devices of one host, each in a group of its own.
pub(super) fn devices_query(groups: u32) -> CandidateQuery {
    let mut query = CandidateQuery::resources(&[("VCPU", 1)]);
    for group in 0..groups {
        query = query.with(&format!("resources_{group}"), &format!("{DEVICE}:1"));
    }
    query.with("group_policy", "none").limit(1000)
}

/// Providers with room for everything that will be written, made when they are first asked for.
pub(super) async fn boundless(client: &Client, providers: u128) -> anyhow::Result<Vec<Uuid>> {
    if client.provider(Uuid::from_u128(providers)).await.is_ok() {
        return Ok((1..=providers).map(Uuid::from_u128).collect());
    }
    progress("making providers without bounds");
    let mut uuids = Vec::new();
    for nth in 1..=providers {
        let provider = Provider {
            uuid: Uuid::from_u128(nth),
            name: format!("boundless-{nth}"),
            parent: None,
            offer: vec![
                ("VCPU", Inventory::of(1_000_000_000)),
                ("MEMORY_MB", Inventory::of(2_000_000_000)),
            ],
            traits: Vec::new(),
        };
        provider.make(client).await?;
        uuids.push(provider.uuid);
    }
    Ok(uuids)
}

fn flat(nth: u64) -> Tree {
    let offer = vec![
        ("VCPU", Inventory::of(1_024)),
        ("MEMORY_MB", Inventory::of(262_144)),
        ("DISK_GB", Inventory::of(2_000)),
    ];
    let mut tree = Tree::of(vec![provider(nth, 0, None, offer)]);
    tree.hold(nth, vec![("VCPU", 512)], false);
    tree
}

fn nested(nth: u64) -> Tree {
    let disk = vec![("DISK_GB", Inventory::of(2_000))];
    let mut providers = vec![provider(nth, 0, None, disk)];
    for numa in [1, 4] {
        let offer = vec![
            ("VCPU", Inventory::of(32)),
            ("MEMORY_MB", Inventory::of(131_072)),
        ];
        providers.push(provider(nth, numa, Some(0), offer));
        let device = vec![(DEVICE, Inventory::of(8))];
        let mut fast = provider(nth, numa + 1, Some(numa), device.clone());
        fast.traits = vec![FAST.to_owned()];
        providers.push(fast);
        providers.push(provider(nth, numa + 2, Some(numa), device));
    }
    Tree::of(providers)
}

fn pci(nth: u64) -> Tree {
    let root = provider(nth, 0, None, vec![("VCPU", Inventory::of(1_024))]);
    let devices = (1..=DEVICES_PER_HOST).map(|device| {
        let unit = vec![(DEVICE, Inventory::of(1))];
        provider(nth, device, Some(0), unit)
    });
    Tree::of([root].into_iter().chain(devices).collect())
}

fn provider(
    tree: u64,
    node: u64,
    parent: Option<u64>,
    offer: Vec<(&'static str, Inventory)>,
) -> Provider {
    Provider {
        uuid: uuid(tree, node),
        name: match node {
            0 => format!("host-{tree}"),
            _ => format!("host-{tree}-{node}"),
        },
        parent: parent.map(|node| uuid(tree, node)),
        offer,
        traits: Vec::new(),
    }
}

fn root_uuid(tree: u64) -> Uuid {
    uuid(tree, 0)
}

fn uuid(tree: u64, node: u64) -> Uuid {
    let number = 0xe57a7e00_0000_4000_8000_000000000000 + (u128::from(tree) << 16);
    Uuid::from_u128(number + u128::from(node))
}

fn trait_name(nth: usize) -> String {
    format!("CUSTOM_TRAIT_{nth:02}")
}

impl Tree {
    fn of(providers: Vec<Provider>) -> Self {
        let holdings = Vec::new();
        Self {
            providers,
            holdings,
        }
    }

    fn hold(&mut self, nth: u64, resources: Vec<(&'static str, u64)>, released: bool) {
        let number = FIRST_CONSUMER + self.holdings.len() as u64;
        self.holdings.push(Holding {
            consumer: uuid(nth, number),
            resources,
            released,
        });
    }

    async fn make(&self, client: &Client) -> Result<(), Error> {
        for provider in &self.providers {
            provider.make(client).await?;
        }
        let root = self.providers[0].uuid;
        let claims: BTreeMap<Uuid, Claim> = (self.holdings.iter())
            .map(|held| {
                let claim = Claim::by("project", "user").and(root, &held.resources);
                (held.consumer, claim)
            })
            .collect();
        if !claims.is_empty() {
            client.post_allocations(&claims).await?;
        }
        for held in self.holdings.iter().filter(|held| held.released) {
            client.delete_allocations(held.consumer).await?;
        }
        Ok(())
    }

    /// Appends statements; `id` is the next one that no provider and no consumer has.
    fn write_sql(&self, sql: &mut String, id: &mut u64) {
        let root = *id;
        let mut ids = BTreeMap::new();
        for provider in &self.providers {
            ids.insert(provider.uuid, *id);
            let parent = match provider.parent {
                Some(parent) => ids[&parent].to_string(),
                None => "NULL".to_owned(),
            };
            write_line(
                sql,
                format_args!(
                    "INSERT INTO resource_providers (id, uuid, name, generation, \
                     root_provider_id, parent_provider_id) VALUES ({id}, '{}', '{}', 2, {root}, {parent});",
                    provider.uuid, provider.name
                ),
            );
            for (class, inventory) in &provider.offer {
                let Inventory {
                    total,
                    reserved,
                    min_unit,
                    max_unit,
                    step_size,
                    allocation_ratio,
                } = inventory;
                write_line(
                    sql,
                    format_args!(
                        "INSERT INTO inventories (resource_provider_id, resource_class_id, total, \
                         reserved, min_unit, max_unit, step_size, allocation_ratio) SELECT {id}, id, \
                         {total}, {reserved}, {min_unit}, {max_unit}, {step_size}, {allocation_ratio} \
                         FROM resource_classes WHERE name = '{class}';"
                    ),
                );
            }
            for name in &provider.traits {
                write_line(
                    sql,
                    format_args!(
                        "INSERT INTO resource_provider_traits (trait_id, resource_provider_id) \
                         SELECT id, {id} FROM traits WHERE name = '{name}';"
                    ),
                );
            }
            *id += 1;
        }
        for held in self.holdings.iter().filter(|held| !held.released) {
            let consumer = held.consumer;
            write_line(
                sql,
                format_args!(
                    "INSERT INTO consumers (uuid, project_id, user_id, generation) VALUES \
                     ('{consumer}', 1000, 1000, 1);"
                ),
            );
            for (class, used) in &held.resources {
                write_line(
                    sql,
                    format_args!(
                        "INSERT INTO allocations (resource_provider_id, consumer_id, \
                         resource_class_id, used) SELECT {root}, '{consumer}', id, {used} FROM \
                         resource_classes WHERE name = '{class}';"
                    ),
                );
            }
        }
    }
}

fn write_line(sql: &mut String, line: fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = writeln!(sql, "{line}");
}

impl Provider {
    async fn make(&self, client: &Client) -> Result<(), Error> {
        let mut new = NewProvider::named(&self.name).uuid(self.uuid);
        if let Some(parent) = self.parent {
            new = new.child_of(parent);
        }
        let made = client.create_provider(&new).await?;
        let offer = self.offer.iter().cloned();
        let set = client
            .replace_inventories(made.uuid, made.generation, offer)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_tree_is_made_twice() {
        let cloud = Cloud::of(Shape::Flat, 3).dressed(Dress::Used);
        assert_eq!(cloud.sql(), cloud.sql());
        let claims = cloud.sql().matches("INTO allocations").count();
        assert!(claims > 3, "only {claims} claims are left of a day");
    }

    #[test]
    fn rows_have_the_parents_and_roots_of_their_tree() {
        let sql = Cloud::of(Shape::Nested, 2).sql();
        assert!(sql.contains("'host-1', 2, 1007, NULL)"), "{sql}");
        assert!(sql.contains("'host-1-5', 2, 1007, 1011)"), "{sql}");
        assert_eq!(sql.matches("INTO inventories").count(), 18);
        assert_eq!(sql.matches(FAST).count(), 4);
    }
}
