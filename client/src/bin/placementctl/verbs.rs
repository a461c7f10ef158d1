//! The verbs that read what a partition holds.

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

/// What a verb is asked for, and of whom.
#[derive(Args)]
pub(crate) struct Asked<T: Args> {
    #[command(flatten)]
    what: T,
    #[command(flatten)]
    source: Source,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Resource providers: what hosts have, how much of it is used, and by which consumers.
    Providers(Asked<providers::Which>),
    /// Consumers: what instances, migrations and other users of resources hold.
    Consumers(Asked<consumers::Which>),
    /// Shows sums over all providers: what there is, what is used, what is free, and the most that
    /// one provider can give to one request.
    Capacity(Asked<capacity::Which>),
    /// Shows what projects use. Without a project all consumers are read, which takes a moment in a
    /// large cloud.
    Usages(Asked<usages::Which>),
    /// Lists the allocation candidates for a query.
    Candidates(Asked<candidates::Which>),
    /// Says why a query has no or few candidates: how many trees each condition leaves, which
    /// conditions to relax, and which trees nearly fit.
    Explain(Asked<explain::Which>),
    /// Lists the recent searches for candidates on all nodes, the newest first.
    Searches(Asked<searches::Which>),
    /// Prints what changes, as it changes. It goes on at another node when the one that it asks is
    /// lost.
    #[command(
        after_help = "With -o jsonl it prints the lines of `GET /placementd/v1/events`. After each batch is a \
                      `progress`, from which --after goes on. After a `reset` all that is there follows, as changes \
                      before that are not kept any more."
    )]
    Watch(Asked<watch::Which>),
    /// Lists what was changed, the last first, as far as nodes keep it.
    History(Asked<changes::Filters>),
    /// Prints all that is there at one moment as JSON lines. The last one has the token for `watch
    /// --after`.
    Bulk(Asked<changes::Filters>),
    /// Prints what changes as SQL for a database of openstack-placement 16.0.0 that `placementd
    /// export` has filled, for its client.
    #[command(
        after_help = "Each change is one transaction, which also moves the token in `placementd_position`. So it goes on \
                      exactly once after any end of either program, from the token that the database has then. It ends if \
                      changes after that token are not kept any more."
    )]
    Events(Asked<events::Which>),
    /// Says what the cluster would answer after changes, without changing anything.
    WhatIf(Asked<what_if::Which>),
    /// Sends any request to the API, and prints the answer as it came.
    Api(Asked<api::Which>),
}

/// Carries a verb out.
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
