//! Cost of event streams to writes, and one bulk read compared with reads provider by provider.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use placement_client::ApiRequest;
use placement_tests::cluster::Cluster;
use serde_json::Value;
use uuid::Uuid;

use crate::bars::{Bars, Bound, Doubt, ROUNDS};
use crate::clouds::{Cloud, Shape, boundless};
use crate::load::{Load, Request, writes};
use crate::{cores, progress, urls};

const EVENTS: &str = "/placementd/v1/events";
/// The most streams that a node accepts.
const STREAMS: usize = 256;
/// Number of streams that follow everything.
const MIRRORS: usize = 4;
/// Consumers of each flat host.
const CONSUMERS: u64 = 10;
/// Time between the start of the streams and the start of the writes.
const AHEAD: Duration = Duration::from_secs(1);

/// Measures writes alone, and next to streams at the same node.
pub(crate) async fn measure_streams(seconds: u64, bars: &mut Bars) -> anyhow::Result<()> {
    cores::move_to(&cores::of_services()?)?;
    let cluster = Cluster::start(1).await?;
    let providers = boundless(&cluster.client()).await?;
    let of_each = |provider: &Uuid| format!("&provider={provider}");
    let filters: Vec<_> = providers.iter().take(STREAMS).map(of_each).collect();
    for (what, filters) in [
        (format!("{STREAMS} streams of a provider each"), filters),
        (
            format!("{MIRRORS} streams of everything"),
            vec![String::new(); MIRRORS],
        ),
        (
            format!("{STREAMS} streams of everything"),
            vec![String::new(); STREAMS],
        ),
    ] {
        let writes = Load::on(&urls(&cluster, [1]), writes(), 16).seconds(seconds);
        writes.run().await?;
        let mut rates = Vec::new();
        for round in 1..=ROUNDS {
            progress(&format!(
                "round {round} of {ROUNDS}: writes alone, and next to {what}"
            ));
            let alone = writes.run().await?;
            let streams = streams(&cluster, &filters)
                .await?
                .seconds(seconds + 2 * AHEAD.as_secs());
            let later = async {
                tokio::time::sleep(AHEAD).await;
                writes.run().await
            };
            let (streamed, with) = tokio::join!(streams.stream(), later);
            streamed?;
            rates.push(with?.per_second / alone.per_second);
        }
        let what = format!("PUT /allocations, 16 connections, next to {what}: rate");
        let ratio = |value| format!("{value:.2}");
        bars.hold(
            &what,
            &rates,
            Some(Bound::AtLeast(0.95)),
            Doubt::default(),
            ratio,
        );
    }
    Ok(())
}

/// Starts one stream per filter.
async fn streams(cluster: &Cluster, filters: &[String]) -> anyhow::Result<Load> {
    let answer = cluster.client().call(ApiRequest::get("/traits")).await?;
    let token = answer.header("placement-index").context("no token")?;
    let request = |filter: &String| -> Request {
        (
            "GET",
            format!("{EVENTS}?after={token}{filter}"),
            String::new(),
        )
    };
    let requests = filters.iter().map(request).collect();
    Ok(Load::on(&urls(cluster, [1]), requests, filters.len()))
}

/// Measures reading a whole flat cloud with one client: in one request, and with five requests per
/// provider.
pub(crate) async fn measure_bulk(hosts: u64, bars: &mut Bars) -> anyhow::Result<()> {
    cores::move_to(&cores::of_services()?)?;
    let cluster = Cluster::start(1).await?;
    let cloud = Cloud::plain(Shape::Flat, hosts);
    cloud.seed(&cluster.clients()).await?;
    cloud
        .add_consumers(&cluster.clients(), CONSUMERS - 1)
        .await?;
    let client = cluster.client();
    let what = format!("{hosts} hosts, {} consumers", hosts * CONSUMERS);
    let mut show = |how: &str, took: Duration, bytes: usize| {
        let what = format!("{what}, {how}");
        let sure = Doubt::default();
        let s = |value| format!("{value:.1} s");
        bars.hold(&what, &[took.as_secs_f64()], None, sure, s);
        let mib = |value| format!("{value:.0} MiB");
        let size = bytes as f64 / f64::from(1 << 20);
        bars.hold(&format!("{what}: bytes"), &[size], None, sure, mib);
    };

    progress(&format!("reading {what} at once"));
    let (began, mut bytes, mut last) = (Instant::now(), 0, None);
    let everything = ApiRequest::get(&format!("{EVENTS}?follow=false"));
    let mut lines = client.lines(everything).await?;
    while let Some(line) = lines.next().await? {
        bytes += line.len() + 1;
        last = Some(line);
    }
    let last = last.context("the answer is empty")?;
    ensure!(last.starts_with(b"{\"snapshot_end\""), "{last:?} is last");
    show("in one request", began.elapsed(), bytes);

    progress(&format!("reading {what} provider by provider"));
    let (began, mut bytes) = (Instant::now(), 0);
    let mut read = async |path: &str| {
        let answer = client.call(ApiRequest::get(path)).await?;
        bytes += answer.body.len();
        anyhow::Ok(answer)
    };
    let list: Value = read("/resource_providers").await?.json()?;
    let providers = list["resource_providers"].as_array();
    for provider in providers.context("no providers")? {
        let path = format!(
            "/resource_providers/{}",
            provider["uuid"].as_str().context("no UUID")?
        );
        for of_it in [
            "inventories",
            "usages",
            "traits",
            "aggregates",
            "allocations",
        ] {
            read(&format!("{path}/{of_it}")).await?;
        }
    }
    show("provider by provider", began.elapsed(), bytes);
    Ok(())
}
