//! A cluster over sites at a configurable distance from each other.

use std::time::{Duration, Instant};

use anyhow::ensure;
use placement_tests::cluster::Cluster;

use crate::progress;

/// Site of each node. The last node is a learner.
const SITES: [&str; 6] = ["north", "north", "middle", "middle", "south", "edge"];
const VOTERS: u64 = 5;
pub(crate) const LEARNER: u64 = 6;
/// The preferred site of the leader.
pub(crate) const LEADERS_SITE: &str = "north";
/// Time allowed for the leadership to get there.
const SETTLED: Duration = Duration::from_secs(120);
/// A cluster over several sites.
pub(crate) struct Sites {
    pub(crate) cluster: Cluster,
    /// The longest election timeout.
    pub(crate) election_ms: u64,
}

pub(crate) fn site_of(id: u64) -> &'static str {
    SITES[id as usize - 1]
}

impl Sites {
    pub(crate) async fn start(round_trip_ms: u64, bits_per_s: Option<u32>) -> anyhow::Result<Self> {
        let election_ms = 1_500.max(12 * round_trip_ms);
        let config = format!(
            "[cluster]\nleader_preference = [\"{LEADERS_SITE}\"]\n\
             [raft]\nround_trip_ms = {round_trip_ms}\n"
        );
        let cluster = match bits_per_s {
            Some(bits_per_s) => Cluster::prepare_linked(VOTERS, &config, bits_per_s)?,
            None => Cluster::prepare_far(VOTERS, &config)?,
        };
        let mut sites = Self {
            cluster,
            election_ms,
        };
        progress("starting five voters and a learner");
        for id in 1..=VOTERS {
            sites.start_node(id)?;
        }
        sites.cluster.wait_healthy().await?;
        sites.cluster.add_place();
        sites.cluster.admit(LEARNER).await?;
        sites.start_node(LEARNER)?;
        sites.cluster.wait_ready(LEARNER).await?;
        sites.settle().await?;
        Ok(sites)
    }

    pub(crate) fn start_node(&mut self, id: u64) -> anyhow::Result<()> {
        self.cluster.start_node_at(id, site_of(id))
    }

    pub(crate) fn set_round_trips(&self, round_trip_ms: u64) {
        self.cluster.set_round_trips(|one, other| {
            if site_of(one) == site_of(other) {
                Duration::ZERO
            } else {
                Duration::from_millis(round_trip_ms)
            }
        });
    }

    /// Waits until the leader is at its preferred site; returns its id.
    pub(crate) async fn settle(&self) -> anyhow::Result<u64> {
        let begun = Instant::now();
        loop {
            let leader = self.cluster.leader().await?;
            if site_of(leader) == LEADERS_SITE {
                return Ok(leader);
            }
            ensure!(begun.elapsed() < SETTLED, "node {leader} still leads");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// For each site, a node that does not lead.
    pub(crate) async fn asked(&self) -> anyhow::Result<Vec<u64>> {
        let leader = self.settle().await?;
        let mut asked: Vec<u64> = (1..=LEARNER).filter(|id| *id != leader).collect();
        asked.dedup_by_key(|id| site_of(*id));
        Ok(asked)
    }
}
