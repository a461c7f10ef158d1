//! The course of a run, from outside of all nodes: steps of time, faults that begin and end, and
//! what must come true before long once all is mended.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use turmoil::Sim;

use crate::client::Client;
use crate::faults::{Cuts, Fault, Happened, Kinds, Planned};
use crate::host::Host;
use crate::invariants::Leadership;
use crate::ledger::SharedLedger;
use crate::mutant::Mutant;
use crate::parameters::{Bounds, Parameters};
use crate::scan::scan;
use crate::shared::{Phase, Shared};
use crate::story::{Life, Story};
use crate::{outside, trace, witness};

/// What a run leaves behind beside history and ledger.
#[derive(Default)]
pub(crate) struct Course {
    pub(crate) violations: Vec<String>,
    pub(crate) leaders: Leadership,
    pub(crate) kinds: Kinds,
    pub(crate) faults: Vec<Happened>,
    pub(crate) lost_bytes: u64,
    pub(crate) simulated: Duration,
    /// How long the cluster took after the storm until every client got its writes through.
    pub(crate) calm: Duration,
    pub(crate) story: Story,
}

/// The simulated world.
pub(crate) struct World {
    sim: Sim<'static>,
    shared: Rc<Shared>,
    ledger: SharedLedger,
    hosts: BTreeMap<u64, Rc<Host>>,
    clients: Vec<String>,
    down: BTreeMap<u64, usize>,
    cuts: Cuts,
    pub(crate) course: Course,
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
        for node in 1..=parameters.nodes {
            let host = Host::new(node, parameters, mutant, ledger.clone())?;
            let software = host.clone();
            sim.host(host.name.clone(), move || software.clone().run());
            hosts.insert(node, host);
        }
        let mut clients = Vec::new();
        for number in 0..parameters.clients {
            let name = format!("client{number}");
            sim.client(name.clone(), Client::new(number, shared.clone()).work());
            clients.push(name);
        }
        sim.client("scanner", scan(shared.clone()));
        clients.push("scanner".to_owned());
        Ok(Self {
            sim,
            shared,
            ledger,
            hosts,
            clients,
            down: BTreeMap::new(),
            cuts: Cuts::default(),
            course: Course::default(),
        })
    }

    /// The run from its first step to its last.
    pub(crate) fn course(&mut self, faults: &[Planned]) -> turmoil::Result {
        let result = self.phases(faults);
        self.course.simulated = self.sim.elapsed();
        result
    }

    fn phases(&mut self, faults: &[Planned]) -> turmoil::Result {
        let Bounds { set_up, calm } = self.shared.parameters.bounds();
        self.begins("the nodes start");
        let formed = |world: &Self| world.shared.phase.get() == Phase::Storm;
        self.steps(set_up, "the cluster did not form", formed)?;
        self.begins("the storm begins");
        let stays_down = self.storm(faults)?;
        self.mend(stays_down)?;
        self.begins("all is mended, each client has to get writes through");
        self.shared.phase.set(Phase::Calm);
        let clients = self.shared.parameters.clients;
        let content = |world: &Self| world.shared.content.get() == clients;
        let unheard = "not every client got its writes through after the storm";
        self.course.calm = self.steps(calm, unheard, content)?;
        let questions = witness::every_question(&self.ledger.lock().log);
        let scan = self.shared.parameters.scan_max(questions.len());
        self.shared.ask(questions);
        self.begins("every node is asked everything");
        self.shared.phase.set(Phase::Scan);
        let done = |world: &Self| world.shared.phase.get() == Phase::Done;
        let silent = "not every node answered everything after the storm";
        self.steps(scan, silent, done)?;
        self.steps(calm, "the nodes did not converge", Self::converged)?;
        if let Some(node) = stays_down {
            self.begins("the node that stayed away is started");
            self.start(node);
            self.steps(calm, "the late node did not converge", Self::converged)?;
        }
        Ok(())
    }

    fn begins(&mut self, phase: &'static str) {
        self.course.story.begins(self.sim.elapsed(), phase);
    }

    /// Steps until `done`. Returns how long that took.
    fn steps(
        &mut self,
        most: Duration,
        complaint: &str,
        done: impl Fn(&Self) -> bool,
    ) -> turmoil::Result<Duration> {
        let began = self.sim.elapsed();
        while !done(self) {
            if self.sim.elapsed() > began + most {
                return Err(format!("{complaint} within {most:?} of simulated time").into());
            }
            self.step()?;
        }
        Ok(self.sim.elapsed() - began)
    }

    fn step(&mut self) -> turmoil::Result {
        trace::step();
        self.sim.step()?;
        for host in self.hosts.values() {
            if let Some(wrong) = host.lost_vote() {
                let wrong = format!("votes are kept: node {}: {wrong}", host.node);
                // Said once; the run goes on, to show what follows from it.
                if !self.course.violations.contains(&wrong) {
                    self.course.violations.push(wrong);
                }
            }
            let role = host.role();
            let life = match role {
                None => Life::Down,
                Some(role) if role.leads => Life::Leads(role.vote.leader_id.term),
                Some(role) => Life::Follows(role.vote.leader_id.term),
            };
            self.course.story.look(self.sim.elapsed(), host.node, life);
            if let Some(role) = role {
                self.course.leaders.observe(role)?;
            }
        }
        Ok(())
    }

    /// All running nodes have applied the same, and have the same state.
    fn converged(&self) -> bool {
        let mut applied = self
            .hosts
            .iter()
            .filter(|(node, _)| !self.down.contains_key(node))
            .map(|(_, host)| host.applied());
        let first = applied.next().flatten();
        first.is_some() && applied.all(|one| one == first)
    }

    /// Faults begin and end. Returns the node that stays down, if one shall.
    fn storm(&mut self, faults: &[Planned]) -> turmoil::Result<Option<u64>> {
        let began = self.sim.elapsed();
        let mut coming = faults.iter().copied().peekable();
        let mut going: Vec<(Duration, Fault)> = Vec::new();
        while self.sim.elapsed() < began + self.shared.parameters.storm {
            let now = self.sim.elapsed() - began;
            while let Some(planned) = coming.next_if(|planned| planned.begins <= now) {
                let met = self.begin(planned.fault)?;
                going.extend(met.into_iter().map(|fault| (now + planned.lasts, fault)));
            }
            let (over, rest): (Vec<_>, Vec<_>) = going.into_iter().partition(|one| one.0 <= now);
            going = rest;
            for (_, fault) in over {
                self.end(fault);
            }
            self.step()?;
        }
        let stays_down = self
            .shared
            .parameters
            .minority_stays_down
            .then(|| self.leader().unwrap_or(1));
        if let Some(node) = stays_down {
            self.power_cut(node)?;
        }
        for (_, fault) in going {
            self.end(fault);
        }
        Ok(stays_down)
    }

    fn leader(&self) -> Option<u64> {
        let roles = self.hosts.values().filter_map(|host| host.role());
        roles
            .filter(|role| role.leads)
            .max_by_key(|role| role.vote.leader_id)
            .map(|role| role.node)
    }

    /// Begins a fault. What is returned names the nodes that it met, so that it can be ended.
    fn begin(&mut self, fault: Fault) -> turmoil::Result<Vec<Fault>> {
        let leader = self.leader();
        let met = match fault {
            Fault::PowerCutLeader => leader.map(Fault::PowerCut),
            Fault::IsolateLeader => leader.map(Fault::Isolate),
            Fault::DeafenLeader => leader.map(Fault::Deafen),
            Fault::SlowDiskLeader => leader.map(Fault::SlowDisk),
            fault => Some(fault),
        };
        let Some(met) = met else {
            return Ok(Vec::new());
        };
        self.course.kinds.insert(fault.kind());
        tracing::info!(?fault, ?met, at = ?self.sim.elapsed(), "fault begins");
        let mut more = Vec::new();
        match met {
            Fault::PowerCut(node) => self.power_cut(node)?,
            Fault::PowerCutFollowers => {
                let spared = self.leader();
                let nodes = 1..=self.shared.parameters.nodes;
                for node in nodes.filter(|node| Some(*node) != spared) {
                    self.power_cut(node)?;
                    more.push(Fault::PowerCut(node));
                }
            }
            Fault::PowerCutAll => {
                for node in 1..=self.shared.parameters.nodes {
                    self.power_cut(node)?;
                    more.push(Fault::PowerCut(node));
                }
            }
            Fault::SlowDisk(node) => self.hosts[&node].slow_disk(true),
            Fault::SlowLink(a, b) => self.link_latency(a, b, Duration::from_millis(400)),
            Fault::LossyLink(a, b) => self.loss(a, b, 0.03),
            _ => {
                for (from, to) in self.ways(met) {
                    if self.cuts.cut(&from, &to) {
                        self.sim.partition_oneway(from, to);
                    }
                }
            }
        }
        if more.is_empty() {
            more.push(met);
        }
        let from = self.sim.elapsed();
        self.course.faults.extend(more.iter().map(|fault| Happened {
            fault: *fault,
            from,
            to: Duration::MAX,
        }));
        Ok(more)
    }

    fn end(&mut self, fault: Fault) {
        let now = self.sim.elapsed();
        tracing::info!(?fault, at = ?now, "fault ends");
        let mut faults = self.course.faults.iter_mut();
        if let Some(ended) = faults.find(|one| one.fault == fault && one.to == Duration::MAX) {
            ended.to = now;
        }
        match fault {
            Fault::PowerCut(node) => self.start(node),
            Fault::SlowDisk(node) => self.hosts[&node].slow_disk(false),
            Fault::SlowLink(a, b) => {
                self.link_latency(a, b, self.shared.parameters.latency_max);
            }
            Fault::LossyLink(a, b) => self.loss(a, b, 0.0),
            _ => {
                for (from, to) in self.ways(fault) {
                    if self.cuts.mend(&from, &to) {
                        self.sim.repair_oneway(from, to);
                    }
                }
            }
        }
    }

    /// The ways that a fault cuts.
    fn ways(&self, fault: Fault) -> Vec<(String, String)> {
        let name = |node: u64| self.hosts[&node].name.clone();
        let others = |node: u64| (1..=self.shared.parameters.nodes).filter(move |one| *one != node);
        let out = |node: u64| others(node).map(move |one| (name(node), name(one)));
        let into = |node: u64| others(node).map(move |one| (name(one), name(node)));
        match fault {
            Fault::Isolate(node) => out(node).chain(into(node)).collect(),
            Fault::Mute(node) => out(node).collect(),
            Fault::Deafen(node) => into(node).collect(),
            Fault::CutClients(node) => self
                .clients
                .iter()
                .flat_map(|client| [(client.clone(), name(node)), (name(node), client.clone())])
                .collect(),
            _ => Vec::new(),
        }
    }

    fn link_latency(&self, a: u64, b: u64, most: Duration) {
        let (a, b) = (self.hosts[&a].name.clone(), self.hosts[&b].name.clone());
        self.sim.set_link_max_message_latency(a, b, most);
    }

    fn loss(&mut self, a: u64, b: u64, rate: f64) {
        let (a, b) = (self.hosts[&a].name.clone(), self.hosts[&b].name.clone());
        self.sim.set_link_fail_rate(a, b, rate);
    }

    /// Powers a node off. Faults may overlap: it comes back when the last of them ends.
    fn power_cut(&mut self, node: u64) -> turmoil::Result {
        let count = self.down.entry(node).or_default();
        *count += 1;
        if *count == 1 {
            let host = self.hosts[&node].clone();
            self.sim.crash(host.name.as_str());
            self.course.lost_bytes += host.lose_power()?;
        }
        Ok(())
    }

    fn start(&mut self, node: u64) {
        let Some(count) = self.down.get_mut(&node) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.down.remove(&node);
            self.sim.bounce(self.hosts[&node].name.as_str());
        }
    }

    /// Ends what is left of the storm, lost connections aside.
    fn mend(&mut self, stays_down: Option<u64>) -> turmoil::Result {
        for (node, host) in &self.hosts {
            host.slow_disk(false);
            for (other, peer) in self.hosts.range(node + 1..) {
                debug_assert_ne!(node, other);
                self.sim.repair(host.name.as_str(), peer.name.as_str());
            }
        }
        if let Some(node) = stays_down {
            self.shared.nodes.borrow_mut().retain(|one| *one != node);
        }
        Ok(())
    }
}
