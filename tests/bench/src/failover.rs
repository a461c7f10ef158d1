//! The region of the leader is lost, with all its nodes at once, while clients elsewhere write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures::StreamExt;
use parking_lot::Mutex;
use placement_client::{Claim, Client};
use uuid::Uuid;

use crate::regions::{LEADERS_SITE, LEARNER, SITES, Sites};

const WRITERS: usize = 8;
/// How long there are writes before the loss, and after it.
const BEFORE: Duration = Duration::from_secs(2);
const AFTER: Duration = Duration::from_secs(2);
/// How long it may take at all.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Failover {
    /// From the loss until a write that began after it was acknowledged.
    pub(crate) took: Duration,
    /// Writes that were acknowledged, before and after.
    pub(crate) acknowledged: usize,
    /// Those of them that two survivors do not have, one of them the learner.
    pub(crate) lost: usize,
}

struct Acknowledged {
    consumer: Uuid,
    begun: Instant,
    at: Instant,
}

pub(crate) async fn measure(sites: &mut Sites, providers: &[Uuid]) -> anyhow::Result<Failover> {
    sites.settle().await?;
    let survivors: Vec<u64> = (1..=LEARNER)
        .filter(|id| SITES[*id as usize - 1] != LEADERS_SITE)
        .collect();
    let acknowledged: Arc<Mutex<Vec<Acknowledged>>> = Arc::default();
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|nth| {
            let client = sites.cluster.client_of(survivors[nth % survivors.len()]);
            let client = client.with_patience(Duration::ZERO);
            let provider = providers[nth % providers.len()];
            let (acknowledged, over) = (acknowledged.clone(), over.clone());
            tokio::spawn(write(client, provider, acknowledged, over))
        })
        .collect();
    tokio::time::sleep(BEFORE).await;
    let lost = Instant::now();
    let dead: Vec<u64> = (1..=LEARNER).filter(|id| !survivors.contains(id)).collect();
    for id in &dead {
        sites.cluster.kill_9(*id);
    }
    let first = loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let after = (acknowledged.lock().iter())
            .filter(|one| one.begun > lost)
            .map(|one| one.at)
            .min();
        if let Some(at) = after {
            break at;
        }
        ensure!(
            lost.elapsed() < LIMIT,
            "no write for {LIMIT:?} after the loss"
        );
    };
    tokio::time::sleep(AFTER).await;
    over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.context("a writer")?;
    }
    let acknowledged = std::mem::take(&mut *acknowledged.lock());
    let mut missing = 0;
    for id in [survivors[0], LEARNER] {
        let client = sites.cluster.client_of(id);
        let found = futures::stream::iter(&acknowledged).map(|one| {
            let client = client.clone();
            async move { client.allocations(one.consumer).await }
        });
        let found: Vec<_> = found.buffer_unordered(64).collect().await;
        for one in found {
            missing += usize::from(one?.allocations.is_empty());
        }
    }
    for id in dead {
        sites.start_node(id)?;
    }
    sites.cluster.wait_healthy().await?;
    Ok(Failover {
        took: first - lost,
        acknowledged: acknowledged.len(),
        lost: missing,
    })
}

async fn write(
    client: Client,
    provider: Uuid,
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
    over: Arc<AtomicBool>,
) {
    while !over.load(Ordering::Relaxed) {
        let claim = Claim::by("project", "user").and(provider, &[("VCPU", 1)]);
        let (consumer, begun) = (Uuid::new_v4(), Instant::now());
        // What fails was not acknowledged, and proves nothing.
        if client.put_allocations(consumer, &claim).await.is_ok() {
            let at = Instant::now();
            acknowledged.lock().push(Acknowledged {
                consumer,
                begun,
                at,
            });
        }
    }
}
