//! `placementctl topology`: tolerated failures, and the latency of reads and writes.

use std::process::ExitCode;

use placement_client::{Admin, Loss, SiteCosts, Topology};
use placement_words::topology as words;

use crate::render::{NO_ROWS, Output, Rows, print};
use crate::survey::NO_QUORUM;

pub(crate) async fn show(admin: &Admin, output: &Output) -> anyhow::Result<ExitCode> {
    let topology = admin.topology().await?;
    print(&output.report(&topology, NO_ROWS, |_| text(&topology))?)?;
    Ok(match (topology.has_quorum(), is_as_configured(&topology)) {
        (false, _) => ExitCode::from(NO_QUORUM),
        (true, false) => ExitCode::FAILURE,
        (true, true) => ExitCode::SUCCESS,
    })
}

/// `REGION/ZONE`, the region or the zone alone, or a dash.
pub(crate) fn site(region: &str, zone: &str) -> String {
    match (region, zone) {
        ("", "") => "-".to_owned(),
        (one, "") | ("", one) => one.to_owned(),
        (region, zone) => format!("{region}/{zone}"),
    }
}

/// Whether the cluster tolerates the failure that `[cluster] survive` requires it to tolerate.
fn is_as_configured(topology: &Topology) -> bool {
    let survives = &topology.survives;
    match topology.survive.as_str() {
        "region" => survives.region,
        "zone" => survives.zone,
        "node" => survives.node,
        _ => true,
    }
}

fn text(topology: &Topology) -> String {
    let parts = [
        sites(topology) + &clouds(topology),
        round_trips(topology),
        losses(topology),
        summary(topology),
    ];
    parts.join("\n")
}

/// A site, and its nodes with their marks.
struct Site {
    costs: SiteCosts,
    nodes: String,
}

/// A row for each site: its nodes, with a star for voters, and its latencies.
fn sites(topology: &Topology) -> String {
    let row = |costs: &SiteCosts| {
        let nodes = costs.nodes.iter().map(|node| name(topology, *node));
        Site {
            costs: costs.clone(),
            nodes: nodes.collect::<Vec<_>>().join(" "),
        }
    };
    let table = Rows::new(topology.sites.iter().map(row).collect())
        .column("site", |row| site(&row.costs.region, &row.costs.zone))
        .column("nodes", |row| row.nodes.clone())
        .column("read", |row| cost(row.costs.linearizable_ms))
        .column("write", |row| cost(row.costs.write_ms))
        .table();
    table + "* voter, ! unreachable; READ: linearizable reads; other reads do not wait\n"
}

/// A row for each partition with a configured region.
fn clouds(topology: &Topology) -> String {
    if topology.partitions.is_empty() {
        return String::new();
    }
    let table = Rows::new(topology.partitions.clone())
        .column("partition", |row| row.name.clone())
        .column("region", |row| row.region.clone())
        .column("read", |row| cost(row.linearizable_ms))
        .column("write", |row| cost(row.write_ms))
        .table();
    format!("\n{table}")
}

fn name(topology: &Topology, node: u64) -> String {
    let member = topology.members.iter().find(|member| member.node == node);
    let votes = member.is_some_and(|member| member.votes);
    let is_unreachable = !member.is_some_and(|member| member.reachable);
    let leads = topology.leader == Some(node) && topology.has_quorum();
    let marks = [(votes, "*"), (leads, " (leads)"), (is_unreachable, "!")]
        .map(|(is, mark)| if is { mark } else { "" });
    format!("{node}{}", marks.concat())
}

fn cost(ms: Option<f64>) -> Option<String> {
    ms.map(|ms| format!("{ms:.1} ms"))
}

/// The longest round trip between two sites.
struct SitePair {
    sites: [String; 2],
    ms: f64,
}

/// A row for each pair of sites.
fn round_trips(topology: &Topology) -> String {
    let at = |costs: &SiteCosts, node: u64| costs.nodes.contains(&node);
    let between = |one: &SiteCosts, other: &SiteCosts| {
        let trips = topology.round_trips.iter().filter(|trip| {
            at(one, trip.from) && at(other, trip.to) || at(other, trip.from) && at(one, trip.to)
        });
        trips.map(|trip| trip.ms).reduce(f64::max)
    };
    if topology.round_trips.is_empty() {
        return "no round trip has been measured yet\n".to_owned();
    }
    let mut rows = Vec::new();
    for (index, one) in topology.sites.iter().enumerate() {
        for other in &topology.sites[index..] {
            if let Some(ms) = between(one, other) {
                let sites = [one, other].map(|one| site(&one.region, &one.zone));
                rows.push(SitePair { sites, ms });
            }
        }
    }
    Rows::new(rows)
        .column("between", |row| row.sites.join(" - "))
        .column("round_trip", |row| cost(Some(row.ms)))
        .table()
}

/// A row for each failure.
fn losses(topology: &Topology) -> String {
    let rows = words::losses(topology).into_iter().cloned();
    Rows::new(rows.collect())
        .column("loss", |row: &Loss| row.place.to_string())
        .column("nodes", |row| {
            let nodes = row.nodes.iter().map(ToString::to_string);
            nodes.collect::<Vec<_>>().join(" ")
        })
        .column("writes", |row| if row.writes { "continue" } else { "stop" })
        .column("reads", |row| {
            words::reads(row, usize::MAX, |one| site(&one.region, &one.zone))
        })
        .table()
}

fn summary(topology: &Topology) -> String {
    let survives = &topology.survives;
    let [has_zones, has_regions] = words::has_places(topology);
    let kinds = [
        (survives.node, "node"),
        (survives.zone && has_zones, "zone"),
        (survives.region && has_regions, "region"),
    ];
    let survived: Vec<_> = kinds
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, name)| *name)
        .collect();
    let mut text = match survived.as_slice() {
        _ if !topology.has_quorum() => "no quorum: writes have stopped\n".to_owned(),
        [] => "the loss of any voter stops writes\n".to_owned(),
        names => format!(
            "the cluster tolerates the loss of any one {}\n",
            names.join(" or ")
        ),
    };
    if !is_as_configured(topology) {
        let wanted = &topology.survive;
        text += &format!(
            "`[cluster] survive = \"{wanted}\"` is not met: the loss of a {wanted} can stop writes\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use placement_client::{FailureDomain, Reads, SiteReads};

    use super::*;

    fn topology(survive: &str) -> Topology {
        let body = serde_json::json!({
            "leader": 1,
            "survive": survive,
            "survives": {"node": true, "zone": false, "region": false},
            "members": [
                {"node": 1, "region": "n", "zone": "", "votes": true, "reachable": true},
                {"node": 2, "region": "n", "zone": "", "votes": true, "reachable": true},
                {"node": 3, "region": "s", "zone": "a", "votes": true, "reachable": false},
            ],
            "round_trips": [
                {"from": 1, "to": 2, "ms": 0.5},
                {"from": 1, "to": 3, "ms": 30.0},
                {"from": 3, "to": 2, "ms": 31.0},
            ],
            "sites": [
                {"region": "n", "zone": "", "nodes": [1, 2], "linearizable_ms": 0.5, "write_ms": 0.5},
                {"region": "s", "zone": "a", "nodes": [3], "linearizable_ms": null, "write_ms": null},
            ],
            "partitions": [
                {"name": "cloud", "region": "n", "linearizable_ms": 0.5, "write_ms": 0.7},
            ],
            "losses": [
                {"place": {"kind": "node", "node": 3}, "nodes": [3], "writes": true, "sites": [
                    {"region": "n", "zone": "", "reads": "all"},
                    {"region": "s", "zone": "a", "reads": "none"},
                ]},
                {"place": {"kind": "zone", "region": "s", "zone": "a"}, "nodes": [3], "writes": true, "sites": [
                    {"region": "n", "zone": "", "reads": "all"},
                    {"region": "s", "zone": "a", "reads": "none"},
                ]},
                {"place": {"kind": "region", "region": "n"}, "nodes": [1, 2], "writes": false, "sites": [
                    {"region": "n", "zone": "", "reads": "none"},
                    {"region": "s", "zone": "a", "reads": "local"},
                ]},
                {"place": {"kind": "region", "region": "s"}, "nodes": [3], "writes": true, "sites": [
                    {"region": "n", "zone": "", "reads": "all"},
                    {"region": "s", "zone": "a", "reads": "none"},
                ]},
            ],
        });
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn the_report_is_a_table() {
        let output = text(&topology("region"));
        for line in [
            "n     1* (leads) 2*  0.5 ms  0.5 ms",
            "s/a   3*!            -       -",
            "cloud      n       0.5 ms  0.7 ms",
            "n - s/a  31.0 ms",
            "region n  1 2    stop      local only in s/a; none in n",
            "node 3    3      continue  all in n; none in s/a",
            "the cluster tolerates the loss of any one node",
            "`[cluster] survive = \"region\"` is not met: the loss of a region can stop writes",
        ] {
            assert!(output.contains(line), "{line:?} is not in\n{output}");
        }
        // The region has the same node.
        assert!(!output.contains("zone s/a"), "{output}");
    }

    #[test]
    fn without_a_quorum_no_node_leads_and_writes_have_stopped() {
        let mut topology = topology("region");
        topology.members[1].reachable = false;
        let output = text(&topology);
        assert!(output.contains("1* 2*!"), "{output}");
        assert!(
            output.contains("no quorum: writes have stopped\n"),
            "{output}"
        );
        assert!(!output.contains("tolerates"), "{output}");
    }

    #[test]
    fn a_cluster_without_regions_has_no_region_lines() {
        let mut topology = topology("");
        topology.survives.zone = true;
        for member in &mut topology.members {
            member.region.clear();
            member.zone.clear();
        }
        let here = |place, writes, reads| Loss {
            place,
            nodes: [3].into(),
            writes,
            sites: vec![SiteReads {
                region: String::new(),
                zone: String::new(),
                reads,
            }],
        };
        let region = String::new();
        topology.losses = vec![
            here(FailureDomain::Region { region }, false, Reads::None),
            here(FailureDomain::Node { node: 3 }, true, Reads::None),
        ];
        let output = text(&topology);
        assert!(!output.contains("names no"), "{output}");
        assert!(
            output.contains("node 3  3      continue  none\n"),
            "{output}"
        );
        assert!(
            output.contains("the cluster tolerates the loss of any one node\n"),
            "{output}"
        );
    }

    #[test]
    fn the_configured_survival_decides_the_exit_code() {
        assert!(is_as_configured(&topology("")));
        assert!(is_as_configured(&topology("node")));
        assert!(!is_as_configured(&topology("region")));
    }
}
