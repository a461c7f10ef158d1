//! The others: on each node one who writes and one who reads, ten times a second each. Among the
//! reads are long lists and searches for candidates, as those of a cloud are.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Claim, Client};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::cluster::Cluster;

const EVERY: Duration = Duration::from_millis(100);
/// Longer than a node waits for the cluster.
const LIMIT: Duration = Duration::from_secs(10);

/// What they saw.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// What each answered request took.
    pub writes: Vec<Duration>,
    /// The same of reads.
    pub reads: Vec<Duration>,
    /// What was not answered as in peace.
    pub failed: Vec<String>,
}

impl Seen {
    /// What the slowest request took.
    pub fn worst(&self) -> Duration {
        let all = self.writes.iter().chain(&self.reads);
        all.max().copied().unwrap_or_default()
    }

    /// Whether a write and a read were answered.
    pub fn are_served(&self) -> bool {
        !self.writes.is_empty() && !self.reads.is_empty()
    }
}

impl fmt::Display for Seen {
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

/// Those who are at work.
pub(super) struct Bystanders {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Seen>>,
}

impl Bystanders {
    /// They claim from and read these, and what is in the tree of one.
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

    pub(super) async fn stop(self) -> anyhow::Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Seen::default();
        for task in self.tasks {
            let Seen {
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

async fn write(client: Client, provider: Uuid, stop: Arc<AtomicBool>) -> Seen {
    let mut seen = Seen::default();
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

async fn read(client: Client, provider: Uuid, tree: Uuid, stop: Arc<AtomicBool>) -> Seen {
    let mut seen = Seen::default();
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
