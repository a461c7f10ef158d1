//! Far more clients than a cluster can serve, who give up after two seconds and come again.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use placement_client::{Claim, Client, Error};
use tokio::task::JoinSet;
use tokio::time::sleep;
use uuid::Uuid;

use super::{Told, estate, term};
use crate::cluster::Cluster;
use crate::process_cost;

/// When clients give up.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long those wait who are turned away, before they come again.
const PAUSE: Duration = Duration::from_millis(100);
/// Numbers of clients among which the peak is looked for.
const PEAK_AMONG: [usize; 3] = [32, 64, 128];

/// What came of it.
#[derive(Debug)]
pub struct Overload {
    /// Clients at the peak.
    pub clients: usize,
    /// Writes per second that were answered at the peak, before and after.
    pub peak: f64,
    /// Writes per second that were answered in time under ten times the load.
    pub goodput: f64,
    /// Requests per second that were sent then.
    pub offered: f64,
    /// What those were told who got nothing.
    pub told: Told,
    /// The most memory that a node had above what it had at the peak, in bytes.
    pub memory: u64,
    /// Whether the term has changed.
    pub election: bool,
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} clients: {:.0} writes/s; ten times as many: {:.0} of {:.0} requests/s, {:.0} % of the \
             peak; {} MiB more{}; told: {}",
            self.clients,
            self.peak,
            self.goodput,
            self.offered,
            100.0 * self.goodput / self.peak,
            self.memory / (1024 * 1024),
            if self.election { ", an election" } else { "" },
            self.told
        )
    }
}

/// Finds the peak, then lets ten times as many clients loose, each for so long.
pub async fn overload(cluster: &mut Cluster, each: Duration) -> anyhow::Result<Overload> {
    let estate = estate(cluster).await?;
    let mut best = (0, 0.0);
    for clients in PEAK_AMONG {
        let (answered, ..) = load(cluster, &estate, clients, each).await;
        if answered > best.1 {
            best = (clients, answered);
        }
    }
    let (clients, peak_before) = best;
    let pids: Vec<_> = (cluster.ids().into_iter())
        .map(|id| cluster.process(id).pid())
        .collect();
    let mut before = Vec::new();
    for pid in &pids {
        process_cost::forget_peak(*pid)?;
        before.push(process_cost::memory(*pid)?.resident);
    }
    let term_before = term(cluster).await?;
    let (goodput, offered, told) = load(cluster, &estate, 10 * clients, each).await;
    let mut memory = 0;
    for (pid, before) in pids.iter().zip(before) {
        memory = memory.max(process_cost::memory(*pid)?.peak.saturating_sub(before));
    }
    // The machine may have become slower or faster meanwhile.
    let (peak_after, ..) = load(cluster, &estate, clients, each).await;
    Ok(Overload {
        clients,
        peak: f64::midpoint(peak_before, peak_after),
        goodput,
        offered,
        told,
        memory,
        election: term(cluster).await? != term_before,
    })
}

/// Writes answered and requests sent per second.
async fn load(
    cluster: &Cluster,
    estate: &[Uuid],
    clients: usize,
    each: Duration,
) -> (f64, f64, Told) {
    let (answered, sent) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let nodes = cluster.clients();
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for nth in 0..clients {
        let client = (nodes[nth % nodes.len()].clone())
            .with_attempt_timeout(PATIENCE)
            .with_patience(Duration::ZERO);
        let provider = estate[nth % estate.len()];
        let (answered, sent) = (answered.clone(), sent.clone());
        tasks.spawn(async move {
            let mut told = Told::default();
            while begun.elapsed() < each {
                sent.fetch_add(1, Ordering::Relaxed);
                match write(&client, provider).await {
                    Ok(()) => {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => {
                        told.note(match error {
                            Error::OutcomeUnknown { .. } => {
                                "no answer in time, or an unknown outcome"
                            }
                            Error::NothingCommitted { .. } => "503, to come again",
                            _ => "something else",
                        });
                        sleep(PAUSE).await;
                    }
                }
            }
            told
        });
    }
    let mut told = Told::default();
    while let Some(one) = tasks.join_next().await {
        told.merge(one.expect("a client does not panic"));
    }
    let elapsed = begun.elapsed().as_secs_f64();
    let per_second = |count: &AtomicU64| count.load(Ordering::Relaxed) as f64 / elapsed;
    (per_second(&answered), per_second(&sent), told)
}

async fn write(client: &Client, provider: Uuid) -> Result<(), Error> {
    let claim = Claim::by("project", "user").and(provider, &[("VCPU", 1)]);
    client.put_allocations(Uuid::new_v4(), &claim).await
}
