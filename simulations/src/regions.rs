//! Sites of the machines of a run: regions with voters, edge sites with permanent learners, and the
//! latencies between them.

use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;

use crate::choice::one_of;
use crate::nodes::Nodes;

/// Round-trip times between sites to choose from, in milliseconds.
const ROUND_TRIPS_MS: [u64; 8] = [1, 5, 10, 30, 60, 100, 150, 200];
/// Numbers of voters per region to choose from.
const VOTERS: [&[u64]; 8] = [
    &[2, 2, 1],
    &[2, 2, 1],
    &[2, 2, 1],
    &[1, 1, 1],
    &[1, 1, 1],
    &[1, 2, 2],
    &[3, 2],
    &[2, 1],
];
/// Percentage of requests to a node of the client's own site.
const AT_HOME_PERCENT: u32 = 80;

/// Sites of a run.
#[derive(Debug, Clone)]
pub struct Regions {
    /// Site of each node, starting with node 1: voters, permanent learners, then spares. Sites are
    /// numbered from 0, those with voters first.
    pub site_of: Vec<usize>,
    /// Number of learners; they follow the voters.
    pub learners: u64,
    /// Round trip between the sites of row and column.
    pub round_trips: Vec<Vec<Duration>>,
    /// Preferred sites of the leader, best first.
    pub preference: Vec<usize>,
    /// A voter that misses at most this many log entries has caught up enough for leadership to
    /// move to it.
    pub lag_max: u64,
}

impl Regions {
    /// Regions with these numbers of voters, and learners each at a site of its own, with the same
    /// round trip between all sites.
    pub fn new(voters: &[u64], learners: u64, round_trip: Duration) -> Self {
        let sites = voters.len() + usize::try_from(learners).expect("few learners");
        let in_regions = voters.iter().enumerate();
        let voters_at = in_regions.flat_map(|(site, count)| (0..*count).map(move |_| site));
        let far = |a: usize, b: usize| if a == b { Duration::ZERO } else { round_trip };
        Self {
            site_of: voters_at.chain(voters.len()..sites).collect(),
            learners,
            round_trips: (0..sites)
                .map(|a| (0..sites).map(|b| far(a, b)).collect())
                .collect(),
            preference: Vec::new(),
            lag_max: 1000,
        }
    }

    /// Number of sites, including edge sites.
    pub fn sites(&self) -> usize {
        self.round_trips.len()
    }

    /// Site of a node; additional machines are at the first site.
    pub fn site(&self, node: u64) -> usize {
        let number = usize::try_from(node - 1).expect("few nodes");
        self.site_of.get(number).copied().unwrap_or_default()
    }

    /// The nodes of a site.
    pub fn nodes(&self, site: usize) -> Nodes {
        let all = (1..).zip(&self.site_of);
        all.filter(|(_, at)| **at == site)
            .map(|(node, _)| node)
            .collect()
    }

    /// Site of a client.
    pub fn site_of_client(&self, client: usize) -> usize {
        client % self.sites()
    }

    /// Name of a site.
    pub fn name(site: usize) -> String {
        format!("r{site}")
    }

    /// Zone of a node; each region has two.
    pub fn zone(node: u64) -> String {
        if node.is_multiple_of(2) { "b" } else { "a" }.to_owned()
    }

    /// Distance of a leader from the best site; 0 is best.
    pub fn rank(&self, node: u64) -> usize {
        let site = self.site(node);
        let at = self.preference.iter().position(|one| *one == site);
        at.unwrap_or(self.preference.len())
    }

    /// One-way latency between two sites.
    pub fn way(&self, a: usize, b: usize) -> Duration {
        self.round_trips[a][b] / 2
    }

    /// Longest round trip between two sites.
    pub fn farthest(&self) -> Duration {
        self.round_trips
            .iter()
            .flatten()
            .copied()
            .max()
            .unwrap_or_default()
    }

    /// The nodes that a client at `site` chooses from for its next request, mostly those of its
    /// site.
    pub fn choice(&self, random: &mut SmallRng, site: usize, nodes: Vec<u64>) -> Vec<u64> {
        let at_home = random.random_ratio(AT_HOME_PERCENT, 100);
        let here: Vec<u64> = nodes
            .iter()
            .copied()
            .filter(|node| self.site(*node) == site)
            .filter(|_| at_home)
            .collect();
        if here.is_empty() { nodes } else { here }
    }

    /// Draws regions, round trips and leader preferences.
    pub fn draw(random: &mut SmallRng) -> Self {
        let voters = one_of(random, &VOTERS);
        let mut drawn = Self::new(voters, random.random_range(0..=3), Duration::ZERO);
        let sites = drawn.sites();
        for a in 0..sites {
            for b in a + 1..sites {
                let ms = one_of(random, &ROUND_TRIPS_MS);
                drawn.round_trips[a][b] = Duration::from_millis(ms);
                drawn.round_trips[b][a] = drawn.round_trips[a][b];
            }
        }
        let first = random.random_range(0..voters.len());
        let preferred = one_of(random, &[0, 1, 1, 2]);
        drawn.preference = (0..preferred)
            .map(|next| (first + next) % voters.len())
            .collect();
        drawn.lag_max = one_of(random, &[10, 50, 1000]);
        drawn
    }
}
