//! Subcommands that read or change the content of a partition.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use placement_client::Admin;

use crate::content::{Content, Moment, Source};
use crate::render::print;
use crate::{
    api, candidates, capacity, changes, claim, consumers, events, explain, fits, holds, limits,
    providers, refuge, reservations, searches, usages, watch, what_if,
};

/// Arguments of a subcommand, and the options that select what it reads.
#[derive(Args)]
pub(crate) struct VerbArgs<T: Args> {
    #[command(flatten)]
    what: T,
    #[command(flatten)]
    moment: Moment,
    #[command(flatten)]
    source: Source,
}

/// The same for a subcommand that cannot read an earlier state: it reads changes, searches or
/// limits, or it writes.
#[derive(Args)]
pub(crate) struct LogArgs<T: Args> {
    #[command(flatten)]
    what: T,
    #[command(flatten)]
    source: Source,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Inspect resource providers: inventories, usage and consumers.
    Providers(VerbArgs<providers::ProvidersArgs>),
    /// Inspect consumers and their allocations; find leaked ones.
    ///
    /// Consumers are instances and migrations, for example.
    Consumers(VerbArgs<consumers::ConsumersArgs>),
    /// Show total, used and free capacity.
    ///
    /// Amounts are summed over all providers. LARGEST FREE is the largest amount that one request
    /// can get from one provider.
    Capacity(VerbArgs<capacity::CapacityArgs>),
    /// Show the usage of each project.
    ///
    /// Without --project, the command reads all consumers, which takes some time in a large cloud.
    Usages(VerbArgs<usages::UsagesArgs>),
    /// List the allocation candidates of a query.
    Candidates(VerbArgs<candidates::CandidatesArgs>),
    /// Claim resources for new consumers.
    ///
    /// The cluster finds candidates of a query, checks them and takes one for each consumer, in one
    /// step: all consumers or none. With the same --consumer, the command claims only once, however
    /// often it runs. With --hold-for, --lease or --due, the allocations are a hold.
    Claim(LogArgs<claim::ClaimArgs>),
    /// List holds, and change when they end.
    ///
    /// A hold is a set of allocations that keeps room for other consumers, or for a limited time.
    /// `claim` makes holds.
    Holds(VerbArgs<holds::HoldsArgs>),
    /// Limit the usage of projects; copy the limits of Keystone.
    ///
    /// A write of allocations that increases the usage of a project above a limit is reported or
    /// refused.
    Limits(LogArgs<limits::LimitsArgs>),
    /// List reserved capacity: tokens, their room and their users.
    ///
    /// A reservation is a resource class `CUSTOM_RESERVATION_*`, whose units are tokens. ROOM is
    /// what consumers of the type RESERVATION hold on the same host, also for other reservations.
    Reservations(VerbArgs<reservations::ReservationsArgs>),
    /// Show why a query has no or few allocation candidates.
    ///
    /// The output has the number of provider trees that remain after each condition, conditions
    /// that could be relaxed, and trees that nearly fit.
    Explain(VerbArgs<explain::ExplainArgs>),
    /// List recent searches for candidates, newest first.
    ///
    /// The searches are those of all nodes.
    Searches(LogArgs<searches::SearchesArgs>),
    /// Print changes as they happen.
    ///
    /// After a connection failure, the command resumes at another node.
    #[command(
        after_help = "-o jsonl prints the lines of `GET /placementd/v1/events`. Each batch ends with a `progress` line, \
                      which contains a token for --after. A `reset` line means that earlier changes are no longer \
                      available; a snapshot of the content follows."
    )]
    Watch(LogArgs<watch::WatchArgs>),
    /// List past changes, newest first.
    ///
    /// The list goes as far back as the nodes retain changes.
    History(LogArgs<changes::HistoryArgs>),
    /// Print the whole content of a partition as JSON lines.
    ///
    /// The content is that of one point in time. The last line contains the token for `watch
    /// --after`.
    Bulk(LogArgs<changes::Filters>),
    /// Print changes as SQL for a database of openstack-placement.
    ///
    /// The statements keep a database of version 16.0.0 up to date, after `placementd export` has
    /// filled it.
    #[command(
        after_help = "Pipe the output to the client of the database. Each change is one transaction, which also advances the token \
                      in the table `placementd_position`. After a failure of either program, restart both and pass \
                      this token to --after: each change is applied exactly once. The command fails if the changes after the token are \
                      no longer available."
    )]
    Events(LogArgs<events::EventsArgs>),
    /// Show whether hosts can be emptied.
    ///
    /// The command searches candidates for one consumer after the other, the largest first, and
    /// changes nothing. The answer also says whether the cloud survives the loss of these hosts.
    Refuge(VerbArgs<refuge::RefugeArgs>),
    /// Show how often named queries, such as those of flavors, fit.
    ///
    /// The queries are in the configuration of the node, as [[fits]].
    Fits(VerbArgs<fits::FitsArgs>),
    /// Show how the cluster would answer after some changes.
    ///
    /// The changes are not applied.
    WhatIf(VerbArgs<what_if::WhatIfArgs>),
    /// Send any request to the REST API.
    ///
    /// The command prints the body of the response unchanged.
    Api(VerbArgs<api::ApiArgs>),
}

pub(crate) async fn run(admin: Admin, verb: Verb, timeout: Duration) -> anyhow::Result<ExitCode> {
    let open = |source, moment| Content::open(admin, source, moment, timeout);
    let text = match verb {
        Verb::Providers(args) => {
            providers::run(&open(args.source, args.moment).await?, args.what).await
        }
        Verb::Consumers(args) => {
            return consumers::run(&open(args.source, args.moment).await?, args.what).await;
        }
        Verb::Capacity(args) => {
            capacity::show(&open(args.source, args.moment).await?, args.what).await
        }
        Verb::Usages(args) => usages::show(&open(args.source, args.moment).await?, args.what).await,
        Verb::Candidates(args) => {
            candidates::show(&open(args.source, args.moment).await?, args.what).await
        }
        Verb::Claim(args) => {
            claim::claim(&open(args.source, Moment::default()).await?, args.what).await
        }
        Verb::Holds(args) => holds::run(&open(args.source, args.moment).await?, args.what).await,
        Verb::Limits(args) => {
            return limits::run(&open(args.source, Moment::default()).await?, args.what).await;
        }
        Verb::Reservations(args) => {
            reservations::show(&open(args.source, args.moment).await?, args.what).await
        }
        Verb::Explain(args) => {
            explain::run(&open(args.source, args.moment).await?, args.what).await
        }
        Verb::Searches(args) => {
            searches::show(&open(args.source, Moment::default()).await?, args.what).await
        }
        Verb::Watch(args) => {
            watch::watch(&open(args.source, Moment::default()).await?, args.what).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Bulk(args) => {
            watch::bulk(&open(args.source, Moment::default()).await?, args.what).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Events(args) => {
            events::run(&open(args.source, Moment::default()).await?, args.what).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::History(args) => {
            changes::show(&open(args.source, Moment::default()).await?, args.what).await
        }
        Verb::Fits(args) => fits::show(&open(args.source, args.moment).await?, args.what).await,
        Verb::Refuge(args) => refuge::show(&open(args.source, args.moment).await?, args.what).await,
        Verb::WhatIf(args) => what_if::ask(&open(args.source, args.moment).await?, args.what).await,
        Verb::Api(args) => api::send(&open(args.source, args.moment).await?, args.what).await,
    };
    print(&text?)?;
    Ok(ExitCode::SUCCESS)
}
