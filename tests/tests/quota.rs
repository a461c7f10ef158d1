//! Counting for quotas as Nova does it: `GET /usages` by project, user and consumer type is the
//! sum of what the consumers hold, whatever was done before and whichever node is asked.

#![allow(clippy::unwrap_used)] // A test may fail.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use placement_client::{ApiRequest, ApiResponse, Inventory, NewProvider, Resources};
use placement_tests::cluster::Cluster;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use uuid::Uuid;

const STEPS: usize = 300;
const WALKERS: u64 = 5;
const WALKERS_STEPS: usize = 60;

/// What clients below 1.8, which know no owners, write down as project and user.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";
const PROJECTS: [&str; 3] = ["red", "green", "blue"];
const USERS: [&str; 3] = ["ann", "bob", "cid"];
const TYPES: [&str; 3] = ["INSTANCE", "MIGRATION", "CUSTOM_VOLUME"];
/// Classes of each provider, with its capacity. Small enough that claims are refused.
const OFFER: [(&str, u64); 3] = [("VCPU", 24), ("MEMORY_MB", 6000), ("PCI_DEVICE", 8)];

/// By provider and class.
type Holding = BTreeMap<Uuid, Resources>;

/// What a consumer holds, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Consumer {
    project: String,
    user: String,
    /// `None`: written by clients below 1.38 only.
    kind: Option<String>,
    generation: u64,
    holding: Holding,
}

type Ledger = BTreeMap<Uuid, Consumer>;

/// A cluster whose every request goes to a node chosen at random.
struct Cloud {
    cluster: Cluster,
    providers: Vec<Uuid>,
}

impl Cloud {
    async fn new(providers: u128) -> Self {
        let cluster = Cluster::start(3).await.unwrap();
        let client = cluster.client();
        let providers: Vec<_> = (1..=providers).map(Uuid::from_u128).collect();
        for (nth, &uuid) in providers.iter().enumerate() {
            let new = NewProvider::named(&format!("host-{nth}")).uuid(uuid);
            client.create_provider(&new).await.unwrap();
            let offer = OFFER.map(|(class, total)| (class, Inventory::of(total)));
            client.replace_inventories(uuid, 0, offer).await.unwrap();
        }
        Self { cluster, providers }
    }

    async fn ask(&self, random: &mut SmallRng, request: ApiRequest) -> ApiResponse {
        let client = self.cluster.client_of(random.random_range(1..=3));
        client.request(request).await.unwrap()
    }
}

/// One random client with what it knows of its consumers.
struct Walker {
    cloud: Arc<Cloud>,
    random: SmallRng,
    ledger: Ledger,
    /// Consumers that hold nothing any more; their uuids may come back.
    former: Vec<Uuid>,
    /// Nobody else writes, so every reply can be foretold.
    alone: bool,
    refused: usize,
}

impl Walker {
    fn new(cloud: Arc<Cloud>, seed: u64, alone: bool) -> Self {
        Self {
            cloud,
            random: SmallRng::seed_from_u64(seed),
            ledger: Ledger::new(),
            former: Vec::new(),
            alone,
            refused: 0,
        }
    }

    async fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..40 => self.claim().await,
            40..55 => self.resize().await,
            55..70 => self.migrate().await,
            70..78 => self.hand_over().await,
            78..84 => self.write_without_knowing_better().await,
            84..96 => self.delete().await,
            _ => self.write_an_old_generation().await,
        }
    }

    /// A new consumer. Now and then its client is too old to name a type, or even an owner.
    async fn claim(&mut self) {
        let uuid = match self.random.random_bool(0.3) {
            true => self.former.choose(&mut self.random).copied(),
            false => None,
        };
        let new = Consumer {
            generation: 0,
            holding: self.any_holding(),
            ..self.any_owner()
        };
        let version = match new.kind {
            Some(_) => "1.39",
            None => "1.37",
        };
        let uuid = uuid.unwrap_or_else(|| Uuid::from_u128(self.random.random()));
        self.put(uuid, new, None, version).await;
    }

    async fn resize(&mut self) {
        let Some((uuid, old)) = self.any_consumer() else {
            return;
        };
        let holding = self.any_holding();
        let generation = Some(old.generation);
        self.put(uuid, Consumer { holding, ..old }, generation, "1.39")
            .await;
    }

    /// As Nova does: what the instance held goes to the migration's consumer, and the instance gets
    /// the same elsewhere, in one request.
    async fn migrate(&mut self) {
        let Some((instance, old)) = self.any_consumer() else {
            return;
        };
        let target = self.any_provider();
        let mut moved: Resources = BTreeMap::new();
        for (class, amount) in old.holding.values().flatten() {
            *moved.entry(class.clone()).or_default() += amount;
        }
        let migration = Uuid::from_u128(self.random.random());
        let source = Consumer {
            kind: Some("MIGRATION".to_owned()),
            generation: 0,
            ..old.clone()
        };
        let destination = Consumer {
            holding: BTreeMap::from([(target, moved)]),
            kind: Some(old.kind.clone().unwrap_or_else(|| "INSTANCE".to_owned())),
            ..old.clone()
        };
        let body = json!({
            migration.to_string(): body(&source, None, "1.39"),
            instance.to_string(): body(&destination, Some(old.generation), "1.39"),
        });
        let request = ApiRequest::post("/allocations").json(&body);
        self.write(request, [(migration, source), (instance, destination)])
            .await;
    }

    /// Another project, user or type takes it over.
    async fn hand_over(&mut self) {
        let Some((uuid, old)) = self.any_consumer() else {
            return;
        };
        let mut new = self.any_owner();
        let version = match new.kind {
            Some(_) => "1.39",
            None => "1.37",
        };
        // A client that knows no types leaves it as it is.
        new.kind = new.kind.or(old.kind);
        let new = Consumer {
            holding: old.holding,
            generation: old.generation,
            ..new
        };
        self.put(uuid, new, Some(old.generation), version).await;
    }

    /// A client below 1.8 names no owner, and takes it from those who did.
    async fn write_without_knowing_better(&mut self) {
        let Some((uuid, old)) = self.any_consumer() else {
            return;
        };
        let new = Consumer {
            project: NOBODY.to_owned(),
            user: NOBODY.to_owned(),
            holding: self.any_holding(),
            ..old
        };
        self.put(uuid, new, None, "1.7").await;
    }

    async fn delete(&mut self) {
        let Some((uuid, old)) = self.any_consumer() else {
            return;
        };
        if self.random.random() {
            let request = ApiRequest::delete(&path(uuid));
            let answer = self.cloud.ask(&mut self.random, request).await;
            assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
            self.record(uuid, None);
        } else {
            let generation = Some(old.generation);
            let holding = Holding::new();
            self.put(uuid, Consumer { holding, ..old }, generation, "1.39")
                .await;
        }
    }

    async fn write_an_old_generation(&mut self) {
        let Some((uuid, old)) = self.any_consumer() else {
            return;
        };
        let version = if old.kind.is_some() { "1.39" } else { "1.37" };
        let body = body(&old, Some(old.generation - 1), version);
        let request = ApiRequest::put(&path(uuid))
            .microversion(version)
            .json(&body);
        let answer = self.cloud.ask(&mut self.random, request).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{answer:?}");
    }

    async fn put(&mut self, uuid: Uuid, mut new: Consumer, generation: Option<u64>, version: &str) {
        if version == "1.39" {
            new.kind.get_or_insert_with(|| "INSTANCE".to_owned());
        }
        let request = ApiRequest::put(&path(uuid))
            .microversion(version)
            .json(&body(&new, generation, version));
        self.write(request, [(uuid, new)]).await;
    }

    /// Sends a write of these consumers and notes what came of it.
    async fn write<const N: usize>(&mut self, request: ApiRequest, new: [(Uuid, Consumer); N]) {
        let mut after = self.ledger.clone();
        after.extend(new.iter().cloned());
        let fits = within_capacity(&after);
        let answer = self.cloud.ask(&mut self.random, request.clone()).await;
        let accepted = answer.status == StatusCode::NO_CONTENT;
        assert!(
            accepted || answer.status == StatusCode::CONFLICT,
            "{request:?}: {answer:?}"
        );
        if self.alone {
            assert_eq!(accepted, fits, "{request:?}: {answer:?}");
        }
        if !accepted {
            self.refused += 1;
            return;
        }
        for (uuid, mut consumer) in new {
            consumer.generation += 1;
            self.record(uuid, Some(consumer));
        }
    }

    fn record(&mut self, uuid: Uuid, consumer: Option<Consumer>) {
        match consumer.filter(|consumer| !consumer.holding.is_empty()) {
            Some(consumer) => {
                self.former.retain(|former| *former != uuid);
                self.ledger.insert(uuid, consumer);
            }
            None => {
                self.ledger.remove(&uuid);
                self.former.push(uuid);
            }
        }
    }

    fn any_consumer(&mut self) -> Option<(Uuid, Consumer)> {
        let all: Vec<_> = self.ledger.keys().copied().collect();
        let uuid = *all.choose(&mut self.random)?;
        Some((uuid, self.ledger[&uuid].clone()))
    }

    fn any_provider(&mut self) -> Uuid {
        *self.cloud.providers.choose(&mut self.random).unwrap()
    }

    /// An owner and a type, one in six times none.
    fn any_owner(&mut self) -> Consumer {
        let random = &mut self.random;
        let typed = random.random_bool(5.0 / 6.0);
        Consumer {
            project: (*PROJECTS.choose(random).unwrap()).to_owned(),
            user: (*USERS.choose(random).unwrap()).to_owned(),
            kind: typed.then(|| (*TYPES.choose(random).unwrap()).to_owned()),
            generation: 0,
            holding: Holding::new(),
        }
    }

    /// Something of one or two providers.
    fn any_holding(&mut self) -> Holding {
        let mut holding = Holding::new();
        for _ in 0..self.random.random_range(1..=2) {
            let provider = self.any_provider();
            let mut resources = Resources::new();
            for (class, total) in OFFER {
                if resources.is_empty() || self.random.random() {
                    let amount = self.random.random_range(1..=total / 4);
                    resources.insert(class.to_owned(), amount);
                }
            }
            holding.insert(provider, resources);
        }
        holding
    }
}

fn path(consumer: Uuid) -> String {
    format!("/allocations/{consumer}")
}

/// The body of a write at 1.39, 1.37 (no type) or 1.7 (no owner, a list).
fn body(consumer: &Consumer, generation: Option<u64>, version: &str) -> Value {
    if version == "1.7" {
        let list = consumer.holding.iter().map(|(provider, resources)| {
            json!({ "resource_provider": { "uuid": provider }, "resources": resources })
        });
        return json!({ "allocations": list.collect::<Vec<_>>() });
    }
    let allocations: BTreeMap<_, _> = consumer
        .holding
        .iter()
        .map(|(provider, resources)| (provider, json!({ "resources": resources })))
        .collect();
    let mut body = json!({
        "allocations": allocations,
        "project_id": consumer.project,
        "user_id": consumer.user,
        "consumer_generation": generation,
    });
    if version == "1.39" {
        body["consumer_type"] = json!(consumer.kind);
    }
    body
}

fn within_capacity(ledger: &Ledger) -> bool {
    let mut used: BTreeMap<(Uuid, &str), u64> = BTreeMap::new();
    for (provider, resources) in ledger.values().flat_map(|consumer| &consumer.holding) {
        for (class, amount) in resources {
            *used.entry((*provider, class)).or_default() += amount;
        }
    }
    let capacity: BTreeMap<_, _> = OFFER.into();
    used.iter()
        .all(|((_, class), used)| *used <= capacity[class])
}

/// What `GET /usages` shall answer, reckoned from what each consumer holds. `version` decides the
/// shape; without a `kind` every type is shown.
fn reckon(
    ledger: &Ledger,
    project: &str,
    user: Option<&str>,
    kind: Option<&str>,
    version: &str,
) -> Value {
    let mut sums: BTreeMap<&str, Resources> = BTreeMap::new();
    for consumer in ledger.values() {
        let type_name = consumer.kind.as_deref().unwrap_or("unknown");
        let key = match kind {
            _ if version != "1.39" => "flat",
            Some("all") => "all",
            Some(kind) if kind != type_name => continue,
            _ => type_name,
        };
        if consumer.project != project || user.is_some_and(|user| consumer.user != user) {
            continue;
        }
        let sum = sums.entry(key).or_default();
        for (class, amount) in consumer.holding.values().flatten() {
            *sum.entry(class.clone()).or_default() += amount;
        }
        if key != "flat" {
            *sum.entry("consumer_count".to_owned()).or_default() += 1;
        }
    }
    match version {
        "1.39" => json!(sums),
        _ => json!(sums.remove("flat").unwrap_or_default()),
    }
}

/// Every question that `GET /usages` takes, each to a node chosen at random.
async fn assert_counts(cloud: &Cloud, random: &mut SmallRng, ledger: &Ledger) {
    let users = USERS.map(Some).into_iter().chain([None, Some(NOBODY)]);
    let users: Vec<_> = users.collect();
    let kinds = ["all", "unknown"].into_iter().chain(TYPES).map(Some);
    let kinds: Vec<_> = kinds.chain([None]).collect();
    for project in PROJECTS.into_iter().chain([NOBODY, "nobody-else"]) {
        for &user in &users {
            for &kind in &kinds {
                assert_count(cloud, random, ledger, (project, user, kind), "1.39").await;
            }
            for version in ["1.37", "1.9"] {
                assert_count(cloud, random, ledger, (project, user, None), version).await;
            }
        }
    }
}

async fn assert_count(
    cloud: &Cloud,
    random: &mut SmallRng,
    ledger: &Ledger,
    (project, user, kind): (&str, Option<&str>, Option<&str>),
    version: &str,
) {
    let mut request = ApiRequest::get("/usages")
        .microversion(version)
        .query("project_id", project);
    for (key, value) in [("user_id", user), ("consumer_type", kind)] {
        if let Some(value) = value {
            request = request.query(key, value);
        }
    }
    let answer = cloud.ask(random, request).await;
    let question = format!("{project} {user:?} {kind:?} at {version}");
    assert_eq!(answer.status, StatusCode::OK, "{question}: {answer:?}");
    let counted: Value = answer.json().unwrap();
    let expected = json!({ "usages": reckon(ledger, project, user, kind, version) });
    assert_eq!(counted, expected, "{question}");
}

/// What the API says that each of these consumers holds.
async fn as_told(cloud: &Cloud, random: &mut SmallRng, ledger: &Ledger) -> Ledger {
    let mut told = Ledger::new();
    for &uuid in ledger.keys() {
        let client = cloud.cluster.client_of(random.random_range(1..=3));
        let seen = client.allocations(uuid).await.unwrap();
        let holding = seen.allocations.into_iter();
        let consumer = Consumer {
            project: seen.project_id.unwrap(),
            user: seen.user_id.unwrap(),
            kind: seen.consumer_type.filter(|kind| kind != "unknown"),
            generation: seen.consumer_generation.unwrap(),
            holding: holding.map(|(uuid, one)| (uuid, one.resources)).collect(),
        };
        told.insert(uuid, consumer);
    }
    told
}

/// From the environment to replay a failure, else a new one.
fn seed() -> u64 {
    let seed = match std::env::var("PLACEMENT_SEED") {
        Ok(text) => text.parse().expect("PLACEMENT_SEED is a number"),
        Err(_) => rand::random(),
    };
    eprintln!("replay with PLACEMENT_SEED={seed}");
    seed
}

#[tokio::test]
async fn a_count_is_the_sum_of_all_allocations_whatever_was_done() {
    let seed = seed();
    let cloud = Arc::new(Cloud::new(4).await);
    let mut walker = Walker::new(cloud.clone(), seed, true);
    let mut random = SmallRng::seed_from_u64(seed.wrapping_add(1));
    for step in 1..=STEPS {
        walker.step().await;
        let project = *PROJECTS.choose(&mut random).unwrap();
        let question = (project, None, None);
        assert_count(&cloud, &mut random, &walker.ledger, question, "1.39").await;
        if step % 100 == 0 {
            assert_counts(&cloud, &mut random, &walker.ledger).await;
        }
    }
    assert!(walker.refused > 0, "nothing was ever refused");
    let told = as_told(&cloud, &mut random, &walker.ledger).await;
    assert_eq!(told, walker.ledger);

    for uuid in walker.ledger.keys() {
        let request = ApiRequest::delete(&path(*uuid));
        cloud.ask(&mut random, request).await.success().unwrap();
    }
    assert_counts(&cloud, &mut random, &Ledger::new()).await;
}

#[tokio::test]
async fn nothing_is_lost_of_a_count_when_many_write_at_once() {
    let seed = seed();
    let cloud = Arc::new(Cloud::new(4).await);
    let walkers: Vec<_> = (0..WALKERS)
        .map(|nth| {
            let mut walker = Walker::new(cloud.clone(), seed.wrapping_add(nth), false);
            tokio::spawn(async move {
                for _ in 0..WALKERS_STEPS {
                    walker.step().await;
                }
                walker.ledger
            })
        })
        .collect();
    let mut ledger = Ledger::new();
    for walker in walkers {
        ledger.extend(walker.await.unwrap());
    }
    let mut random = SmallRng::seed_from_u64(seed);
    assert_eq!(as_told(&cloud, &mut random, &ledger).await, ledger);
    assert_counts(&cloud, &mut random, &ledger).await;
}
