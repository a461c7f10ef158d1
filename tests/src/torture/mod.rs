//! Attacks on a cluster of real processes by hostile clients and by overload. Uninvolved clients
//! continue to work at the same time; their latencies and failures decide the outcome.

mod answers;
mod attacks;
mod bystanders;
mod overload;

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::stream::{self, StreamExt};
use placement_client::{ApiRequest, Inventory, NewProvider};
use uuid::Uuid;

pub use self::answers::Answers;
use self::attacks::{ATTACKS, Attack, AttackTarget, ELSEWHERE, TRAIT};
use self::bystanders::{BystanderReport, Bystanders};
pub use self::overload::{Load, Overload, overload};
use crate::cluster::Cluster;
use crate::process_cost::Growth;

/// Latency limit of the uninvolved clients during an attack.
pub const LATENCY_MAX: Duration = Duration::from_secs(1);
/// Bandwidth of the links between nodes under ten times the write rate, in bits per second: low
/// enough for clients on the same machine to send that much.
pub const OVERLOADED_LINK: u32 = 1_000_000;
/// Limit of the memory growth of a node, in bytes.
pub const MEMORY_MAX: u64 = 512 * 1024 * 1024;
/// Number of providers for long lists: children in one tree, and others. While two bodies of nearly
/// the maximum size are held, the list of the tree does not fit into the remaining memory for
/// answers.
const IN_TREE: usize = 400;
const OTHERS: usize = 1_000;
/// Pause between attacks, in which the effects of the previous one fade.
const PAUSE: Duration = Duration::from_millis(500);

/// Maximum number of attempts of an attack, which is repeated if no uninvolved client was served: a
/// cluster that does not serve them fails each time, a busy machine only occasionally.
const ATTEMPTS: usize = 3;

/// The outcome of one attack.
#[derive(Debug)]
pub struct Outcome {
    /// Name of the attack.
    pub attack: &'static str,
    /// Answers to the attackers.
    pub answers: Answers,
    /// Latencies and failures of the uninvolved clients.
    pub seen: BystanderReport,
    /// The largest memory growth of a node, in bytes.
    pub memory: u64,
    /// Whether there was an election during the attack.
    pub election: bool,
    /// Whether attackers and uninvolved clients were the same user at the same address.
    same_caller: bool,
}

impl Outcome {
    /// Failures of the uninvolved clients. If attackers and clients are one caller, refusals by the
    /// caller limit do not count.
    pub fn harm(&self) -> impl Iterator<Item = &String> {
        let is_own = |failed: &String| self.same_caller && failed.contains("for this user now");
        self.seen
            .failed
            .iter()
            .filter(move |failed| !is_own(failed))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            attack, answers, ..
        } = self;
        let election = if self.election { ", an election" } else { "" };
        let mib = self.memory / (1024 * 1024);
        let seen = &self.seen;
        write!(
            f,
            "{attack}: {seen}; {mib} MiB more{election}; answers: {answers}"
        )
    }
}

/// Runs each attack in turn, for the same time, against a cluster of three whose clients may use
/// TLS. Calls `report` with each outcome.
pub async fn hostile(
    cluster: &mut Cluster,
    each: Duration,
    mut report: impl FnMut(&Outcome),
) -> anyhow::Result<Vec<Outcome>> {
    let providers = providers(cluster).await?;
    let tree = long_lists(cluster).await?;
    let mut outcomes = Vec::new();
    // One run without an attack: the memory for connections and caches of the uninvolved clients
    // does not count as growth.
    let peace = Bystanders::start(cluster, &providers, tree);
    tokio::time::sleep(Duration::from_secs(1).min(each)).await;
    peace.stop().await?;
    for attack in ATTACKS {
        for _ in 0..ATTEMPTS {
            let outcome = carry_out(cluster, attack, &providers, tree, each).await?;
            report(&outcome);
            tokio::time::sleep(PAUSE).await;
            let ends = outcome.seen.any_answered();
            outcomes.push(outcome);
            if ends {
                break;
            }
        }
    }
    cluster.wait_healthy().await?;
    cluster.assert_equal_states().await;
    Ok(outcomes)
}

/// Runs one attack while uninvolved clients continue to work.
async fn carry_out(
    cluster: &mut Cluster,
    (attack, run): &Attack,
    providers: &[Uuid],
    tree: Uuid,
    each: Duration,
) -> anyhow::Result<Outcome> {
    let ids = cluster.ids();
    let pids: Vec<_> = ids.iter().map(|id| cluster.process(*id).pid()).collect();
    let growth = Growth::start(pids)?;
    let term = term(cluster).await?;
    let authority = cluster.options().authority.clone();
    let target = AttackTarget {
        places: ids.iter().map(|id| cluster.place(*id).clone()).collect(),
        leader: cluster.leader().await?,
        provider: providers[0],
        authority: authority.context("the cluster has no TLS")?,
    };
    let bystanders = Bystanders::start(cluster, providers, tree);
    let answers = run(target, Instant::now() + each).await;
    let seen = bystanders.stop().await?;
    let memory =
        (growth.most()).with_context(|| format!("a node ended during the attack: {attack}"))?;
    Ok(Outcome {
        attack,
        answers,
        seen,
        memory,
        election: self::term(cluster).await? != term,
        same_caller: !ELSEWHERE.contains(attack),
    })
}

/// The highest term that a node knows.
async fn term(cluster: &Cluster) -> anyhow::Result<u64> {
    let statuses = cluster.statuses().await;
    let term = statuses.iter().map(|status| status.term).max();
    term.context("no node reports its term")
}

/// Creates the providers that clients claim from.
async fn providers(cluster: &Cluster) -> anyhow::Result<Vec<Uuid>> {
    let client = cluster.client();
    let mut providers = Vec::new();
    for nth in 1..=8 {
        let uuid = Uuid::from_u128(nth);
        let new = NewProvider::named(&format!("provider-{nth}")).uuid(uuid);
        client.create_provider(&new).await?;
        let offer = [("VCPU", Inventory::with_total(1_000_000_000))];
        client.replace_inventories(uuid, 0, offer).await?;
        providers.push(uuid);
    }
    // Two children with the trait: each group of a request doubles the number of combinations.
    client.ensure_trait(TRAIT).await?;
    for nth in 1..=2 {
        let uuid = Uuid::new_v4();
        let new = NewProvider::named(&format!("provider-1-{nth}")).uuid(uuid);
        client.create_provider(&new.child_of(providers[0])).await?;
        client.replace_provider_traits(uuid, 0, [TRAIT]).await?;
    }
    Ok(providers)
}

/// Creates enough providers for lists that take a large part of the memory for answers: many in one
/// tree, whose root is returned, and more outside it.
async fn long_lists(cluster: &Cluster) -> anyhow::Result<Uuid> {
    let client = cluster.client();
    let root = Uuid::new_v4();
    let new = NewProvider::named("tree").uuid(root);
    client.create_provider(&new).await?;
    let all = (0..IN_TREE + OTHERS).map(|nth| {
        let new = NewProvider::named(&format!("listed-{nth}"));
        let new = if nth < IN_TREE {
            new.child_of(root)
        } else {
            new
        };
        let client = client.clone();
        async move { client.create_provider(&new).await }
    });
    let created: Vec<_> = stream::iter(all).buffer_unordered(64).collect().await;
    created
        .into_iter()
        .try_for_each(|created| created.map(drop))?;
    let list = format!("/resource_providers?in_tree={root}");
    let list = client.call(ApiRequest::get(&list)).await?;
    anyhow::ensure!(list.body.len() > 256 * 1024, "{} bytes", list.body.len());
    Ok(root)
}
