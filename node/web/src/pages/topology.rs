//! Tolerated failures, and the latency of reads and writes at each site.

use maud::{Markup, html};
use placement_wire::{Loss, MemberStanding, SiteCosts, Topology};
use placement_words::topology::{losses, reads};

use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{RowBudget, Table, cell};
use crate::words::{cut, site};

/// Maximum number of sites in a row.
const SITES_MAX: usize = 10;

pub(super) async fn show(questions: &mut Questions<'_>) -> Result<View, Failure> {
    let topology: Topology = questions.get("/v1/topology".to_owned()).await?;
    let mut budget = RowBudget::default();
    Ok(View {
        title: "Topology".to_owned(),
        body: html! {
            p class="verdict" { (summary(&topology)) }
            (shown(&mut budget, "Failures", &failures(), losses(&topology)))
            p {
                "Reads that remain: all; local only, which are requests with "
                code { "Placement-Consistency: local" }
                "; or none, because all nodes of the site have failed."
            }
            (shown(&mut budget, "Sites", &sites(), &topology.sites))
            p {
                "The time that a request through the best node of a site waits for other nodes. Reads that are not \
                linearizable do not wait."
            }
            (shown(&mut budget, "Members", &members(&topology), &topology.members))
        },
        commands: vec!["placementctl topology".to_owned()],
    })
}

fn shown<'a, T: 'a>(
    budget: &mut RowBudget,
    caption: &str,
    table: &Table<'_, T>,
    all: impl IntoIterator<Item = &'a T>,
) -> Markup {
    let rows = budget.take(all.into_iter().map(|one| table.row(one)));
    table.with(caption, &rows)
}

fn failures() -> Table<'static, Loss> {
    Table::new()
        .column("If this fails", |one: &Loss| cell(one.place.to_string()))
        .column("Failed nodes", |one| cell(&one.nodes))
        .column("Writes", |one| {
            cell(if one.writes { "continue" } else { "stop" })
        })
        .column("Reads that remain", |one| {
            cell(reads(one, SITES_MAX, |one| site(&one.region, &one.zone)))
        })
}

fn sites() -> Table<'static, SiteCosts> {
    Table::new()
        .column("Site", |one: &SiteCosts| cell(site(&one.region, &one.zone)))
        .column("Nodes", |one| cell(&one.nodes))
        .column("A linearizable read waits", |one| {
            cell(one.linearizable_ms.map(milliseconds))
        })
        .column("A write waits", |one| cell(one.write_ms.map(milliseconds)))
}

fn members(topology: &Topology) -> Table<'_, MemberStanding> {
    Table::new()
        .column("Node", |one: &MemberStanding| cell(one.node))
        .column("Site", |one| cell(site(&one.region, &one.zone)))
        .column("Voter", |one| cell(one.votes))
        .column("Reachable", |one| cell(one.reachable))
        .column("Measured round trips", |one| {
            let trips = topology.round_trips.iter();
            let trips = trips.filter(|trip| trip.from == one.node);
            let trips = trips.map(|trip| format!("{} to node {}", milliseconds(trip.ms), trip.to));
            cell(trips.collect::<Vec<_>>())
        })
}

fn milliseconds(ms: f64) -> String {
    format!("{ms:.1} ms")
}

fn summary(topology: &Topology) -> String {
    let survives = &topology.survives;
    let members = || topology.members.iter();
    let has_zones = members().any(|one| !one.zone.is_empty());
    let has_regions = members().any(|one| !one.region.is_empty());
    let kinds = [
        ("node", survives.node),
        ("zone", survives.zone && has_zones),
        ("region", survives.region && has_regions),
    ];
    let survived: Vec<&str> = kinds
        .iter()
        .filter(|(_, is)| *is)
        .map(|(kind, _)| *kind)
        .collect();
    let asked = &*cut(&topology.survive);
    let missed = if asked.is_empty() || survived.contains(&asked) {
        String::new()
    } else {
        format!(
            " [cluster] survive = \"{asked}\" is not met: the loss of a {asked} can stop writes."
        )
    };
    match survived.join(" or ") {
        _ if !topology.has_quorum() => format!("No quorum: writes have stopped.{missed}"),
        kinds if kinds.is_empty() => format!("The loss of any voter stops writes.{missed}"),
        kinds => format!("The cluster tolerates the loss of any one {kinds}.{missed}"),
    }
}
