//! Where each node of a cluster on this machine listens and keeps its data.

use std::path::{Path, PathBuf};

/// How many ports one node takes of the cluster's range.
pub const PORTS_PER_NODE: u16 = crate::ports::BLOCK;

/// One node's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlace {
    /// Its id, from 1.
    pub id: u64,
    /// The first of its ports.
    pub base_port: u16,
    /// Its data directory.
    pub data_dir: PathBuf,
    /// What it logs.
    pub log: PathBuf,
}

impl NodePlace {
    /// The place of node `id` of a cluster in `directory` whose ports begin at `base_port`.
    pub fn new(directory: &Path, base_port: u16, id: u64) -> Self {
        let nth = u16::try_from(id - 1).expect("a cluster on one machine has few nodes");
        Self {
            id,
            base_port: base_port + nth * PORTS_PER_NODE,
            data_dir: directory.join(format!("node-{id}")),
            log: directory.join(format!("node-{id}.log")),
        }
    }

    /// The places of a whole cluster.
    pub fn all(directory: &Path, base_port: u16, nodes: u64) -> Vec<Self> {
        (1..=nodes)
            .map(|id| Self::new(directory, base_port, id))
            .collect()
    }

    /// Its three ports and what each is for.
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

    /// `host:port` for the other nodes.
    pub fn peer(&self) -> String {
        format!("127.0.0.1:{}", self.base_port + 1)
    }

    /// `host:port` at which the other nodes reach it where a link lies between.
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

/// The `initial_members` that form a cluster of these nodes.
pub fn initial_members(places: &[NodePlace]) -> String {
    members(places, NodePlace::peer)
}

/// The same where the nodes reach each other over links.
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
