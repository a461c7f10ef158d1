//! Subcommands that read or change the content of a partition.

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

/// Arguments of a subcommand, and the options that select what it reads.
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
    /// Inspect consumers, such as instances and migrations, and their allocations. Find and release
    /// leaked allocations.
    Consumers(VerbArgs<consumers::ConsumersArgs>),
    /// Show total, used and free capacity, summed over all providers, and the largest amount that
    /// one request can get from one provider.
    Capacity(VerbArgs<capacity::CapacityArgs>),
    /// Show the usage of each project. Without --project, the command reads all consumers, which
    /// takes some time in a large cloud.
    Usages(VerbArgs<usages::UsagesArgs>),
    /// List the allocation candidates of a query.
    Candidates(VerbArgs<candidates::CandidatesArgs>),
    /// Show why a query has no or few allocation candidates: how many provider trees remain after
    /// each condition, which conditions could be relaxed, and which trees nearly fit.
    Explain(VerbArgs<explain::ExplainArgs>),
    /// List recent searches for allocation candidates from all nodes, newest first.
    Searches(VerbArgs<searches::SearchesArgs>),
    /// Print changes as they happen. After a connection failure, the command resumes at another
    /// node.
    #[command(
        after_help = "-o jsonl prints the lines of `GET /placementd/v1/events`. Each batch ends with a `progress` line, \
                      which contains a token for --after. A `reset` line means that earlier changes are no longer \
                      available; a snapshot of the content follows."
    )]
    Watch(VerbArgs<watch::WatchArgs>),
    /// List past changes, newest first, as far back as the nodes retain them.
    History(VerbArgs<changes::Filters>),
    /// Print the whole content of a partition at one point in time, as JSON lines. The last line
    /// contains the token for `watch --after`.
    Bulk(VerbArgs<changes::Filters>),
    /// Print changes as SQL statements that keep an openstack-placement 16.0.0 database up to date,
    /// after `placementd export` has filled it.
    #[command(
        after_help = "Pipe the output to the client of the database. Each change is one transaction, which also advances the token \
                      in the table `placementd_position`. After a failure of either program, restart both and pass \
                      this token to --after: each change is applied exactly once. The command fails if the changes after the token are \
                      no longer available."
    )]
    Events(VerbArgs<events::EventsArgs>),
    /// Show how the cluster would answer after some changes, without applying them.
    WhatIf(VerbArgs<what_if::WhatIfArgs>),
    /// Send any request to the REST API, and print the body of the response unchanged.
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
