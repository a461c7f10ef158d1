//! Addresses and data directories of the nodes of a cluster on this machine.

use std::path::{Path, PathBuf};

/// Number of ports of a node in the cluster's range.
pub const PORTS_PER_NODE: u16 = crate::ports::BLOCK;

/// Ports, data directory and log of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlace {
    /// Node id, from 1.
    pub id: u64,
    /// The first of the node's ports.
    pub base_port: u16,
    /// Data directory of the node.
    pub data_dir: PathBuf,
    /// File of the node's log messages.
    pub log: PathBuf,
}

impl NodePlace {
    /// Place of node `id` of a cluster in `directory` whose ports begin at `base_port`.
    pub fn new(directory: &Path, base_port: u16, id: u64) -> Self {
        let nth = u16::try_from(id - 1).expect("a cluster on one machine has few nodes");
        Self {
            id,
            base_port: base_port + nth * PORTS_PER_NODE,
            data_dir: directory.join(format!("node-{id}")),
            log: directory.join(format!("node-{id}.log")),
        }
    }

    /// Places of all nodes of a cluster.
    pub fn all(directory: &Path, base_port: u16, nodes: u64) -> Vec<Self> {
        (1..=nodes)
            .map(|id| Self::new(directory, base_port, id))
            .collect()
    }

    /// The node's three ports and the purpose of each.
    pub fn ports(&self) -> [(u16, &'static str); 3] {
        [
            (self.base_port, "the REST API"),
            (self.base_port + 1, "traffic between nodes"),
            (self.base_port + 2, "the admin listener"),
        ]
    }

    /// `host:port` of the REST API.
    pub fn api(&self) -> String {
        format!("127.0.0.1:{}", self.base_port)
    }

    /// `host:port` of the listener for other nodes.
    pub fn peer(&self) -> String {
        format!("127.0.0.1:{}", self.base_port + 1)
    }

    /// `host:port` at which a link in front of the node accepts the other nodes.
    pub fn link(&self) -> String {
        format!("127.0.0.1:{}", self.base_port + 3)
    }

    /// `host:port` of the admin listener.
    pub fn admin(&self) -> String {
        format!("127.0.0.1:{}", self.base_port + 2)
    }

    /// The URL of the REST API.
    pub fn api_url(&self) -> String {
        format!("http://{}", self.api())
    }
}

/// The `initial_members` setting that forms a cluster of these nodes.
pub fn initial_members(places: &[NodePlace]) -> String {
    members(places, NodePlace::peer)
}

/// The `initial_members` setting of nodes that reach each other over links.
pub fn linked_members(places: &[NodePlace]) -> String {
    members(places, NodePlace::link)
}

fn members(places: &[NodePlace], address: impl Fn(&NodePlace) -> String) -> String {
    let members: Vec<_> = places
        .iter()
        .map(|place| format!("{}={}", place.id, address(place)))
        .collect();
    members.join(",")
}
