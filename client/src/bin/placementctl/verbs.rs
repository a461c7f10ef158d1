//! Verbs that read the content of a partition.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use placement_client::Admin;

use crate::content::{Content, Source};
use crate::render::print;
use crate::{
    api, candidates, capacity, changes, consumers, events, explain, providers, searches, usages,
    watch, what_if,
};

/// Arguments of a verb, and its source.
#[derive(Args)]
pub(crate) struct Asked<T: Args> {
    #[command(flatten)]
    what: T,
    #[command(flatten)]
    source: Source,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Inspect resource providers: inventories, usage and consumers.
    Providers(Asked<providers::Which>),
    /// Inspect consumers: allocations of instances, migrations and other users of resources.
    Consumers(Asked<consumers::Which>),
    /// Show sums over all providers: total, used and free capacity, and the most that one provider
    /// can give to one request.
    Capacity(Asked<capacity::Which>),
    /// Show the usage of projects. Without a project all consumers are read, which takes a moment
    /// in a large cloud.
    Usages(Asked<usages::Which>),
    /// List the allocation candidates of a query.
    Candidates(Asked<candidates::Which>),
    /// Show why a query has no or few candidates: how many trees remain after each condition, which
    /// conditions to relax, and which trees nearly fit.
    Explain(Asked<explain::Which>),
    /// List recent searches for candidates on all nodes, newest first.
    Searches(Asked<searches::Which>),
    /// Print changes as they happen. If the connection fails, it resumes at another node.
    #[command(
        after_help = "-o jsonl prints the lines of `GET /placementd/v1/events`. Each batch ends with a `progress`, \
                      the token for --after. A `reset` means that earlier changes are not kept any more; a \
                      snapshot of the content follows."
    )]
    Watch(Asked<watch::Which>),
    /// List past changes, newest first, as far back as nodes keep them.
    History(Asked<changes::Filters>),
    /// Print the whole content at one moment as JSON lines. The last line has the token for `watch
    /// --after`.
    Bulk(Asked<changes::Filters>),
    /// Print changes as SQL for the client of an openstack-placement 16.0.0 database that
    /// `placementd export` has filled.
    #[command(
        after_help = "Each change is one transaction, which also advances the token in `placementd_position`. After a \
                      failure of either program, restart it with the token of the database: each change is applied \
                      exactly once. It fails if the changes after that token are not kept any more."
    )]
    Events(Asked<events::Which>),
    /// Show what the cluster would answer after changes, without making them.
    WhatIf(Asked<what_if::Which>),
    /// Send any request to the API, and print the response unchanged.
    Api(Asked<api::Which>),
}

pub(crate) async fn run(admin: Admin, verb: Verb, timeout: Duration) -> anyhow::Result<ExitCode> {
    let open = |source| Content::open(admin, source, timeout);
    let text = match verb {
        Verb::Providers(asked) => providers::run(&open(asked.source).await?, asked.what).await,
        Verb::Consumers(asked) => {
            return consumers::run(&open(asked.source).await?, asked.what).await;
        }
        Verb::Capacity(asked) => capacity::show(&open(asked.source).await?, asked.what).await,
        Verb::Usages(asked) => usages::show(&open(asked.source).await?, asked.what).await,
        Verb::Candidates(asked) => candidates::show(&open(asked.source).await?, asked.what).await,
        Verb::Explain(asked) => explain::run(&open(asked.source).await?, asked.what).await,
        Verb::Searches(asked) => searches::show(&open(asked.source).await?, asked.what).await,
        Verb::Watch(asked) => {
            watch::watch(&open(asked.source).await?, asked.what).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Bulk(asked) => {
            watch::bulk(&open(asked.source).await?, asked.what).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Events(asked) => {
            events::run(&open(asked.source).await?, asked.what).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::History(asked) => changes::show(&open(asked.source).await?, asked.what).await,
        Verb::WhatIf(asked) => what_if::ask(&open(asked.source).await?, asked.what).await,
        Verb::Api(asked) => api::send(&open(asked.source).await?, asked.what).await,
    };
    print(&text?)?;
    Ok(ExitCode::SUCCESS)
}
