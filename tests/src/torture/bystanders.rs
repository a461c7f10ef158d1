//! Uninvolved clients: on each node one writes and one reads, ten times per second each. Their
//! reads include long lists and candidate searches, like those of a cloud.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Claim, Client};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::cluster::Cluster;

const EVERY: Duration = Duration::from_millis(100);
/// Timeout of their requests: longer than a node waits for a leader.
const LIMIT: Duration = Duration::from_secs(10);

/// Latencies and failures of the uninvolved clients.
#[derive(Debug, Clone, Default)]
pub struct BystanderReport {
    /// Latency of each answered write.
    pub writes: Vec<Duration>,
    /// Latency of each answered read.
    pub reads: Vec<Duration>,
    /// Failed requests, as text.
    pub failed: Vec<String>,
}

impl BystanderReport {
    /// The highest latency of a write or read.
    pub fn max_latency(&self) -> Duration {
        let all = self.writes.iter().chain(&self.reads);
        all.max().copied().unwrap_or_default()
    }

    /// Whether at least one write and one read were answered.
    pub fn any_answered(&self) -> bool {
        !self.writes.is_empty() && !self.reads.is_empty()
    }
}

impl fmt::Display for BystanderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let worst = |all: &[Duration]| all.iter().max().copied().unwrap_or_default();
        write!(
            f,
            "{} writes, the slowest {:.0?}, {} reads, the slowest {:.0?}, {} failed",
            self.writes.len(),
            worst(&self.writes),
            self.reads.len(),
            worst(&self.reads),
            self.failed.len()
        )?;
        match self.failed.first() {
            Some(first) => write!(f, " ({first})"),
            None => Ok(()),
        }
    }
}

/// Tasks of the uninvolved clients, until stopped.
pub(super) struct Bystanders {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<BystanderReport>>,
}

impl Bystanders {
    /// Starts clients that claim from and read these providers, and that list the tree of `tree`.
    pub(super) fn start(cluster: &Cluster, providers: &[Uuid], tree: Uuid) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let mut tasks = Vec::new();
        for (nth, client) in cluster.clients().into_iter().enumerate() {
            let client = client
                .with_attempt_timeout(LIMIT)
                .with_patience(Duration::ZERO);
            let provider = providers[nth % providers.len()];
            tasks.push(tokio::spawn(write(client.clone(), provider, stop.clone())));
            tasks.push(tokio::spawn(read(client, provider, tree, stop.clone())));
        }
        Self { stop, tasks }
    }

    pub(super) async fn stop(self) -> anyhow::Result<BystanderReport> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = BystanderReport::default();
        for task in self.tasks {
            let BystanderReport {
                writes,
                reads,
                failed,
            } = task.await?;
            all.writes.extend(writes);
            all.reads.extend(reads);
            all.failed.extend(failed);
        }
        Ok(all)
    }
}

async fn write(client: Client, provider: Uuid, stop: Arc<AtomicBool>) -> BystanderReport {
    let mut seen = BystanderReport::default();
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let claim = Claim::by("project", "user").and(provider, &[("VCPU", 1)]);
        match client.put_allocations(Uuid::new_v4(), &claim).await {
            Ok(()) => seen.writes.push(begun.elapsed()),
            Err(error) => seen.failed.push(error.to_string()),
        }
        tokio::time::sleep(EVERY).await;
    }
    seen
}

async fn read(
    client: Client,
    provider: Uuid,
    tree: Uuid,
    stop: Arc<AtomicBool>,
) -> BystanderReport {
    let mut seen = BystanderReport::default();
    let paths = [
        format!("/resource_providers/{provider}/inventories"),
        format!("/resource_providers?in_tree={tree}"),
        "/allocation_candidates?resources=VCPU:1&limit=5".to_owned(),
    ];
    let mut paths = paths.iter().cycle();
    while !stop.load(Ordering::Relaxed)
        && let Some(path) = paths.next()
    {
        let begun = Instant::now();
        match client.call(ApiRequest::get(path)).await {
            Ok(_) => seen.reads.push(begun.elapsed()),
            Err(error) => seen.failed.push(error.to_string()),
        }
        tokio::time::sleep(EVERY).await;
    }
    seen
}
