//! The figures as a table with their bars, and as a picture.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::super::lines::{Axis, Scale, Series, draw};
use super::LEADERS_SITE;
use super::failover::Failover;

const BEGIN: &str = "<!-- written by scripts/bench regions --docs docs -->";
const END: &str = "<!-- end of what scripts/bench regions has written -->";
const PLOT: &str = "what-distance-costs.svg";
/// How much more than its round trips a request may take: its work, twice what it is on a LAN, and the delay
/// lines' own lateness, in milliseconds.
const LATE_MS: f64 = 5.0;
/// Throughput at this many clients is held against that of a LAN.
const BAR_CLIENTS: usize = 256;
const BAR_THROUGHPUT: f64 = 0.8;
const BAR_FAILOVER: f64 = 3.0;

/// The middle of what requests take, in milliseconds.
pub(super) struct Costs {
    pub(super) local: f64,
    pub(super) session: f64,
    pub(super) linearizable: f64,
    pub(super) write: f64,
}

pub(super) struct Throughput {
    pub(super) round_trip_ms: u64,
    pub(super) clients: usize,
    pub(super) per_second: f64,
    pub(super) errors: u64,
}

pub(super) struct Report {
    /// By the round trip and the site that is asked.
    pub(super) costs: Vec<(u64, &'static str, Costs)>,
    pub(super) throughput: Vec<Throughput>,
    pub(super) failovers: Vec<(u64, Failover)>,
    pub(super) took: Duration,
    election: Duration,
}

impl Report {
    /// Of a cluster with this longest silence before an election.
    pub(super) fn new(election: Duration) -> Self {
        Self {
            costs: Vec::new(),
            throughput: Vec::new(),
            failovers: Vec::new(),
            took: Duration::ZERO,
            election,
        }
    }

    fn lan(&self, site: &str, of: fn(&Costs) -> f64) -> f64 {
        let lan = |(ms, at, _): &&(u64, &'static str, Costs)| *ms == 0 && *at == site;
        self.costs
            .iter()
            .find(lan)
            .map_or(0.0, |(_, _, costs)| of(costs))
    }

    /// A figure, and whether it takes no more than so many round trips.
    fn cell(
        &self,
        (ms, site): (u64, &str),
        costs: &Costs,
        trips: u64,
        of: fn(&Costs) -> f64,
    ) -> String {
        let took = of(costs);
        let bar = (trips * ms) as f64 + 2.0 * self.lan(site, of) + LATE_MS;
        let missed = if took > bar { " **missed**" } else { "" };
        format!("{took:.1}{missed}")
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "\nLatencies are medians of one client, in milliseconds; the leader is in the north. It took {:.0} s.\n\n\
             | round trip | asked at | local read | session read | linearizable read | write |\n\
             |---:|---|---:|---:|---:|---:|\n",
            self.took.as_secs_f64()
        );
        for (ms, site, costs) in &self.costs {
            let at = (*ms, *site);
            // To the nearest other region, and from another region there first.
            let trips = if *site == LEADERS_SITE { 1 } else { 2 };
            let _ = writeln!(
                text,
                "| {ms} ms | {site} | {} | {} | {} | {} |",
                self.cell(at, costs, 0, |costs| costs.local),
                self.cell(at, costs, 0, |costs| costs.session),
                self.cell(at, costs, 1, |costs| costs.linearizable),
                self.cell(at, costs, trips, |costs| costs.write),
            );
        }
        text.push_str(
            "\n| round trip | clients in the leader's region | writes/s | beside the LAN's | most that so many \
             clients can ask | errors |\n|---:|---:|---:|---:|---:|---:|\n",
        );
        for one in &self.throughput {
            let lan =
                |other: &&Throughput| other.round_trip_ms == 0 && other.clients == one.clients;
            let lan = self
                .throughput
                .iter()
                .find(lan)
                .map_or(f64::NAN, |lan| lan.per_second);
            let ratio = one.per_second / lan;
            let most = match one.round_trip_ms {
                0 => "-".to_owned(),
                ms => format!("{:.0}", one.clients as f64 / (ms as f64 / 1e3)),
            };
            let is_missed = one.clients == BAR_CLIENTS && ratio < BAR_THROUGHPUT;
            let _ = writeln!(
                text,
                "| {} ms | {} | {:.0} | {ratio:.2}{} | {most} | {} |",
                one.round_trip_ms,
                one.clients,
                one.per_second,
                if is_missed { " **missed**" } else { "" },
                one.errors
            );
        }
        if !self.failovers.is_empty() {
            let _ = write!(
                text,
                "\nThe longest silence before an election (`[raft] election_max_ms`) is {} ms.\n\n\
                 | round trip | writes again after the loss of the leader's region | in elections | \
                 acknowledged writes | of them lost |\n|---:|---:|---:|---:|---:|\n",
                self.election.as_millis()
            );
        }
        for (ms, failover) in &self.failovers {
            let elections = failover.took.as_secs_f64() / self.election.as_secs_f64();
            let _ = writeln!(
                text,
                "| {ms} ms | {:.0} ms | {elections:.2}{} | {} | {} |",
                failover.took.as_secs_f64() * 1e3,
                if elections > BAR_FAILOVER || failover.lost > 0 {
                    " **missed**"
                } else {
                    ""
                },
                failover.acknowledged,
                failover.lost
            );
        }
        text
    }

    fn plot(&self) -> Option<String> {
        let mut all: Vec<Series> = Vec::new();
        for one in &self.throughput {
            let name = format!("{} ms", one.round_trip_ms);
            let point = (one.clients as f64, one.per_second);
            match all.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => all.push(Series {
                    name,
                    points: vec![point],
                }),
            }
        }
        let x = Axis::of(
            "clients in the leader's region",
            Scale::Logarithmic,
            &all,
            |at| at.0,
        )?;
        let y = Axis::of("writes a second", Scale::Logarithmic, &all, |at| at.1)?;
        Some(draw(
            "Writes over round trips between three regions",
            &x,
            &y,
            &all,
        ))
    }

    /// Writes both into the documents.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        replace(&folder.join("regions.md"), BEGIN, END, &self.text())?;
        let plot = self.plot().context("no throughput was measured")?;
        std::fs::write(folder.join(PLOT), plot + "\n")?;
        Ok(())
    }
}

/// Puts a text between two lines of a document.
pub(crate) fn replace(file: &Path, begin: &str, end: &str, text: &str) -> anyhow::Result<()> {
    let page =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let parts = page.split_once(begin);
    let (before, rest) =
        parts.with_context(|| format!("{} has no line {begin}", file.display()))?;
    let parts = rest.split_once(end);
    let (_, after) = parts.with_context(|| format!("{} has no line {end}", file.display()))?;
    ensure!(
        !after.contains(begin),
        "{} has two such places",
        file.display()
    );
    std::fs::write(
        file,
        format!("{before}{begin}\n{}\n\n{end}{after}", text.trim_end()),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let costs = |linearizable, write| Costs {
            local: 0.5,
            session: 0.5,
            linearizable,
            write,
        };
        let throughput = |round_trip_ms, per_second| Throughput {
            round_trip_ms,
            clients: BAR_CLIENTS,
            per_second,
            errors: 0,
        };
        let failover = |millis| Failover {
            took: Duration::from_millis(millis),
            acknowledged: 10,
            lost: 0,
        };
        Report {
            costs: vec![
                (0, "middle", costs(1.0, 2.0)),
                (100, "middle", costs(102.0, 204.0)),
                (100, "north", costs(202.0, 204.0)),
            ],
            throughput: vec![throughput(0, 2000.0), throughput(100, 1000.0)],
            failovers: vec![(100, failover(4000)), (0, failover(5000))],
            took: Duration::from_secs(100),
            election: Duration::from_millis(1500),
        }
    }

    #[test]
    fn what_misses_its_bar_is_marked() {
        let text = report().text();
        let missed: Vec<_> = (text.lines())
            .filter(|line| line.contains("missed"))
            .collect();
        assert_eq!(
            missed,
            [
                "| 100 ms | north | 0.5 | 0.5 | 202.0 **missed** | 204.0 **missed** |",
                "| 100 ms | 256 | 1000 | 0.50 **missed** | 2560 | 0 |",
                "| 0 ms | 5000 ms | 3.33 **missed** | 10 | 0 |",
            ]
        );
        assert!(report().plot().unwrap().contains("100 ms"));
    }

    #[test]
    fn the_documents_have_a_place_for_it() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/regions.md");
        let page = std::fs::read_to_string(docs).unwrap();
        assert!(page.contains(BEGIN) && page.contains(END) && page.contains(PLOT));
    }
}
