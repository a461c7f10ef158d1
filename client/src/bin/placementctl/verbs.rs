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
pub(crate) struct VerbArgs<T: Args> {
    #[command(flatten)]
    what: T,
    #[command(flatten)]
    source: Source,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Inspect resource providers: inventories, usage and consumers.
    Providers(VerbArgs<providers::ProvidersArgs>),
    /// Inspect consumers: allocations of instances, migrations and other users of resources.
    Consumers(VerbArgs<consumers::ConsumersArgs>),
    /// Show sums over all providers: total, used and free capacity, and the most that one provider
    /// can give to one request.
    Capacity(VerbArgs<capacity::CapacityArgs>),
    /// Show the usage of projects. Without a project all consumers are read, which takes a moment
    /// in a large cloud.
    Usages(VerbArgs<usages::UsagesArgs>),
    /// List the allocation candidates of a query.
    Candidates(VerbArgs<candidates::CandidatesArgs>),
    /// Show why a query has no or few candidates: how many trees remain after each condition, which
    /// conditions to relax, and which trees nearly fit.
    Explain(VerbArgs<explain::ExplainArgs>),
    /// List recent searches for candidates on all nodes, newest first.
    Searches(VerbArgs<searches::SearchesArgs>),
    /// Print changes as they happen. If the connection fails, it resumes at another node.
    #[command(
        after_help = "-o jsonl prints the lines of `GET /placementd/v1/events`. Each batch ends with a `progress`, \
                      the token for --after. A `reset` means that earlier changes are not kept any more; a \
                      snapshot of the content follows."
    )]
    Watch(VerbArgs<watch::WatchArgs>),
    /// List past changes, newest first, as far back as nodes keep them.
    History(VerbArgs<changes::Filters>),
    /// Print the whole content at one moment as JSON lines. The last line has the token for `watch
    /// --after`.
    Bulk(VerbArgs<changes::Filters>),
    /// Print changes as SQL for the client of an openstack-placement 16.0.0 database that
    /// `placementd export` has filled.
    #[command(
        after_help = "Each change is one transaction, which also advances the token in `placementd_position`. After a \
                      failure of either program, restart it with the token of the database: each change is applied \
                      exactly once. It fails if the changes after that token are not kept any more."
    )]
    Events(VerbArgs<events::EventsArgs>),
    /// Show what the cluster would answer after changes, without making them.
    WhatIf(VerbArgs<what_if::WhatIfArgs>),
    /// Send any request to the API, and print the response unchanged.
    Api(VerbArgs<api::ApiArgs>),
}

pub(crate) async fn run(admin: Admin, verb: Verb, timeout: Duration) -> anyhow::Result<ExitCode> {
    let open = |source| Content::open(admin, source, timeout);
    let text = match verb {
        Verb::Providers(args) => providers::run(&open(args.source).await?, args.what).await,
        Verb::Consumers(args) => {
            return consumers::run(&open(args.source).await?, args.what).await;
        }
        Verb::Capacity(args) => capacity::show(&open(args.source).await?, args.what).await,
        Verb::Usages(args) => usages::show(&open(args.source).await?, args.what).await,
        Verb::Candidates(args) => candidates::show(&open(args.source).await?, args.what).await,
        Verb::Explain(args) => explain::run(&open(args.source).await?, args.what).await,
        Verb::Searches(args) => searches::show(&open(args.source).await?, args.what).await,
        Verb::Watch(args) => {
            watch::watch(&open(args.source).await?, args.what).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Bulk(args) => {
            watch::bulk(&open(args.source).await?, args.what).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Events(args) => {
            events::run(&open(args.source).await?, args.what).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::History(args) => changes::show(&open(args.source).await?, args.what).await,
        Verb::WhatIf(args) => what_if::ask(&open(args.source).await?, args.what).await,
        Verb::Api(args) => api::send(&open(args.source).await?, args.what).await,
    };
    print(&text?)?;
    Ok(ExitCode::SUCCESS)
}
