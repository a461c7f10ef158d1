//! The course of a run, seen from outside the nodes: steps of time, the fault phase
//! (`fault_phase.rs`), and the goals that must be reached after it within time limits.

mod fault_phase;
mod restored;
mod sites;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use placement_base::coverage::RarePath;
use placement_machine::coverage;
use placement_model::Stamped;
use turmoil::Sim;

use crate::client::{work, work_in_second_partition};
use crate::faults::{Fault, FaultRecord, Kinds, Links, Planned};
use crate::history::History;
use crate::host::Host;
use crate::invariants::leader_settles::{LeaderSettles, StepObservations};
use crate::invariants::{Leadership, indexes_agree, liveness, votes_are_kept};
use crate::ledger::SharedLedger;
use crate::mutant::Mutant;
use crate::operator::{Done, Order, OrderQueue};
use crate::parameters::{Bounds, Parameters};
use crate::report::seen_at;
use crate::scan::scan;
use crate::shared::{ChangeLogReader, Phase, Shared};
use crate::timeline::{NodeState, Timeline};
use crate::watcher::watch;
use crate::{outside, trace, witness};

/// How long clients continue in the healthy cluster.
const FURTHER: Duration = Duration::from_millis(1500);

/// Results of a run apart from history and ledger.
#[derive(Default)]
pub(crate) struct RunObservations {
    pub(crate) violations: Vec<String>,
    pub(crate) leaders: Leadership,
    pub(crate) kinds: Kinds,
    pub(crate) faults: Vec<FaultRecord>,
    pub(crate) lost_bytes: u64,
    /// Files and names lost in power cuts.
    pub(crate) lost_files: u64,
    /// Orders of the operators, with outcomes.
    pub(crate) orders: Vec<(Order, Done)>,
    /// Points at which nodes lost power during their work.
    pub(crate) points: Kinds,
    /// Errors of nodes that refused their data.
    pub(crate) refused: Vec<String>,
    /// Messages that were held and released late.
    pub(crate) late: u64,
    pub(crate) simulated: Duration,
    /// Time from the end of the fault phase until every client's writes succeeded.
    pub(crate) recovery: Duration,
    pub(crate) story: Timeline,
    /// History and log of a cluster that was lost.
    pub(crate) lost: Option<(History, BTreeMap<u64, Stamped>)>,
    /// When the cluster became healthy: no request may be refused from then on.
    pub(crate) healthy_since: Option<Duration>,
}

/// The simulated machines, network, clients and operators of one run.
pub(crate) struct World {
    sim: Sim<'static>,
    shared: Rc<Shared>,
    ledger: SharedLedger,
    hosts: BTreeMap<u64, Rc<Host>>,
    clients: Vec<String>,
    down: BTreeMap<u64, usize>,
    links: Links,
    desk: Rc<OrderQueue>,
    /// Queue of a second operator.
    deputy: Rc<OrderQueue>,
    /// Machines that are not members: waiting spares, and replaced or removed nodes.
    outside: BTreeSet<u64>,
    /// Machines whose disks were replaced. They get no more requests.
    wiped: BTreeSet<u64>,
    /// Nodes that stay unavailable until the end of the recovery phase.
    away: BTreeSet<u64>,
    /// Whether the unavailable nodes have returned.
    has_come_back: bool,
    /// Checks where leadership is and how it moves.
    settles: LeaderSettles,
    /// Number of the ledger's violations to which the time of detection has been added.
    seen: usize,
    pub(crate) course: RunObservations,
}

impl World {
    pub(crate) fn new(
        parameters: &Parameters,
        mutant: Option<Mutant>,
        shared: Rc<Shared>,
        ledger: SharedLedger,
    ) -> turmoil::Result<Self> {
        let mut sim = turmoil::Builder::new()
            .rng_seed(parameters.seed.number("network"))
            .epoch(outside::epoch())
            .tick_duration(parameters.tick)
            .min_message_latency(parameters.latency_min)
            .max_message_latency(parameters.latency_max)
            .simulation_duration(Duration::from_secs(3600))
            .tcp_capacity(4096)
            .enable_random_order()
            .build();
        let mut hosts = BTreeMap::new();
        for node in 1..=parameters.machines() {
            let host = Host::new(node, parameters, mutant, ledger.clone())?;
            let software = host.clone();
            sim.host(host.name.clone(), move || software.clone().run());
            let reader = Rc::downgrade(&host);
            let reader: ChangeLogReader = Box::new(move || reader.upgrade()?.change_log());
            shared.change_logs.borrow_mut().insert(node, reader);
            hosts.insert(node, host);
        }
        let mut clients = Vec::new();
        for number in 0..parameters.clients {
            let name = format!("client{number}");
            sim.client(name.clone(), work(number, shared.clone(), mutant));
            clients.push(name);
        }
        for number in 0..parameters.neighbours() {
            let name = format!("neighbour{number}");
            sim.client(
                name.clone(),
                work_in_second_partition(number, shared.clone()),
            );
            clients.push(name);
        }
        if parameters.watchers > 0 {
            sim.client("watchers", watch(shared.clone(), ledger.clone()));
            clients.push("watchers".to_owned());
        }
        let [desk, deputy] = OrderQueue::two(parameters.nodes, &ledger.lock().ordered());
        sim.client("operator", desk.clone().work());
        if parameters.two_operators {
            sim.client("deputy", deputy.clone().work());
        }
        sim.client("scanner", scan(shared.clone()));
        clients.push("scanner".to_owned());
        let world = Self {
            sim,
            shared,
            ledger,
            hosts,
            clients,
            down: BTreeMap::new(),
            links: Links::default(),
            desk,
            deputy,
            wiped: BTreeSet::new(),
            away: BTreeSet::new(),
            has_come_back: false,
            outside: (parameters.nodes + 1..=parameters.machines()).collect(),
            settles: LeaderSettles::new(parameters),
            seen: 0,
            course: RunObservations::default(),
        };
        world.apply_site_latencies();
        Ok(world)
    }

    /// Runs all phases and collects the results.
    pub(crate) fn course(&mut self, faults: &[Planned]) -> turmoil::Result {
        let result = self.phases(faults);
        self.course.simulated = self.sim.elapsed();
        self.course.late = self.links.late;
        let lost = self.hosts.values().map(|host| host.disk().lost_files());
        self.course.lost_files = lost.sum();
        self.course.refused = self
            .hosts
            .values()
            .filter_map(|host| host.refused())
            .collect();
        result
    }

    fn phases(&mut self, faults: &[Planned]) -> turmoil::Result {
        let Bounds {
            set_up,
            recovery,
            changes,
        } = self.shared.parameters.bounds();
        self.begins("the nodes start");
        let formed = |world: &Self| world.shared.phase.get() == Phase::Faults;
        if !self.shared.parameters.faults_from_the_start {
            self.steps(set_up, "the cluster did not form", formed)?;
        }
        self.take_in_learners(changes)?;
        self.begins("the fault phase begins");
        let parameters = &self.shared.parameters;
        let no_node_fails = faults.is_empty() && !parameters.minority_stays_down;
        if no_node_fails && !parameters.faults_from_the_start {
            self.course.healthy_since = Some(self.sim.elapsed());
        }
        self.fault_phase(faults)?;
        if self.shared.parameters.is_lost {
            self.heal();
            self.steps(
                set_up,
                "the cluster did not form after the fault phase",
                formed,
            )?;
            self.lose_all(recovery)?;
            self.fault_phase(faults)?;
        }
        self.heal();
        self.steps(
            set_up,
            "the cluster did not form after the fault phase",
            formed,
        )?;
        let ordered = |world: &Self| world.desk.is_empty() && world.deputy.is_empty();
        self.steps(changes, "the cluster was not changed as ordered", ordered)
            .map_err(|error| {
                format!(
                    "{error}; one operator: {}; the other: {}",
                    self.desk.left(),
                    self.deputy.left()
                )
            })?;
        self.take_in();
        self.is_closed();
        self.put_back(recovery)?;
        self.recount("after all faults ended");
        self.begins("the recovery phase begins, each client has to complete writes");
        let settled = self.sim.elapsed() + self.shared.parameters.settling();
        self.shared.phase.set(Phase::Recovery);
        let clients = self.shared.parameters.clients + self.shared.parameters.neighbours();
        let content = |world: &Self| world.shared.content.get() == clients;
        let unserved = "not every client's writes succeeded after the fault phase";
        self.course.recovery = self.steps(recovery, unserved, content)?;
        // Nodes that have just started may have missed the last membership change.
        self.take_in();
        // A node behind a connection that a fault broke may learn of it last.
        self.steps(recovery, "not every node caught up", Self::converged)?;
        // A membership change without an answer may have been executed since.
        self.take_in();
        self.steps(recovery, "not every node caught up", Self::converged)?;
        let has_settled = |world: &Self| world.sim.elapsed() >= settled;
        self.steps(recovery, "the settling time did not end", has_settled)?;
        self.course.healthy_since.get_or_insert(self.sim.elapsed());
        self.begins("clients continue in the healthy cluster");
        self.shared.phase.set(Phase::Further);
        let over = self.sim.elapsed() + FURTHER;
        let is_over = |world: &Self| world.sim.elapsed() >= over;
        self.steps(recovery, "the further phase did not end", is_over)?;
        self.shared.phase.set(Phase::Answered);
        let stopped = |world: &Self| world.shared.content.get() == 2 * clients;
        self.steps(recovery, "not every request was answered", stopped)?;
        let ended = |world: &Self| !world.up().any(|host| host.has_leases_that_are_over());
        self.steps(recovery, "not every lease that is over has ended", ended)?;
        let clouds = self.shared.parameters.clouds;
        let questions = [Some(clouds.partition()), clouds.neighbour()].map(|cloud| {
            let (log, names) = (&self.ledger.lock().log, &self.shared.names);
            cloud.map_or(Vec::new(), |cloud| {
                witness::every_question(log, cloud, names)
            })
        });
        let count: usize = questions.iter().map(Vec::len).sum();
        // Watchers ask one node after the other: twice for changes, and for earlier moments.
        let watching = 4 * self.shared.nodes.borrow().len();
        let count = count + watching;
        let scan = self.shared.parameters.scan_max(count);
        *self.shared.questions.borrow_mut() = questions;
        self.begins("the scanner reads everything from every node");
        self.shared.phase.set(Phase::Scan);
        let done = |world: &Self| world.shared.phase.get() == Phase::Done;
        let silent = "not every node answered everything after the fault phase";
        self.steps(scan, silent, done)?;
        self.steps(recovery, "the nodes did not converge", Self::converged)?;
        self.rest()?;
        if !self.away.is_empty() {
            self.begins("the unavailable nodes return");
            self.come_back();
            self.steps(recovery, "the late nodes did not converge", Self::converged)?;
        }
        self.recount("at the end of the run");
        Ok(())
    }

    /// Compares the data that each node derives from its rows (trees, sums, indexes) with the same
    /// data computed again from the rows.
    fn recount(&mut self, when: &str) {
        for host in self
            .hosts
            .values()
            .filter(|host| !host.agrees_with_recount())
        {
            let wrong = format!("{}: on node {}, {when}", indexes_agree::NAME, host.node);
            self.course
                .violations
                .push(seen_at(&wrong, self.sim.elapsed()));
        }
    }

    fn begins(&mut self, phase: &'static str) {
        self.course.story.begins(self.sim.elapsed(), phase);
    }

    /// Steps until `done`. Returns the elapsed time. Fails with `complaint` after `most`.
    fn steps(
        &mut self,
        most: Duration,
        complaint: &str,
        done: impl Fn(&Self) -> bool,
    ) -> turmoil::Result<Duration> {
        let began = self.sim.elapsed();
        while !done(self) {
            if self.sim.elapsed() > began + most {
                return Err(format!(
                    "{}: {complaint} within {most:?} of simulated time; applied: {}",
                    liveness::NAME,
                    self.positions()
                )
                .into());
            }
            self.step()?;
        }
        Ok(self.sim.elapsed() - began)
    }

    fn step(&mut self) -> turmoil::Result {
        trace::step();
        self.sim.step()?;
        for wrong in self.ledger.lock().violations.iter_mut().skip(self.seen) {
            *wrong = seen_at(wrong, self.sim.elapsed());
            self.seen += 1;
        }
        let mut roles = Vec::new();
        for host in self.hosts.values() {
            if let Some(wrong) = host.lost_vote() {
                let wrong = votes_are_kept::complaint(host.node, &wrong);
                // Reported once; the run continues, to show the consequences.
                let violations = &mut self.course.violations;
                if !violations.iter().any(|one| one.starts_with(&wrong)) {
                    violations.push(seen_at(&wrong, self.sim.elapsed()));
                }
            }
            let role = host.role();
            let life = match role {
                None => NodeState::Down,
                Some(role) if role.leads => NodeState::Leads(role.vote.leader_id.term),
                Some(role) => NodeState::Follows(role.vote.leader_id.term),
            };
            self.course.story.look(self.sim.elapsed(), host.node, life);
            if let Some(role) = role {
                self.course.leaders.observe(role)?;
                roles.push(role);
            }
        }
        let seen = StepObservations {
            now: self.sim.elapsed(),
            roles: &roles,
            found: coverage::times(RarePath::BetterSite),
            has_drained: &|node| self.desk.has_drained(node),
            is_healthy: self.course.healthy_since.is_some() && !self.has_come_back,
        };
        self.settles.observe(&seen, self.ledger.lock().logs())?;
        self.exclude_damaged_nodes();
        for (node, token) in self.desk.take_tokens() {
            self.kill(node);
            self.hosts[&node].set_join_token(&token)?;
            self.start(node);
        }
        Ok(())
    }

    /// Sends requests to all current members from now on, and to no other node: an order without an
    /// answer may have been executed.
    fn take_in(&mut self) {
        self.course.orders = self.desk.done();
        self.course.orders.extend(self.deputy.done());
        let known = self.hosts.values().filter_map(|host| host.members());
        let Some((_, members)) = known.max_by_key(|(index, _)| *index) else {
            return;
        };
        let mut nodes = self.shared.nodes.borrow_mut();
        for node in self.hosts.keys() {
            let is_asked = nodes.contains(node);
            match members.contains(node) && !self.wiped.contains(node) {
                true if self.outside.remove(node) && !is_asked => nodes.push(*node),
                true => {}
                false => {
                    self.outside.insert(*node);
                    nodes.retain(|one| one != node);
                }
            }
        }
    }

    /// Treats a node that refuses its data as down, and sends it no requests.
    fn exclude_damaged_nodes(&mut self) {
        for (node, host) in &self.hosts {
            let mut nodes = self.shared.nodes.borrow_mut();
            if nodes.contains(node) && host.refused().is_some() {
                nodes.retain(|one| one != node);
                *self.down.entry(*node).or_default() += 1;
            }
        }
    }

    /// The running members.
    fn up(&self) -> impl Iterator<Item = &Rc<Host>> {
        let hosts = self.hosts.iter();
        hosts
            .filter(|(node, _)| !self.down.contains_key(node))
            .filter(|(node, _)| !self.outside.contains(node) && !self.away.contains(node))
            .map(|(_, host)| host)
    }

    /// Whether all running members have the same applied index and the same state.
    fn converged(&self) -> bool {
        let mut applied = self.up().map(|host| host.applied());
        let first = applied.next().flatten();
        first.is_some() && applied.all(|one| one == first)
    }

    /// Applied index of each node, and the nodes that the simulation does not wait for.
    fn positions(&self) -> String {
        let position = |(node, host): (&u64, &Rc<Host>)| {
            let at = host
                .applied()
                .map_or("?".to_owned(), |(id, _)| format!("{id:?}"));
            let apart = [
                (self.down.contains_key(node), " down"),
                (self.outside.contains(node), " outside"),
                (self.away.contains(node), " away"),
            ];
            let apart: String = (apart.iter())
                .filter_map(|(is, word)| is.then_some(*word))
                .collect();
            format!("node {node} {at}{apart}")
        };
        let positions: Vec<String> = self.hosts.iter().map(position).collect();
        positions.join(", ")
    }

    fn leader(&self) -> Option<u64> {
        let roles = self.hosts.values().filter_map(|host| host.role());
        roles
            .filter(|role| role.leads)
            .max_by_key(|role| role.vote.leader_id)
            .map(|role| role.node)
    }

    /// Ends the remaining faults, except for broken connections.
    fn heal(&mut self) {
        for (node, host) in &self.hosts {
            host.slow_disk(false);
            for (other, peer) in self.hosts.range(node + 1..) {
                debug_assert_ne!(node, other);
                self.sim.repair(host.name.as_str(), peer.name.as_str());
            }
        }
        for node in self.away.clone() {
            self.shared.nodes.borrow_mut().retain(|one| *one != node);
            if !self.down.contains_key(&node) {
                self.cut(Fault::Isolate(node));
                self.cut(Fault::CutClients(node));
            }
        }
    }

    /// Brings back the nodes that were unavailable.
    fn come_back(&mut self) {
        self.has_come_back = true;
        for node in std::mem::take(&mut self.away) {
            if self.down.contains_key(&node) {
                self.start(node)
            } else {
                self.heal_links(Fault::Isolate(node));
                self.heal_links(Fault::CutClients(node));
            }
        }
    }
}
