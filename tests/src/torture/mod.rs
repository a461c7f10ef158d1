//! Bad days for a cluster of real processes: hostile clients, and far too many of them. While they are
//! at it, others work on, and what these see is what counts.

mod attacks;
mod bystanders;
mod overload;
mod told;

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Context;
use placement_client::{Inventory, NewProvider};
use uuid::Uuid;

use self::attacks::{ATTACKS, TRAIT, Target};
use self::bystanders::{Bystanders, Seen};
pub use self::overload::{Load, Overload, overload};
pub use self::told::Told;
use crate::cluster::Cluster;
use crate::process_cost::Growth;

/// How long the others' requests may take at most while a cluster is attacked.
pub const LATENCY_MAX: Duration = Duration::from_secs(1);
/// What the links carry between nodes that are asked for ten times the rate, in bits per second: little
/// enough for the clients beside them to send so much.
pub const OVERLOADED_LINK: u32 = 1_000_000;
/// How much memory a node may take above what it had before, in bytes.
pub const MEMORY_MAX: u64 = 512 * 1024 * 1024;
/// Short breaks between attacks, in which what one left behind goes.
const PAUSE: Duration = Duration::from_millis(500);

/// What came of one attack.
#[derive(Debug)]
pub struct Outcome {
    /// Which.
    pub attack: &'static str,
    /// What the attackers were told.
    pub told: Told,
    /// What the others saw.
    pub seen: Seen,
    /// The most memory that a node had above what it had before, in bytes.
    pub memory: u64,
    /// Whether the term has changed.
    pub election: bool,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attack, told, .. } = self;
        let election = if self.election { ", an election" } else { "" };
        let mib = self.memory / (1024 * 1024);
        let seen = &self.seen;
        write!(
            f,
            "{attack}: {seen}; {mib} MiB more{election}; told: {told}"
        )
    }
}

/// Carries out each attack for so long, one after the other, against a cluster of three. `said` is
/// given each outcome as it comes.
pub async fn hostile(
    cluster: &mut Cluster,
    each: Duration,
    mut said: impl FnMut(&Outcome),
) -> anyhow::Result<Vec<Outcome>> {
    let providers = providers(cluster).await?;
    let mut outcomes = Vec::new();
    // Once in peace: what the connections and the caches of the others take is no attacker's doing.
    let peace = Bystanders::start(cluster, &providers);
    tokio::time::sleep(Duration::from_secs(1).min(each)).await;
    peace.stop().await?;
    for (attack, run) in ATTACKS {
        let ids = cluster.ids();
        let pids: Vec<_> = ids.iter().map(|id| cluster.process(*id).pid()).collect();
        let growth = Growth::of(pids)?;
        let term = term(cluster).await?;
        let target = Target {
            places: ids.iter().map(|id| cluster.place(*id).clone()).collect(),
            leader: cluster.leader().await?,
            provider: providers[0],
        };
        let bystanders = Bystanders::start(cluster, &providers);
        let told = run(target, Instant::now() + each).await;
        let seen = bystanders.stop().await?;
        let memory = (growth.most())
            .with_context(|| format!("a node has ended under the attack: {attack}"))?;
        let outcome = Outcome {
            attack,
            told,
            seen,
            memory,
            election: self::term(cluster).await? != term,
        };
        said(&outcome);
        outcomes.push(outcome);
        tokio::time::sleep(PAUSE).await;
    }
    cluster.wait_healthy().await?;
    cluster.assert_equal_states().await;
    Ok(outcomes)
}

/// The highest term that a node knows.
async fn term(cluster: &Cluster) -> anyhow::Result<u64> {
    let statuses = cluster.statuses().await;
    let term = statuses.iter().map(|status| status.term).max();
    term.context("no node says in which term it is")
}

/// Providers that the others claim from.
async fn providers(cluster: &Cluster) -> anyhow::Result<Vec<Uuid>> {
    let client = cluster.client();
    let mut providers = Vec::new();
    for nth in 1..=8 {
        let uuid = Uuid::from_u128(nth);
        let new = NewProvider::named(&format!("provider-{nth}")).uuid(uuid);
        client.create_provider(&new).await?;
        let offer = [("VCPU", Inventory::of(1_000_000_000))];
        client.replace_inventories(uuid, 0, offer).await?;
        providers.push(uuid);
    }
    // What twice as many ways lead through with each group of a request.
    client.ensure_trait(TRAIT).await?;
    for nth in 1..=2 {
        let uuid = Uuid::new_v4();
        let new = NewProvider::named(&format!("provider-1-{nth}")).uuid(uuid);
        client.create_provider(&new.child_of(providers[0])).await?;
        client.replace_provider_traits(uuid, 0, [TRAIT]).await?;
    }
    Ok(providers)
}
