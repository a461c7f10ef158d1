//! Tolerated failures, and the latency of reads and writes at each site.

use maud::{Markup, html};
use placement_wire::{FailureDomain, Loss, MemberStanding, RoundTrip, SiteCosts, Topology};

use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{RowBudget, Table, cell};
use crate::words::{cut, site, word};

/// Maximum number of sites in a row.
const SITES_MAX: usize = 10;

pub(super) async fn show(questions: &mut Questions<'_>) -> Result<View, Failure> {
    let topology: Topology = questions.get("/v1/topology".to_owned()).await?;
    let mut budget = RowBudget::default();
    Ok(View {
        title: "Topology".to_owned(),
        body: html! {
            p class="verdict" { (summary(&topology)) }
            (shown(&mut budget, "Failures", &losses(), &topology.losses))
            (shown(&mut budget, "Sites", &sites(), &topology.sites))
            (shown(&mut budget, "Members", &members(), &topology.members))
            (shown(&mut budget, "Round trips", &round_trips(), &topology.round_trips))
        },
        commands: vec!["placementctl topology".to_owned()],
    })
}

fn shown<T>(budget: &mut RowBudget, caption: &str, table: &Table<'_, T>, all: &[T]) -> Markup {
    let rows = budget.take(all.iter().map(|one| table.row(one)));
    table.with(caption, &rows)
}

fn losses() -> Table<'static, Loss> {
    Table::new()
        .column("Failure", |one: &Loss| {
            let lost = match &one.place {
                FailureDomain::Node { node } => format!("node {node}"),
                FailureDomain::Zone { region, zone } => format!("zone {}", site(region, zone)),
                FailureDomain::Region { region } => format!("region {}", site(region, "")),
            };
            cell(lost)
        })
        .column("Nodes", |one| cell(&one.nodes))
        .column("Writes continue", |one| cell(one.writes))
        .column("Reads", |one| {
            let reads = one.sites.iter().take(SITES_MAX);
            let reads = reads.map(|one| {
                let (site, reads) = (site(&one.region, &one.zone), word(one.reads));
                format!("{site}: {reads}")
            });
            cell(reads.collect::<Vec<_>>())
        })
}

fn sites() -> Table<'static, SiteCosts> {
    Table::new()
        .column("Site", |one: &SiteCosts| cell(site(&one.region, &one.zone)))
        .column("Nodes", |one| cell(&one.nodes))
        .column("Linearizable read (ms)", |one| cell(one.linearizable_ms))
        .column("Write (ms)", |one| cell(one.write_ms))
}

fn members() -> Table<'static, MemberStanding> {
    Table::new()
        .column("Node", |one: &MemberStanding| cell(one.node))
        .column("Site", |one| cell(site(&one.region, &one.zone)))
        .column("Voter", |one| cell(one.votes))
        .column("Reachable", |one| cell(one.reachable))
}

fn round_trips() -> Table<'static, RoundTrip> {
    Table::new()
        .column("From node", |one: &RoundTrip| cell(one.from))
        .column("To node", |one| cell(one.to))
        .column("Milliseconds", |one| cell(one.ms))
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
