//! Which losses a cluster survives, and what reads and writes cost at each site: `GET /v1/topology`
//! of the admin listener.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What the asked node and those that answer it know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Who leads.
    pub leader: Option<u64>,
    /// Which single losses are to be survived: `node`, `zone`, `region`, or nothing.
    pub survive: String,
    /// Which are.
    pub survives: Survived,
    /// The members.
    pub members: Vec<MemberStanding>,
    /// What they have measured.
    pub round_trips: Vec<RoundTrip>,
    /// What reads and writes cost where.
    pub sites: Vec<SiteCosts>,
    /// What they cost the clouds whose region the asked node's configuration names.
    pub partitions: Vec<PartitionCosts>,
    /// What becomes of each loss.
    pub losses: Vec<Loss>,
}

/// Whether a majority survives the loss of any one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survived {
    /// Of any one node.
    pub node: bool,
    /// Of any one zone.
    pub zone: bool,
    /// Of any one region.
    pub region: bool,
}

/// Where a member stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    pub reachable: bool,
}

/// How long a message and its answer take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// The node that has measured it.
    pub from: u64,
    /// The other.
    pub to: u64,
    /// In milliseconds.
    pub ms: f64,
}

/// What a request waits for at a site, in milliseconds between nodes, at the best of its nodes.
/// `None`: not known, or not possible.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteCosts {
    /// The region; empty: none is named.
    pub region: String,
    /// The zone; empty: none is named.
    pub zone: String,
    /// The nodes there.
    pub nodes: Vec<u64>,
    /// A linearizable read. Other reads do not wait.
    pub linearizable_ms: Option<f64>,
    /// A write.
    pub write_ms: Option<f64>,
}

/// What a request waits for in the region of a cloud, as in [`SiteCosts`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// What is lost.
    pub place: FailureDomain,
    /// The nodes that go with it.
    pub nodes: BTreeSet<u64>,
    /// Whether the others go on with writes.
    pub writes: bool,
    /// What is read then, and where.
    pub sites: Vec<SiteReads>,
}

/// Nodes that fail together. An empty name stands for the nodes without one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum FailureDomain {
    /// One node.
    Node {
        /// Its number.
        node: u64,
    },
    /// A zone of a region.
    Zone {
        /// The region.
        region: String,
        /// The zone.
        zone: String,
    },
    /// A region.
    Region {
        /// The region.
        region: String,
    },
}

impl fmt::Display for FailureDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { node } => write!(f, "node {node}"),
            Self::Region { region } if region.is_empty() => f.write_str("what names no region"),
            Self::Region { region } => write!(f, "region {region}"),
            Self::Zone { region, zone } => match (region.as_str(), zone.as_str()) {
                ("", "") => f.write_str("what names no zone"),
                ("", zone) => write!(f, "zone {zone}"),
                (region, "") => write!(f, "what names no zone in region {region}"),
                (region, zone) => write!(f, "zone {region}/{zone}"),
            },
        }
    }
}

/// What a site reads after a loss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteReads {
    /// The region; empty: none is named.
    pub region: String,
    /// The zone; empty: none is named.
    pub zone: String,
    /// What its nodes answer.
    pub reads: Reads,
}

/// Which reads are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reads {
    /// All.
    All,
    /// What a node can tell alone: local ones, those of a session that it has seen, bounded ones
    /// for a while.
    Local,
    /// None: no node is left there.
    None,
}
