//! A cluster beside its peers: the same work on this machine, in one run, held against bars.

mod alone;
mod bare;
mod claims;
mod connection;
mod etcd;
mod generator;
mod measurement;
mod plot;
mod report;
mod request;
mod rows;
mod services;
mod wrk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};

use measurement::{Measurement, Sample, Service};
use report::Report;
use rows::{Row, Scope};
use services::{Running, Taking};

pub(super) use bare::{Options as BareOptions, serve as serve_bare};

use super::{machine, progress};

/// Runs the same work on placementd and on its peers, on this machine, and holds the figures against
/// bars; fails if one is missed. The peers: openstack-placement 16.0.0 (uwsgi, 5 processes of 25
/// threads, on MariaDB), etcd (three nodes), axum with a fixed answer, serde_json, and the disk.
/// placementd has its default configuration, but that one caller may ask as fast as it can. Nothing else should run meanwhile.
#[derive(Args)]
pub(super) struct Options {
    /// A few seconds for each figure and no cloud above 10,000 hosts: ends within ten minutes.
    #[arg(long)]
    quick: bool,

    /// Only these rows of the table.
    #[arg(long, num_args = 1.., value_name = "ROW")]
    only: Vec<String>,

    /// Peers that are not started; what is held against them is not judged.
    #[arg(long, num_args = 1.., value_name = "PEER")]
    without: Vec<Absent>,

    /// Seconds per figure; 10, or 3 with --quick. Upstream, which does little in a second, gets more.
    #[arg(long)]
    seconds: Option<u64>,

    /// No cloud of more trees than this, for a look at the table: figures of small clouds mean little.
    #[arg(long, value_name = "TREES")]
    size_max: Option<u64>,

    /// Where `compare.json` and the plots are written; scripts/bench chooses `compare` in cargo's
    /// target directory.
    #[arg(long, env = "PLACEMENT_BENCH_RESULTS")]
    results: Option<PathBuf>,

    /// A Python venv with openstack-placement, PyMySQL and pyuwsgi; scripts/bench makes one.
    #[arg(long, env = "PLACEMENT_UPSTREAM_VENV")]
    venv: Option<PathBuf>,
}

/// A peer that need not be there.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Absent {
    Upstream,
    Etcd,
    /// The load generator, and with it whatever it loads.
    Wrk,
}

impl Options {
    fn scope(&self) -> Scope {
        let scope = match self.quick {
            true => Scope::quick(),
            false => Scope::whole(),
        };
        match self.size_max {
            Some(most) => scope.at_most(most),
            None => scope,
        }
    }

    /// The rows that were asked for.
    fn rows(&self, scope: &Scope) -> anyhow::Result<Vec<Row>> {
        let mut rows = rows::rows(scope);
        let names: BTreeSet<_> = rows.iter().map(|row| row.name).collect();
        if let Some(unknown) = (self.only.iter()).find(|name| !names.contains(name.as_str())) {
            let names: Vec<_> = names.into_iter().collect();
            bail!("there is no row {unknown}; there are {}", names.join(", "));
        }
        rows.retain(|row| self.only.is_empty() || self.only.iter().any(|name| name == row.name));
        Ok(rows)
    }

    /// What has to be measured, in the order in which it is.
    fn plan(&self, scope: &Scope, rows: &[Row]) -> BTreeSet<Measurement> {
        let mut wanted: Vec<_> = rows.iter().flat_map(Row::measurements).collect();
        if self.only.is_empty() {
            wanted.extend(rows::further(scope));
        }
        let most = self.size_max.unwrap_or(u64::MAX);
        wanted.retain(|one| self.can_be_taken(*one) && one.cloud.size <= most);
        let mut plan = BTreeSet::new();
        while let Some(one) = wanted.pop() {
            wanted.extend(one.needs());
            plan.insert(one);
        }
        plan
    }

    fn can_be_taken(&self, one: Measurement) -> bool {
        let absent = |peer| self.without.contains(&peer);
        match one.service {
            Service::Upstream => !absent(Absent::Upstream),
            Service::Etcd => !absent(Absent::Etcd),
            _ => !(absent(Absent::Wrk) && (one.takes_wrk() || one.needs().is_some())),
        }
    }

    fn taking(&self) -> anyhow::Result<Taking> {
        let (seconds, upstream_s, patience_s) = match self.quick {
            true => (3, 8, 60),
            false => (10, 20, 300),
        };
        let seconds = self.seconds.unwrap_or(seconds);
        ensure!(seconds > 0, "--seconds is 1 or more");
        Ok(Taking {
            seconds,
            upstream: Duration::from_secs(upstream_s.max(seconds)),
            patience: Duration::from_secs(patience_s),
            venv: self.venv.clone(),
        })
    }
}

pub(super) async fn run(options: &Options) -> anyhow::Result<()> {
    let scope = options.scope();
    let rows = options.rows(&scope)?;
    let plan = options.plan(&scope, &rows);
    let taking = options.taking()?;
    let machine = machine();
    println!("{machine}");
    let (samples, failures) = take(&plan, &taking).await;
    let report = Report {
        machine,
        quick: options.quick,
        seconds: taking.seconds,
        rows: &rows,
        samples: &samples,
    };
    print!("{}", report.table());
    if let Some(directory) = &options.results {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        std::fs::write(directory.join("compare.json"), report.json()?)?;
        for (name, plot) in plot::all(&samples) {
            std::fs::write(directory.join(name), plot)?;
        }
        println!("\nFigures and plots are in {}.", directory.display());
    }
    for failure in &failures {
        println!("\nNot taken: {failure}");
    }
    let (missed, failed) = (report.missed(), failures.len());
    ensure!(
        failed == 0,
        "{missed} bars missed, {failed} figures not taken"
    );
    ensure!(missed == 0, "{missed} bars missed");
    Ok(())
}

/// Starts each service for each cloud once, and takes all that is planned for both. What fails, and
/// why, is told beside what was taken: an hour's figures are not lost for one.
async fn take(
    plan: &BTreeSet<Measurement>,
    taking: &Taking,
) -> (BTreeMap<Measurement, Sample>, Vec<String>) {
    let mut samples = BTreeMap::new();
    let mut failures = Vec::new();
    let mut running: Option<(Measurement, Running)> = None;
    let started = Instant::now();
    for (nth, &one) in plan.iter().enumerate() {
        let passed = started.elapsed().as_secs();
        progress(&format!("{passed} s, {} of {}: {one}", nth + 1, plan.len()));
        match take_one(one, &mut running, taking, &samples).await {
            Ok(sample) => {
                samples.insert(one, sample);
            }
            Err(error) => {
                progress(&format!("not taken: {error:#}"));
                failures.push(format!("{one}: {error:#}"));
                // Who has failed is started anew.
                running = None;
            }
        }
    }
    (samples, failures)
}

async fn take_one(
    one: Measurement,
    running: &mut Option<(Measurement, Running)>,
    taking: &Taking,
    samples: &BTreeMap<Measurement, Sample>,
) -> anyhow::Result<Sample> {
    let goes_on = |(other, _): &(Measurement, Running)| {
        let answers_the_same = other.work == one.work || one.service != Service::Axum;
        other.service == one.service && other.cloud == one.cloud && answers_the_same
    };
    if !running.as_ref().is_some_and(goes_on) {
        // The old one ends before the new one begins.
        *running = None;
        *running = Some((one, Running::start(one, taking, samples).await?));
    }
    let (_, service) = running.as_mut().context("it was just started")?;
    service.take(one, taking, samples).await
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn options(words: &[&str]) -> Options {
        let words = [&["compare"], words].concat();
        Command::try_parse_from(words).expect("known words").options
    }

    #[test]
    fn what_is_needed_is_taken_before() {
        for words in [&["--quick"][..], &[], &["--only", "no-limit"]] {
            let options = options(words);
            let scope = options.scope();
            let plan = options.plan(&scope, &options.rows(&scope).expect("known rows"));
            let order: Vec<_> = plan.iter().collect();
            for (nth, one) in order.iter().enumerate() {
                if let Some(needed) = one.needs() {
                    let at = order.iter().position(|other| **other == needed);
                    assert!(at.is_some_and(|at| at < nth), "{one} without {needed}");
                }
            }
        }
    }

    #[test]
    fn a_row_that_is_not_there_is_an_error() {
        let options = options(&["--only", "reads", "writing"]);
        let error = options.rows(&options.scope()).expect_err("no such row");
        assert!(error.to_string().contains("one-writer"), "{error}");
    }

    #[test]
    fn absent_peers_are_not_planned() {
        let options = options(&["--quick", "--without", "upstream", "etcd"]);
        let scope = options.scope();
        let plan = options.plan(&scope, &options.rows(&scope).expect("all rows"));
        let absent = [Service::Upstream, Service::Etcd];
        assert!(plan.iter().all(|one| !absent.contains(&one.service)));
        assert!(plan.iter().any(|one| one.service == Service::Axum));
    }
}
