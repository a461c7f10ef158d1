//! All of it, as operators are told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use placement_raft_store::Site;
use serde::Serialize;

use super::advice::advice;
use super::costs::{RoundTrips, Voters};
use super::losses::{Extent, Place, Standing, fatal, has_quorum, places};

/// What is known of where a cluster stands, and what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Topology {
    /// Who leads, as far as the asked node knows.
    pub leader: Option<u64>,
    /// Which single losses are to be survived, by `[cluster] survive` of the asked node; empty: nothing is said.
    pub survive: String,
    /// Which are.
    pub survives: Survived,
    /// The members.
    pub members: Vec<MemberStanding>,
    /// What they have measured.
    pub round_trips: Vec<RoundTrip>,
    /// What reads and writes cost where.
    pub sites: Vec<SiteCosts>,
    /// What they cost the clouds whose region the asked node's `[[partitions]]` name.
    pub partitions: Vec<PartitionCosts>,
    /// What becomes of each loss.
    pub losses: Vec<Loss>,
    /// What to change.
    pub advice: Vec<String>,
}

/// Whether a majority survives the loss of any one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Survived {
    /// Of any one node.
    pub node: bool,
    /// Of any one zone.
    pub zone: bool,
    /// Of any one region.
    pub region: bool,
}

/// Where a member stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberStanding {
    /// Its number.
    pub node: u64,
    /// Its region; empty: it names none.
    pub region: String,
    /// Its zone; empty: it names none.
    pub zone: String,
    /// Whether it has a vote.
    pub votes: bool,
    /// Whether it has answered.
    pub heard: bool,
}

/// How long a message and its answer take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoundTrip {
    /// The node that has measured it.
    pub from: u64,
    /// The other.
    pub to: u64,
    /// In milliseconds.
    pub ms: f64,
}

/// What a request waits for at a site, in milliseconds between nodes, at the best of its nodes; `None`: not known, or
/// not possible.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiteCosts {
    /// The region; empty: none is named.
    pub region: String,
    /// The zone; empty: none is named.
    pub zone: String,
    /// The nodes there.
    pub nodes: Vec<u64>,
    /// A linearizable read. Other reads wait for nobody.
    pub linearizable_ms: Option<f64>,
    /// A write.
    pub write_ms: Option<f64>,
}

/// What a request waits for in the region of a cloud, as in [`SiteCosts`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionCosts {
    /// The partition.
    pub name: String,
    /// Its region.
    pub region: String,
    /// A linearizable read.
    pub linearizable_ms: Option<f64>,
    /// A write.
    pub write_ms: Option<f64>,
}

/// What becomes of one loss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// What is lost.
    pub place: Place,
    /// The nodes that go with it.
    pub nodes: BTreeSet<u64>,
    /// Whether the others go on with writes.
    pub writes: bool,
    /// What is read then, and where.
    pub sites: Vec<SiteReads>,
}

/// What a site reads after a loss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SiteReads {
    /// The region; empty: none is named.
    pub region: String,
    /// The zone; empty: none is named.
    pub zone: String,
    /// What its nodes answer.
    pub reads: Reads,
}

/// Which reads are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reads {
    /// All.
    All,
    /// What a node can tell alone: local ones, those of a session that it has seen, bounded ones for a while.
    Local,
    /// None: no node is left there.
    None,
}

impl Topology {
    /// `clouds`: names of partitions with their regions.
    pub(crate) fn of(
        members: &[Standing],
        trips: &RoundTrips,
        leader: Option<u64>,
        survive: &str,
        clouds: &[(String, String)],
    ) -> Self {
        let is_survived = |extent| fatal(members, extent).is_empty();
        let mut nodes_at = BTreeMap::<&Site, Vec<&Standing>>::new();
        for member in members {
            nodes_at.entry(&member.site).or_default().push(member);
        }
        let voters = Voters::of(members);
        let leader_now = leader.filter(|_| has_quorum(members, &BTreeSet::new()));
        let read = |node| voters.read(trips, node, leader_now?);
        let write = |node| voters.write(trips, node, leader_now?);
        let best = |nodes: &[&Standing], cost: &dyn Fn(u64) -> Option<Duration>| {
            let heard = nodes.iter().filter(|node| node.is_heard);
            heard.filter_map(|node| cost(node.node)).min().map(ms)
        };
        let sites = nodes_at.iter().map(|(site, nodes)| SiteCosts {
            region: site.region.clone(),
            zone: site.zone.clone(),
            nodes: nodes.iter().map(|node| node.node).collect(),
            linearizable_ms: best(nodes, &read),
            write_ms: best(nodes, &write),
        });
        let partitions = clouds.iter().map(|(name, region)| {
            let there = members.iter().filter(|one| one.site.region == *region);
            let there: Vec<&Standing> = there.collect();
            PartitionCosts {
                name: name.clone(),
                region: region.clone(),
                linearizable_ms: best(&there, &read),
                write_ms: best(&there, &write),
            }
        });
        let losses = Extent::ALL
            .into_iter()
            .flat_map(|extent| places(members, extent));
        let losses = losses.map(|(place, nodes)| {
            let writes = has_quorum(members, &nodes);
            let sites = nodes_at.iter().map(|(site, there)| {
                let is_left = |one: &&Standing| one.is_heard && !nodes.contains(&one.node);
                SiteReads {
                    region: site.region.clone(),
                    zone: site.zone.clone(),
                    reads: match there.iter().copied().any(|one| is_left(&one)) {
                        true if writes => Reads::All,
                        true => Reads::Local,
                        false => Reads::None,
                    },
                }
            });
            Loss {
                sites: sites.collect(),
                place,
                nodes,
                writes,
            }
        });
        let standing = |member: &Standing| MemberStanding {
            node: member.node,
            region: member.site.region.clone(),
            zone: member.site.zone.clone(),
            votes: member.is_voter,
            heard: member.is_heard,
        };
        let measured = trips.iter().map(|((from, to), took)| RoundTrip {
            from,
            to,
            ms: ms(took),
        });
        Self {
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
            advice: advice(members, trips, leader, clouds),
        }
    }
}

/// In milliseconds, to the microsecond.
pub(crate) fn ms(took: Duration) -> f64 {
    took.as_micros() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::super::losses::tests::standings;
    use super::*;

    #[test]
    fn a_loss_says_what_each_site_reads_then() {
        let members = standings(&["n/*", "n/*", "s/*", "edge/"]);
        let topology = Topology::of(&members, &RoundTrips::default(), Some(1), "region", &[]);
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
