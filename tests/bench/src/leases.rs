//! Writes while many leases end at once, compared with writes alone.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use placement_client::claims::{Allocations, Assignment, ClaimRequest, Claimant};
use placement_client::holds::NewHold;
use placement_client::upstream::Allocation;
use placement_client::{ApiRequest, Client};
use placement_tests::cluster::Cluster;
use tokio::time::sleep;
use uuid::Uuid;

use crate::bars::{Bars, Bound, Doubt, ROUNDS};
use crate::clouds::boundless;
use crate::load::{Load, writes};
use crate::{cores, progress, urls};

/// Number of leases that end at once.
const LEASES: usize = 100_000;
/// Consumers of one claim.
const CONSUMERS: usize = 1_000;
/// Time within which all leases of a round are made.
const MADE_WITHIN: Duration = Duration::from_secs(45);

pub(crate) async fn measure(seconds: u64, bars: &mut Bars) -> anyhow::Result<()> {
    cores::move_to(&cores::of_services()?)?;
    let cluster = Cluster::start(3).await?;
    let client = cluster.client();
    let providers = boundless(&client).await?;
    let writes = Load::on(&urls(&cluster, cluster.ids()), writes(), 64).seconds(seconds);
    writes.run().await?;
    let mut ratios = Vec::new();
    for round in 1..=ROUNDS {
        progress(&format!(
            "round {round} of {ROUNDS}: writes alone, and while {LEASES} leases end"
        ));
        let alone = writes.run().await?;
        let end = Instant::now() + MADE_WITHIN;
        for nth in 0..LEASES / CONSUMERS {
            hold(&client, providers[nth % providers.len()], end).await?;
        }
        let left = end.saturating_duration_since(Instant::now());
        ensure!(
            !left.is_zero(),
            "{LEASES} leases are not made in {MADE_WITHIN:?}"
        );
        sleep(left).await;
        let with = writes.run().await?;
        ratios.push(with.p99_ms / alone.p99_ms);
        all_have_ended(&client).await?;
    }
    let what = format!("PUT /allocations, 64 connections, while {LEASES} leases end: p99");
    let ratio = |value| format!("{value:.2} ×");
    bars.hold(
        &what,
        &ratios,
        Some(Bound::AtMost(1.3)),
        Doubt::default(),
        ratio,
    );
    Ok(())
}

/// Makes holds of many consumers whose leases end at `end`.
async fn hold(client: &Client, provider: Uuid, end: Instant) -> anyhow::Result<()> {
    let (mut consumers, mut choice) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..CONSUMERS {
        let consumer = Uuid::new_v4().to_string();
        let claimant = Claimant {
            project_id: "project".to_owned(),
            user_id: "user".to_owned(),
            consumer_type: None,
            consumer_generation: None,
        };
        consumers.insert(consumer.clone(), claimant);
        let allocation = Allocation {
            generation: None,
            resources: [("VCPU".to_owned(), 1)].into(),
        };
        let allocations: Allocations = [(provider.to_string(), allocation)].into();
        choice.insert(consumer, Assignment { allocations });
    }
    let left = end.saturating_duration_since(Instant::now()).as_secs() + 1;
    let request = ClaimRequest {
        consumers,
        choices: Some(vec![choice]),
        hold: Some(NewHold {
            lease_s: Some(u32::try_from(left)?),
            ..NewHold::default()
        }),
        ..ClaimRequest::default()
    };
    client.claim(&request).await?;
    Ok(())
}

async fn all_have_ended(client: &Client) -> anyhow::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let begun = Instant::now();
    loop {
        let request = ApiRequest::get("/placementd/v1/consumers?held=true&limit=1");
        let page: serde_json::Value = serde_json::from_slice(&client.call(request).await?.body)?;
        if page["consumers"].as_array().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "leases have not ended in {PATIENCE:?}"
        );
        sleep(Duration::from_millis(200)).await;
    }
}
