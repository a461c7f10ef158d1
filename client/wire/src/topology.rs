//! Tolerated failures, and the latency of reads and writes at each site: `GET /v1/topology` of the
//! admin listener.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Topology as known to the asked node and the nodes that it reaches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Number of the leader, if known and reachable.
    pub leader: Option<u64>,
    /// `[cluster] survive`: `node`, `zone`, `region`, or empty.
    pub survive: String,
    /// The failures that the cluster tolerates.
    pub survives: Survived,
    /// Members of the cluster.
    pub members: Vec<MemberStanding>,
    /// Round trips that they measured.
    pub round_trips: Vec<RoundTrip>,
    /// Latency of reads and writes by site.
    pub sites: Vec<SiteCosts>,
    /// Latency by partition with a configured region.
    pub partitions: Vec<PartitionCosts>,
    /// Consequences of each possible failure.
    pub losses: Vec<Loss>,
}

impl Topology {
    /// Whether a majority of the voters answers the asked node.
    pub fn has_quorum(&self) -> bool {
        let voters = self.members.iter().filter(|member| member.votes);
        let reachable = voters.clone().filter(|member| member.reachable);
        reachable.count() > voters.count() / 2
    }
}

/// Whether a majority survives any single failure of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survived {
    /// Failure of one node.
    pub node: bool,
    /// Failure of one zone.
    pub zone: bool,
    /// Failure of one region.
    pub region: bool,
}

/// Site and state of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStanding {
    /// Number of the node.
    pub node: u64,
    /// Region; empty if not configured.
    pub region: String,
    /// Zone; empty if not configured.
    pub zone: String,
    /// Whether it is a voter.
    pub votes: bool,
    /// Whether it answered the asked node.
    pub reachable: bool,
}

/// Round trip between two nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// Node that measured it.
    pub from: u64,
    /// Node at the other end.
    pub to: u64,
    /// Duration of the round trip in milliseconds.
    pub ms: f64,
}

/// Time that a request waits for other nodes, in milliseconds, at the best node of a site. `None`
/// if unknown or impossible.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteCosts {
    /// Region; empty if not configured.
    pub region: String,
    /// Zone; empty if not configured.
    pub zone: String,
    /// Nodes at the site.
    pub nodes: Vec<u64>,
    /// Latency of a linearizable read. Other reads do not wait.
    pub linearizable_ms: Option<f64>,
    /// Latency of a write.
    pub write_ms: Option<f64>,
}

/// Time that a request waits in the region of a partition, as in [`SiteCosts`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionCosts {
    /// Name of the partition.
    pub name: String,
    /// Region of the partition.
    pub region: String,
    /// Latency of a linearizable read.
    pub linearizable_ms: Option<f64>,
    /// Latency of a write.
    pub write_ms: Option<f64>,
}

/// Consequences of one failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The failing node, zone or region.
    pub place: FailureDomain,
    /// Numbers of the failing nodes.
    pub nodes: BTreeSet<u64>,
    /// Whether the remaining nodes still accept writes.
    pub writes: bool,
    /// Reads at each site after the failure.
    pub sites: Vec<SiteReads>,
}

/// Nodes that fail together. An empty name means the nodes without a configured region or zone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum FailureDomain {
    /// The failure of a single node.
    Node {
        /// Number of the node.
        node: u64,
    },
    /// All nodes of a zone.
    Zone {
        /// Name of the region.
        region: String,
        /// Name of the zone.
        zone: String,
    },
    /// All nodes of a region.
    Region {
        /// Name of the region.
        region: String,
    },
}

impl fmt::Display for FailureDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { node } => write!(f, "node {node}"),
            Self::Region { region } if region.is_empty() => f.write_str("nodes without a region"),
            Self::Region { region } => write!(f, "region {region}"),
            Self::Zone { region, zone } => match (region.as_str(), zone.as_str()) {
                ("", "") => f.write_str("nodes without a zone"),
                ("", zone) => write!(f, "zone {zone}"),
                (region, "") => write!(f, "nodes without a zone in region {region}"),
                (region, zone) => write!(f, "zone {region}/{zone}"),
            },
        }
    }
}

/// Reads at a site after a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteReads {
    /// Region; empty if not configured.
    pub region: String,
    /// Zone; empty if not configured.
    pub zone: String,
    /// Reads that its nodes answer.
    pub reads: Reads,
}

/// Kinds of reads that are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reads {
    /// All reads are answered.
    All,
    /// Only reads that a node answers alone: local reads, session reads of a token that it has
    /// applied, and bounded reads until their limit.
    Local,
    /// No reads: no node remains there.
    None,
}
