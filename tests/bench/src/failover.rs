//! Failover: all nodes of the leader's region are lost at once while clients elsewhere write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt};
use placement_client::{Claim, Client};
use uuid::Uuid;

use crate::sites::{LEADERS_SITE, LEARNER, Sites, site_of};

const WRITERS: usize = 8;
/// Duration of the writes before and after the loss.
const BEFORE: Duration = Duration::from_secs(2);
const AFTER: Duration = Duration::from_secs(15);

pub(crate) struct Failover {
    /// Time from the loss to the first acknowledgement of a write that began after it.
    pub(crate) took: Duration,
    /// Acknowledged writes, before and after the loss.
    pub(crate) acknowledged: usize,
    /// Acknowledged writes that a survivor or the learner does not have, counted per node.
    pub(crate) lost: usize,
}

#[derive(Clone)]
struct Acknowledged {
    consumer: Uuid,
    begun: Instant,
    at: Instant,
}

pub(crate) async fn measure(sites: &mut Sites, providers: &[Uuid]) -> anyhow::Result<Failover> {
    sites.settle().await?;
    let (dead, survivors): (Vec<u64>, Vec<u64>) =
        (1..=LEARNER).partition(|id| site_of(*id) == LEADERS_SITE);
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|nth| {
            let client = sites
                .cluster
                .client_of(survivors[nth % survivors.len()])
                .with_patience(Duration::ZERO);
            tokio::spawn(write(client, providers[nth], over.clone()))
        })
        .collect();
    tokio::time::sleep(BEFORE).await;
    let lost_at = Instant::now();
    for id in &dead {
        sites.cluster.kill_9(*id);
    }
    tokio::time::sleep(AFTER).await;
    over.store(true, Ordering::Relaxed);
    let acknowledged = futures::future::try_join_all(writers).await?.concat();
    let after = acknowledged.iter().filter(|one| one.begun > lost_at);
    let first = after
        .map(|one| one.at)
        .min()
        .with_context(|| format!("no write within {AFTER:?} of the loss"))?;
    let mut lost = 0;
    for id in [survivors[0], LEARNER] {
        let client = sites.cluster.client_of(id);
        let found: Vec<_> = futures::stream::iter(&acknowledged)
            .map(|one| client.allocations(one.consumer))
            .buffer_unordered(64)
            .try_collect()
            .await?;
        lost += found
            .iter()
            .filter(|one| one.allocations.is_empty())
            .count();
    }
    for id in dead {
        sites.start_node(id)?;
    }
    sites.cluster.wait_healthy().await?;
    let (took, acknowledged) = (first - lost_at, acknowledged.len());
    Ok(Failover {
        took,
        acknowledged,
        lost,
    })
}

async fn write(client: Client, provider: Uuid, over: Arc<AtomicBool>) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let claim = Claim::by("project", "user").and(provider, &[("VCPU", 1)]);
        let (consumer, begun) = (Uuid::new_v4(), Instant::now());
        // A write that fails was not acknowledged and proves nothing.
        if client.put_allocations(consumer, &claim).await.is_ok() {
            let at = Instant::now();
            acknowledged.push(Acknowledged {
                consumer,
                begun,
                at,
            });
        }
    }
    acknowledged
}
