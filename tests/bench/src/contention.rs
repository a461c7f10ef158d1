//! Clients that want the same hosts at once, with room for half of them: each client claims in one
//! request, or it searches and tries the candidates in their order.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::ensure;
use futures::future::try_join_all;
use placement_client::claims::{Allocations, Assignment, ClaimRequest, Claimant};
use placement_client::upstream::Allocation;
use placement_client::{CandidateQuery, Claim, Client, Error, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use uuid::Uuid;

use crate::bars::{Bars, Bound, Doubt, ROUNDS};
use crate::{cores, progress};

const CLIENTS: u64 = 64;
const HOSTS: u64 = 16;
/// Half of the clients find room.
const CLIENTS_PER_HOST: u64 = CLIENTS / HOSTS / 2;

#[derive(Clone, Copy)]
enum Way {
    OneClaim,
    SearchAndWrite,
}

/// Races of one round: the clients that were served or refused, the time until then, and the
/// writes that they sent.
#[derive(Default)]
struct Races {
    clients: u64,
    took: Duration,
    writes: u64,
}

pub(crate) async fn measure(seconds: u64, bars: &mut Bars) -> anyhow::Result<()> {
    cores::move_to(&cores::all()?)?;
    let cluster = Cluster::start(3).await?;
    let hosts = hosts(&cluster.client()).await?;
    let (mut attempts, mut without, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        progress(&format!(
            "round {round} of {ROUNDS}: races of {CLIENTS} clients"
        ));
        let until = Duration::from_secs(seconds);
        let claimed = races(&cluster, &hosts, Way::OneClaim, until).await?;
        let searched = races(&cluster, &hosts, Way::SearchAndWrite, until).await?;
        attempts.push(claimed.writes_per_client());
        without.push(searched.writes_per_client());
        rates.push(claimed.per_second() / searched.per_second());
    }
    let sure = Doubt::default();
    let what = format!("{CLIENTS} clients, room for half of them");
    let plain = |value| format!("{value:.1}");
    let one = Some(Bound::AtMost(1.0));
    let claims = format!("{what}: writes per client, claims");
    bars.hold(&claims, &attempts, one, sure, plain);
    let searches = format!("{what}: writes per client, search and PUT");
    bars.hold(&searches, &without, None, sure, plain);
    let ratio = |value| format!("{value:.2} ×");
    let rate = format!("{what}: clients per second, ratio of claims to search and PUT");
    bars.hold(&rate, &rates, None, sure, ratio);
    Ok(())
}

impl Races {
    fn writes_per_client(&self) -> f64 {
        self.writes as f64 / self.clients as f64
    }

    fn per_second(&self) -> f64 {
        self.clients as f64 / self.took.as_secs_f64()
    }
}

async fn hosts(client: &Client) -> anyhow::Result<Vec<Uuid>> {
    let mut hosts = Vec::new();
    for nth in 0..HOSTS {
        let host = client
            .create_provider(&NewProvider::named(&format!("host-{nth}")))
            .await?;
        let offer = [("VCPU", Inventory::with_total(CLIENTS_PER_HOST))];
        client
            .replace_inventories(host.uuid, host.generation, offer)
            .await?;
        hosts.push(host.uuid);
    }
    Ok(hosts)
}

async fn races(
    cluster: &Cluster,
    hosts: &[Uuid],
    way: Way,
    until: Duration,
) -> anyhow::Result<Races> {
    let clients = cluster.clients();
    let mut races = Races::default();
    while races.took < until {
        let started = Instant::now();
        let each = (0..CLIENTS as usize).map(async |nth| {
            let (client, consumer) = (&clients[nth % clients.len()], Uuid::new_v4());
            let (writes, won) = match way {
                Way::OneClaim => (1, claim(client, consumer, hosts).await?),
                Way::SearchAndWrite => search_and_write(client, consumer).await?,
            };
            anyhow::Ok((writes, won.then_some(consumer)))
        });
        let results = try_join_all(each).await?;
        races.took += started.elapsed();
        races.clients += CLIENTS;
        races.writes += results.iter().map(|(writes, _)| writes).sum::<u64>();
        let won: BTreeSet<_> = results.iter().filter_map(|(_, won)| *won).collect();
        ensure!(
            won.len() as u64 == CLIENTS / 2,
            "{} clients have room instead of {}",
            won.len(),
            CLIENTS / 2
        );
        try_join_all(won.iter().map(|one| clients[0].delete_allocations(*one))).await?;
    }
    Ok(races)
}

/// Whether the consumer gets room on one of the hosts.
async fn claim(client: &Client, consumer: Uuid, hosts: &[Uuid]) -> anyhow::Result<bool> {
    let choice = |host: &Uuid| {
        let resources = [("VCPU".to_owned(), 1)].into();
        let allocations: Allocations = [(
            host.to_string(),
            Allocation {
                generation: None,
                resources,
            },
        )]
        .into();
        [(consumer.to_string(), Assignment { allocations })].into()
    };
    let claimant = Claimant {
        project_id: "project".to_owned(),
        user_id: "user".to_owned(),
        consumer_type: Some("INSTANCE".to_owned()),
        consumer_generation: None,
    };
    let request = ClaimRequest {
        consumers: [(consumer.to_string(), claimant)].into(),
        choices: Some(hosts.iter().map(choice).collect()),
        ..ClaimRequest::default()
    };
    match client.claim(&request).await {
        Ok(_) => Ok(true),
        Err(Error::Refused(error)) if error.status == 409 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Number of writes, and whether one of the candidates had room. Searches again when all candidates
/// of a search are taken.
async fn search_and_write(client: &Client, consumer: Uuid) -> anyhow::Result<(u64, bool)> {
    let query = CandidateQuery::resources(&[("VCPU", 1)]).limit(HOSTS);
    let mut writes = 0;
    loop {
        let found = client.allocation_candidates(&query).await?;
        if found.allocation_requests.is_empty() {
            return Ok((writes, false));
        }
        for candidate in &found.allocation_requests {
            let mut wanted = Claim::by("project", "user");
            for host in candidate.allocations.keys() {
                wanted = wanted.and(*host, &[("VCPU", 1)]);
            }
            writes += 1;
            match client.put_allocations(consumer, &wanted).await {
                Ok(()) => return Ok((writes, true)),
                Err(Error::Refused(error)) if error.status == 409 => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
