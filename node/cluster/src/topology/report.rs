//! The topology report for operators.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use placement_raft_store::Site;
use placement_wire::{
    Loss, MemberStanding, PartitionCosts, Reads, RoundTrip, SiteCosts, SiteReads, Survived,
    Topology,
};

use super::costs::{RoundTrips, Voters};
use super::losses::{Extent, MemberStatus, fatal, has_quorum, places};

/// Computes the report. `clouds` contains the name and the region of each partition.
pub fn topology_of(
    members: &[MemberStatus],
    trips: &RoundTrips,
    leader: Option<u64>,
    survive: &str,
    clouds: &[(String, String)],
) -> Topology {
    let is_survived = |extent| fatal(members, extent).is_empty();
    let mut nodes_at = BTreeMap::<&Site, Vec<&MemberStatus>>::new();
    for member in members {
        nodes_at.entry(&member.site).or_default().push(member);
    }
    let voters = Voters::from_members(members);
    let leader_now = leader.filter(|_| has_quorum(members, &BTreeSet::new()));
    let read = |node| voters.read(trips, node, leader_now?);
    let write = |node| voters.write(trips, node, leader_now?);
    let best = |nodes: &[&MemberStatus], cost: &dyn Fn(u64) -> Option<Duration>| {
        let reachable = nodes.iter().filter(|node| node.is_reachable);
        reachable.filter_map(|node| cost(node.node)).min().map(ms)
    };
    let sites = nodes_at.iter().map(|(site, nodes)| SiteCosts {
        region: site.region.clone(),
        zone: site.zone.clone(),
        nodes: nodes.iter().map(|node| node.node).collect(),
        linearizable_ms: best(nodes, &read),
        write_ms: best(nodes, &write),
    });
    let partitions = clouds.iter().map(|(name, region)| {
        let there: Vec<&MemberStatus> = members
            .iter()
            .filter(|one| one.site.region == *region)
            .collect();
        PartitionCosts {
            name: name.clone(),
            region: region.clone(),
            linearizable_ms: best(&there, &read),
            write_ms: best(&there, &write),
        }
    });
    let losses = (Extent::ALL.into_iter())
        .flat_map(|extent| places(members, extent))
        .map(|(place, nodes)| {
            let writes = has_quorum(members, &nodes);
            let is_left = |one: &&MemberStatus| one.is_reachable && !nodes.contains(&one.node);
            let sites = nodes_at.iter().map(|(site, there)| SiteReads {
                region: site.region.clone(),
                zone: site.zone.clone(),
                reads: if !there.iter().any(is_left) {
                    Reads::None
                } else if writes {
                    Reads::All
                } else {
                    Reads::Local
                },
            });
            Loss {
                sites: sites.collect(),
                place,
                nodes,
                writes,
            }
        });
    let standing = |member: &MemberStatus| MemberStanding {
        node: member.node,
        region: member.site.region.clone(),
        zone: member.site.zone.clone(),
        votes: member.is_voter,
        reachable: member.is_reachable,
    };
    let measured = trips.iter().map(|((from, to), took)| RoundTrip {
        from,
        to,
        ms: ms(took),
    });
    Topology {
        leader,
        survive: survive.to_owned(),
        survives: Survived {
            node: is_survived(Extent::Node),
            zone: is_survived(Extent::Zone),
            region: is_survived(Extent::Region),
        },
        members: members.iter().map(standing).collect(),
        round_trips: measured.collect(),
        sites: sites.collect(),
        partitions: partitions.collect(),
        losses: losses.collect(),
    }
}

/// Converts a duration to milliseconds, with a resolution of one microsecond.
pub fn ms(took: Duration) -> f64 {
    took.as_micros() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::super::losses::tests::standings;
    use super::*;

    #[test]
    fn loss_lists_the_reads_that_each_site_still_answers() {
        let members = standings(&["n/*", "n/*", "s/*", "edge/"]);
        let topology = topology_of(&members, &RoundTrips::default(), Some(1), "region", &[]);
        assert_eq!(
            topology.survives,
            Survived {
                node: true,
                zone: false,
                region: false
            }
        );
        let reads = |place: &str| {
            let mut losses = topology.losses.iter();
            let loss = losses.find(|loss| loss.place.to_string() == place).unwrap();
            let reads: Vec<_> = loss.sites.iter().map(|site| site.reads).collect();
            (loss.writes, reads)
        };
        let (all, local, none) = (Reads::All, Reads::Local, Reads::None);
        // In the order of their names: edge, n, s.
        assert_eq!(reads("region n"), (false, vec![local, none, local]));
        assert_eq!(reads("region s"), (true, vec![all, all, none]));
        assert_eq!(reads("region edge"), (true, vec![none, all, all]));
        assert_eq!(reads("node 1"), (true, vec![all, all, all]));
    }
}
