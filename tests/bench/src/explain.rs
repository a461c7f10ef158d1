//! Measures the time of explanations and of other queries, and how much clients that request
//! explanations endlessly slow down searches and writes.

use std::time::Duration;

use placement_client::CandidateQuery;
use placement_tests::cluster::Cluster;
use placement_tests::process_cost::memory;
use tokio::process::Command;

use crate::bars::{Bars, Bound, Doubt, ROUNDS};
use crate::clouds::{Cloud, Shape, boundless, devices_query, trait_name};
use crate::load::{Load, Request, Sample, writes};
use crate::{cores, ms, pids, progress, urls};

/// Number of trees, each of nine providers.
const TREES: u64 = 5_000;
/// Number of clients that endlessly send queries that are expensive to explain.
const HOSTILE: usize = 4;
/// Request groups, and required traits of each: close to the most conditions that are explained.
const GROUPS: usize = 8;
const TRAITS: usize = 12;
/// Time between the start of the hostile load and the start of the measured load.
const AHEAD: Duration = Duration::from_secs(1);

pub(crate) async fn measure(hosts: u64, seconds: u64, bars: &mut Bars) -> anyhow::Result<()> {
    cores::move_to(&cores::of_services()?)?;
    let trees = Cloud::used(Shape::Pci, TREES);
    let mut cluster = Cluster::start(1).await?;
    trees.seed(&cluster.clients()).await?;
    boundless(&cluster.client()).await?;
    let full = devices_query(2).with("resources1", "VCPU:1024").path();
    let root = trees.roots()[0];
    for (what, path, most) in [
        ("explain", explain(&full), 30.0),
        ("capacity", "/placementd/v1/capacity".to_owned(), 5.0),
        ("a tree", format!("/placementd/v1/trees/{root}"), 1.0),
        (
            "refuge of a host",
            format!("/placementd/v1/refuge?provider={root}"),
            10.0,
        ),
    ] {
        question(
            &cluster,
            seconds,
            &format!("{what}, {trees}"),
            path,
            most,
            bars,
        )
        .await?;
    }
    with_endless(&mut cluster, seconds, bars).await?;
    drop(cluster);

    let flat = Cloud::used(Shape::Flat, hosts);
    let cluster = Cluster::start(1).await?;
    flat.seed(&cluster.clients()).await?;
    let path = explain(&CandidateQuery::resources(&[("VCPU", 1024), ("DISK_GB", 20)]).path());
    question(
        &cluster,
        seconds,
        &format!("explain, {flat}"),
        path,
        250.0,
        bars,
    )
    .await
}

/// Turns a search into the query that explains its result.
fn explain(search: &str) -> String {
    search.replace("/allocation_candidates", "/placementd/v1/explain")
}

fn get(path: String) -> Vec<Request> {
    vec![("GET", path, String::new())]
}

/// Measures a query with one client.
async fn question(
    cluster: &Cluster,
    seconds: u64,
    what: &str,
    path: String,
    most: f64,
    bars: &mut Bars,
) -> anyhow::Result<()> {
    let load = Load::on(&urls(cluster, [1]), get(path), 1).seconds(seconds);
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        progress(&format!("round {round} of {ROUNDS}: {what}"));
        rounds.push(load.run().await?.p50_ms);
    }
    let bound = Some(Bound::AtMost(most));
    bars.hold(
        &format!("{what}: p50"),
        &rounds,
        bound,
        Doubt::default(),
        ms,
    );
    Ok(())
}

/// Measures searches and writes alone, and next to endless explanations.
async fn with_endless(cluster: &mut Cluster, seconds: u64, bars: &mut Bars) -> anyhow::Result<()> {
    let servers = urls(cluster, [1]);
    let pid = pids(cluster, [1])[0];
    let mut query = "/placementd/v1/explain?group_policy=none".to_owned();
    let traits: Vec<_> = (0..TRAITS).map(trait_name).collect();
    for group in 1..=GROUPS {
        query += &format!(
            "&resources{group}=VCPU:1&required{group}={}",
            traits.join(",")
        );
    }
    let mut hostile =
        Load::on(&servers, get(query), HOSTILE).seconds(seconds + 2 * AHEAD.as_secs());
    hostile.may_fail = true;
    let ten = get(devices_query(1).limit(10).path());
    for (what, requests) in [("ten candidates", ten), ("PUT /allocations", writes())] {
        let load = Load::on(&servers, requests, 16).seconds(seconds);
        load.run().await?;
        let (mut p99, mut looped, mut grown) = (Vec::new(), Vec::new(), Vec::new());
        for round in 1..=ROUNDS {
            progress(&format!(
                "round {round} of {ROUNDS}: {what}, without and with explanations, and with an idle-priority loop"
            ));
            let (alone, before) = (load.run().await?, memory(pid)?.resident);
            let later = async {
                tokio::time::sleep(AHEAD).await;
                load.run().await
            };
            let (explained, with) = tokio::join!(hostile.run(), later);
            explained?;
            p99.push(with?.p99_ms / alone.p99_ms);
            looped.push(with_loop(&load).await?.p99_ms / alone.p99_ms);
            grown.push((memory(pid)?.resident.saturating_sub(before) >> 20) as f64);
        }
        let what = format!("{what}, 16 connections, with {HOSTILE} endless explanations");
        let bound = Some(Bound::AtMost(1.1));
        let ratio = |value| format!("{value:.2}");
        bars.hold(
            &format!("{what}: p99"),
            &p99,
            bound,
            Doubt::default(),
            ratio,
        );
        let control = format!("{what}: p99 with an idle loop instead");
        bars.hold(&control, &looped, None, Doubt::default(), ratio);
        let mib = |value| format!("{value:.0} MiB");
        bars.hold(
            &format!("{what}: memory"),
            &grown,
            None,
            Doubt::default(),
            mib,
        );
    }
    Ok(())
}

/// Runs the load next to an idle-priority process in an empty loop: the cost of the kernel's
/// scheduling, whatever runs at idle priority.
async fn with_loop(load: &Load) -> anyhow::Result<Sample> {
    let mut command = Command::new("chrt");
    command.args(["--idle", "0", "sh", "-c", "while :; do :; done"]);
    let mut spinning = command.kill_on_drop(true).spawn()?;
    let sample = load.run().await;
    spinning.kill().await?;
    sample
}
