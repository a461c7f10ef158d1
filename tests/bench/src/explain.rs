//! Measures the time of explanations and of other queries, and how much clients that request
//! explanations endlessly slow down searches and writes.

use std::time::{Duration, Instant};

use anyhow::ensure;
use placement_client::{ApiRequest, CandidateQuery};
use placement_tests::cluster::Cluster;
use placement_tests::process_cost::memory;
use serde_json::Value;
use tokio::process::Command;

use crate::bars::{Bars, Bound, Doubt, ROUNDS};
use crate::clouds::{Cloud, Shape, boundless, devices_query, flat_query, trait_name};
use crate::load::{Load, Request, Sample, writes};
use crate::{cores, ms, pids, progress, urls};

/// Number of trees, each of nine providers.
const TREES: u64 = 5_000;
/// Consumers of each host whose loss is asked about.
const CONSUMERS: u64 = 20;
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
    let endless = Endless {
        what: "explanations",
        path: expensive_explanation(),
        clients: HOSTILE,
    };
    let searches = ("ten candidates", get(devices_query(1).limit(10).path()));
    let puts = ("PUT /allocations", writes());
    endless
        .next_to(&mut cluster, seconds, [searches, puts], bars)
        .await?;
    drop(cluster);
    refuge_of_each(seconds, bars).await?;

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

/// Measures the question which hosts could not be lost, in a cloud where each host has many
/// consumers.
async fn refuge_of_each(seconds: u64, bars: &mut Bars) -> anyhow::Result<()> {
    const PATH: &str = "/placementd/v1/refuge?each=root";
    let cloud = Cloud::plain(Shape::Flat, TREES);
    let mut cluster = Cluster::start(1).await?;
    cloud.seed(&cluster.clients()).await?;
    cloud
        .add_consumers(&cluster.clients(), CONSUMERS - 1)
        .await?;
    let what = format!("refuge of each host, {cloud}, {CONSUMERS} consumers each");
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        progress(&format!("round {round} of {ROUNDS}: {what}"));
        let begun = Instant::now();
        let answer: Value = cluster.client().fetch(ApiRequest::get(PATH)).await?;
        rounds.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(
            answer["complete"] == true,
            "the answer is incomplete: {answer}"
        );
    }
    let bound = Some(Bound::AtMost(10_000.0));
    bars.hold(&what, &rounds, bound, Doubt::default(), ms);
    let endless = Endless {
        what: "questions about the loss of each host",
        path: PATH.to_owned(),
        clients: 1,
    };
    let searches = ("ten candidates", get(flat_query().limit(10).path()));
    endless
        .next_to(&mut cluster, seconds, [searches], bars)
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

/// A query that is expensive to explain.
fn expensive_explanation() -> String {
    let mut query = "/placementd/v1/explain?group_policy=none".to_owned();
    let traits: Vec<_> = (0..TRAITS).map(trait_name).collect();
    for group in 1..=GROUPS {
        query += &format!(
            "&resources{group}=VCPU:1&required{group}={}",
            traits.join(",")
        );
    }
    query
}

/// Questions that clients ask endlessly.
struct Endless {
    what: &'static str,
    path: String,
    clients: usize,
}

impl Endless {
    /// Measures other requests alone, and next to these questions.
    async fn next_to(
        &self,
        cluster: &mut Cluster,
        seconds: u64,
        measured: impl IntoIterator<Item = (&'static str, Vec<Request>)>,
        bars: &mut Bars,
    ) -> anyhow::Result<()> {
        let servers = urls(cluster, [1]);
        let pid = pids(cluster, [1])[0];
        let mut hostile = Load::on(&servers, get(self.path.clone()), self.clients)
            .seconds(seconds + 2 * AHEAD.as_secs());
        hostile.may_fail = true;
        for (what, requests) in measured {
            let load = Load::on(&servers, requests, 16).seconds(seconds);
            load.run().await?;
            let (mut p99, mut looped, mut grown) = (Vec::new(), Vec::new(), Vec::new());
            for round in 1..=ROUNDS {
                progress(&format!(
                    "round {round} of {ROUNDS}: {what}, without and with {}, and with an idle-priority loop",
                    self.what
                ));
                let (alone, before) = (load.run().await?, memory(pid)?.resident);
                let later = async {
                    tokio::time::sleep(AHEAD).await;
                    load.run().await
                };
                let (asked, with) = tokio::join!(hostile.run(), later);
                asked?;
                p99.push(with?.p99_ms / alone.p99_ms);
                looped.push(with_loop(&load).await?.p99_ms / alone.p99_ms);
                grown.push((memory(pid)?.resident.saturating_sub(before) >> 20) as f64);
            }
            let (clients, asked) = (self.clients, self.what);
            let what = format!("{what}, 16 connections, with {clients} endless {asked}");
            let bound = Some(Bound::AtMost(1.1));
            let ratio = |value| format!("{value:.2}");
            let sure = Doubt::default();
            bars.hold(&format!("{what}: p99"), &p99, bound, sure, ratio);
            let control = format!("{what}: p99 with an idle loop instead");
            bars.hold(&control, &looped, None, sure, ratio);
            let mib = |value| format!("{value:.0} MiB");
            bars.hold(&format!("{what}: memory"), &grown, None, sure, mib);
        }
        Ok(())
    }
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
