//! Machines at sites: latencies, learners, and faults of whole sites.

use std::time::Duration;

use super::World;
use crate::faults::{Fault, Nodes};
use crate::invariants::leader_settles::SETTLE;
use crate::operator::{Done, Order};
use crate::regions::Regions;

/// The run does not wait for leadership to move if a leader would have to lead for longer than
/// this.
const RESTS_MAX: Duration = Duration::from_secs(12);

impl World {
    fn regions(&self) -> Option<&Regions> {
        self.shared.parameters.regions.as_ref()
    }

    /// The machines of a site. Operator and scanner have no latency to any site, so that the final
    /// scan is not slower than in other runs.
    fn at_site(&self, regions: &Regions, site: usize) -> Vec<String> {
        let hosts = self
            .hosts
            .iter()
            .filter(|(node, _)| regions.site(**node) == site);
        let clients = 0..self.shared.parameters.clients;
        let clients = clients.filter(|client| regions.site_of_client(*client) == site);
        let hosts = hosts.map(|(_, host)| host.name.clone());
        hosts
            .chain(clients.map(|client| self.clients[client].clone()))
            .collect()
    }

    /// Sets the latencies between sites.
    pub(super) fn apply_site_latencies(&self) {
        let Some(regions) = self.regions() else {
            return;
        };
        for a in 0..regions.sites() {
            for b in a + 1..regions.sites() {
                let way = regions.way(a, b);
                for one in self.at_site(regions, a) {
                    for other in self.at_site(regions, b) {
                        let (one, other) = (one.as_str(), other.as_str());
                        self.sim.set_link_latency(one, other, way);
                        let most = way + self.shared.parameters.latency_max;
                        self.sim.set_link_max_message_latency(one, other, most);
                    }
                }
            }
        }
    }

    /// Longest latency between two nodes without a slow link.
    pub(super) fn way_max(&self, a: u64, b: u64) -> Duration {
        let way = self
            .regions()
            .map(|regions| regions.way(regions.site(a), regions.site(b)));
        way.unwrap_or_default() + self.shared.parameters.latency_max
    }

    /// Lets the operator add the permanent learners, and waits for it.
    pub(super) fn take_in_learners(&mut self, within: Duration) -> turmoil::Result {
        let voters = self.shared.parameters.nodes;
        let learners = voters + 1..=voters + self.shared.parameters.learners();
        self.desk.order(learners.clone().map(Order::Add));
        let ordered = |world: &Self| world.desk.is_empty();
        self.steps(within, "the learners were not added", ordered)?;
        for (order, done) in self.desk.done() {
            if let (Order::Add(node), Done::Yes) = (order, done) {
                self.outside.remove(&node);
                self.shared.nodes.borrow_mut().push(node);
            }
        }
        Ok(())
    }

    /// Continues until leadership has moved, or could have moved, to a preferred site, if that does
    /// not take too long. Each step checks the move.
    pub(super) fn rest(&mut self) -> turmoil::Result {
        let settle = SETTLE * 2 * self.shared.parameters.election;
        let until = self.sim.elapsed() + settle + Duration::from_secs(3);
        let is_elsewhere = |world: &Self| {
            let leader = world.leader();
            let regions = world
                .regions()
                .filter(|regions| !regions.preference.is_empty());
            regions.is_some_and(|regions| leader.is_none_or(|leader| regions.rank(leader) > 0))
        };
        while settle <= RESTS_MAX && is_elsewhere(self) && self.sim.elapsed() < until {
            self.step()?;
        }
        Ok(())
    }

    /// Resolves a fault that aims at the leader's site. Outer `None`: it aims elsewhere; inner
    /// `None`: there is no leader.
    pub(super) fn at_leaders_site(&self, fault: Fault) -> Option<Option<Fault>> {
        let strikes: fn(&Regions, usize) -> Fault = match fault {
            Fault::PowerCutLeaderSite => |regions, site| Fault::PowerCutSite(regions.nodes(site)),
            Fault::CutLeaderSite => |_, site| Fault::CutSite(site),
            Fault::DrainLeaderSite => |regions, site| Fault::DrainSite(regions.nodes(site)),
            _ => return None,
        };
        let (Some(regions), Some(leader)) = (self.regions(), self.leader()) else {
            return Some(None);
        };
        Some(Some(strikes(regions, regions.site(leader))))
    }

    /// The one-way links that a fault of sites cuts.
    pub(super) fn site_ways(&self, fault: Fault) -> Option<Vec<(String, String)>> {
        let regions = self.regions()?;
        let between = |from: usize, to: usize| -> Vec<(String, String)> {
            let (from, to) = (self.at_site(regions, from), self.at_site(regions, to));
            let pairs = from
                .iter()
                .flat_map(|a| to.iter().map(move |b| (a.clone(), b.clone())));
            pairs.collect()
        };
        let both = |a: usize, b: usize| between(a, b).into_iter().chain(between(b, a));
        Some(match fault {
            Fault::CutSite(site) => {
                let others = (0..regions.sites()).filter(|other| *other != site);
                others.flat_map(|other| both(site, other)).collect()
            }
            Fault::FlapSites(a, b) => both(a, b).collect(),
            Fault::CutSiteWay(from, to) => between(from, to),
            _ => return None,
        })
    }

    /// Drains nodes one after the other, the leader last, like `placementctl drain --region`.
    pub(super) fn drain(&self, nodes: Nodes) {
        let leader = self.leader();
        let mut nodes: Vec<u64> = nodes.iter().collect();
        nodes.sort_by_key(|node| Some(*node) == leader);
        self.desk.order(nodes.into_iter().map(Order::Drain));
    }
}
