//! Starts and ends faults.

use std::time::Duration;

use placement_machine::{POINTS, START_POINTS};

use super::World;
use crate::faults::{Fault, FaultRecord, Planned};
use crate::host::Host;
use crate::operator::Order;
use crate::shared::Phase;

/// How long a flapping link stays up, and how long it stays down.
const FLAP: Duration = Duration::from_millis(130);
/// The same for flapping links between two sites.
const FLAP_SITES: Duration = Duration::from_millis(1100);

/// Bytes per second of a connection with limited bandwidth.
const THIN: u64 = 4_000;

/// Longest wait until all other nodes have seen that a node has written since its disk was copied.
const KNOWN_WITHIN: Duration = Duration::from_secs(5);

/// A fault that has begun and not ended.
struct ActiveFault {
    fault: Fault,
    /// End, since the start of the fault phase.
    ends: Duration,
    /// For a fault that alternates or takes effect later: whether it is in effect, and when that
    /// changes.
    is_there: bool,
    changes: Duration,
}

impl World {
    /// Runs the fault phase. At its end, a minority of nodes becomes unavailable if the parameters
    /// say so.
    pub(super) fn fault_phase(&mut self, faults: &[Planned]) -> turmoil::Result {
        let began = self.sim.elapsed();
        let mut coming = faults.iter().copied().peekable();
        let mut going: Vec<ActiveFault> = Vec::new();
        let mut for_a_leader: Option<Planned> = None;
        while self.sim.elapsed() < began + self.shared.parameters.fault_phase {
            let now = self.sim.elapsed() - began;
            for one in &mut going {
                self.toggle(one, now)?;
            }
            while let Some(planned) = coming.next_if(|planned| planned.begins <= now) {
                if matches!(planned.fault, Fault::RetireLeader) {
                    for_a_leader = Some(planned);
                } else {
                    going.extend(self.begin_planned(planned, now)?);
                }
            }
            // The operator waits for a leader before it removes one.
            if self.leader().is_some()
                && let Some(planned) = for_a_leader.take()
            {
                going.extend(self.begin_planned(planned, now)?);
            }
            let (over, rest): (Vec<_>, Vec<_>) = going.into_iter().partition(|one| one.ends <= now);
            going = rest;
            for one in over {
                self.end(&one)?;
            }
            self.step()?;
        }
        for one in &mut going {
            self.toggle(one, self.shared.parameters.fault_phase)?;
        }
        let parameters = &self.shared.parameters;
        let (nodes, is_cut_off) = (parameters.nodes, parameters.minority_is_cut_off);
        if parameters.minority_stays_down {
            let minority = usize::try_from((nodes - 1) / 2).expect("few nodes");
            let first = self.leader().filter(|leader| *leader <= nodes).unwrap_or(1);
            let in_turn = (0..nodes).map(|step| 1 + (first - 1 + step) % nodes);
            self.away = in_turn.take(minority).collect();
        }
        for node in self.away.clone() {
            if !is_cut_off {
                self.power_cut(node, false)?;
            }
        }
        for one in going {
            self.end(&one)?;
        }
        Ok(())
    }

    /// Restores the disk of a node from its copy, if it was copied and all other nodes soon see a
    /// write of a later start. Otherwise no node could detect the older copy.
    pub(super) fn put_back(&mut self, refused_within: Duration) -> turmoil::Result {
        let copied = self.hosts.values().find_map(|host| host.copied());
        let Some((node, start)) = copied.filter(|(node, _)| !self.down.contains_key(node)) else {
            return Ok(());
        };
        let knows = |host: &Host| host.last_start_of(node) > Some(start);
        let until = self.sim.elapsed() + KNOWN_WITHIN;
        loop {
            let mut others = self.hosts.values().filter(|host| host.node != node);
            if others.all(|host| knows(host)) {
                break;
            }
            if self.sim.elapsed() > until {
                return Ok(());
            }
            self.step()?;
        }
        self.begin(Fault::PutBack(node))?;
        let refused = |world: &Self| world.hosts[&node].refused().is_some();
        self.steps(refused_within, "the older copy was not refused", refused)?;
        Ok(())
    }

    /// Starts a planned fault at this time of the fault phase.
    fn begin_planned(
        &mut self,
        planned: Planned,
        now: Duration,
    ) -> turmoil::Result<Vec<ActiveFault>> {
        let met = self.begin(planned.fault)?.into_iter();
        let going = met.map(|fault| ActiveFault {
            fault,
            ends: now + planned.lasts,
            is_there: !matches!(fault, Fault::PowerCutAt(..)),
            changes: now
                + if matches!(fault, Fault::FlapSites(..)) {
                    FLAP_SITES
                } else {
                    FLAP
                },
        });
        Ok(going.collect())
    }

    /// Starts a fault. Returns the faults on concrete nodes, which the caller needs to end them.
    fn begin(&mut self, fault: Fault) -> turmoil::Result<Vec<Fault>> {
        let met = match self.at_leaders_site(fault) {
            Some(fault) => fault
                .into_iter()
                .flat_map(|one| one.meets(self.nodes(), None))
                .collect(),
            None => fault.meets(
                self.nodes() - self.shared.parameters.learners(),
                self.leader(),
            ),
        };
        let needs_data = fault.may_miss() || matches!(fault, Fault::RotLog(_) | Fault::Replace(_));
        let is_too_early = needs_data && self.shared.phase.get() == Phase::Setup;
        if met.is_empty() || is_too_early {
            return Ok(Vec::new());
        }
        if !matches!(fault, Fault::PowerCutAt(..)) && !fault.may_miss() {
            self.course.kinds.insert(fault.kind());
        }
        tracing::info!(?fault, ?met, at = ?self.sim.elapsed(), "fault begins");
        let struck = met.into_iter().map(|one| self.inject(one));
        let met = struck.collect::<turmoil::Result<Vec<_>>>()?;
        if fault.may_miss() && met.contains(&fault) {
            self.course.kinds.insert(fault.kind());
        }
        let from = self.sim.elapsed();
        self.course
            .faults
            .extend(met.iter().map(|fault| FaultRecord {
                fault: *fault,
                from,
                to: Duration::MAX,
            }));
        Ok(met)
    }

    /// Starts a fault on concrete nodes. Returns the fault that really happened; it differs from
    /// `fault` if that found no target.
    fn inject(&mut self, fault: Fault) -> turmoil::Result<Fault> {
        let now = self.sim.elapsed();
        match fault {
            Fault::PowerCut(node) => self.power_cut(node, false)?,
            Fault::PowerCutTorn(node) => self.power_cut(node, true)?,
            Fault::PowerCutAt(node, point) => {
                self.hosts[&node].disk().fail_at(Some(POINTS[point]));
                if point < START_POINTS && !self.down.contains_key(&node) {
                    self.power_cut(node, false)?;
                    self.start(node);
                }
            }
            Fault::FullDisk(node) => self.hosts[&node].disk().set_full(true),
            Fault::DiskError(node) => self.hosts[&node].disk().set_failing_once(true),
            Fault::HungDisk(node) => self.hosts[&node].disk().set_hanging(true),
            Fault::RotLog(node) => {
                // The node is killed while it runs, and not powered off: the log positions that it
                // has recorded are then exact.
                let was_up = !self.down.contains_key(&node) && self.hosts[&node].role().is_some();
                self.kill(node);
                if was_up {
                    self.hosts[&node].rot_log()?;
                }
            }
            Fault::RotRow(node) | Fault::Copy(node) => {
                self.kill(node);
                let host = &self.hosts[&node];
                let has_happened = match fault {
                    Fault::RotRow(_) => host.rot_row()?,
                    _ => host.copy()?,
                };
                if !has_happened {
                    return Ok(Fault::Kill(node));
                }
            }
            Fault::PutBack(node) => {
                self.kill(node);
                self.hosts[&node].put_back()?;
                self.start(node);
            }
            Fault::Replace(node) => {
                self.kill(node);
                self.hosts[&node].wipe()?;
                self.start(node);
                self.shared.nodes.borrow_mut().retain(|one| *one != node);
                // The spare's number is the next unused one.
                let nodes = self.shared.parameters.nodes;
                let spare = self.outside.iter().copied().find(|one| *one > nodes);
                self.outside.insert(node);
                self.wiped.insert(node);
                self.desk.order([match spare {
                    Some(spare) => Order::Join { spare, old: node },
                    None => Order::Remove(node),
                }]);
            }
            Fault::Learner(node) => self.desk.order([Order::Add(node)]),
            Fault::Transfer(node) => self.desk.order([Order::Transfer(node)]),
            Fault::Grow(node) => {
                let desk = if node.is_multiple_of(2) {
                    &self.desk
                } else {
                    &self.deputy
                };
                desk.order([Order::Add(node), Order::Promote(node)]);
            }
            Fault::Demote(node) => {
                (self.deputy).order([Order::Demote(node), Order::Promote(node)]);
            }
            Fault::Retire(node) => self.desk.order([Order::Retire(node)]),
            Fault::Kill(node) => self.kill(node),
            Fault::Restart(node) => self.stop(node),
            Fault::Pause(node) => self.hosts[&node].pause(),
            Fault::SlowDisk(node) => self.hosts[&node].slow_disk(true),
            Fault::Thin(node) => self.hosts[&node].bandwidth.set(THIN),
            Fault::SlowLink(a, b) => self.link_latency(a, b, Duration::from_millis(400)),
            Fault::LossyLink(a, b) => self.loss(a, b, 0.03),
            Fault::ClockStep(node, by) => self.hosts[&node].wall.step(by),
            Fault::ClockDrift(node, by) => self.hosts[&node].wall.drift(now, by),
            Fault::Flap(a, b) => self.cut(Fault::CutLink(a, b)),
            Fault::DrainSite(nodes) => self.drain(nodes),
            _ => {
                self.cut(fault);
                for (a, b) in self.held(fault) {
                    self.links.hold(&self.sim, &a, &b);
                }
            }
        }
        Ok(fault)
    }

    fn end(&mut self, going: &ActiveFault) -> turmoil::Result {
        let (fault, now) = (going.fault, self.sim.elapsed());
        tracing::info!(?fault, at = ?now, "fault ends");
        let mut faults = self.course.faults.iter_mut();
        if let Some(ended) = faults.find(|one| one.fault == fault && one.to == Duration::MAX) {
            ended.to = now;
        }
        match fault {
            Fault::PowerCut(node)
            | Fault::PowerCutTorn(node)
            | Fault::Kill(node)
            | Fault::Restart(node)
            | Fault::RotLog(node)
            | Fault::RotRow(node)
            | Fault::Copy(node) => self.start(node),
            Fault::PowerCutAt(node, _) => {
                self.hosts[&node].disk().fail_at(None);
                if going.is_there {
                    self.start(node);
                }
            }
            Fault::FullDisk(node) => {
                self.hosts[&node].disk().set_full(false);
                self.kill(node);
                self.start(node);
            }
            Fault::DiskError(node) => {
                self.hosts[&node].disk().set_failing_once(false);
                self.power_cut(node, true)?;
                self.start(node);
            }
            Fault::HungDisk(node) => self.hosts[&node].disk().set_hanging(false),
            Fault::Replace(_)
            | Fault::Learner(_)
            | Fault::Transfer(_)
            | Fault::Grow(_)
            | Fault::Demote(_)
            | Fault::Retire(_)
            | Fault::PutBack(_) => {}
            Fault::Thin(node) => self.hosts[&node].bandwidth.set(0),
            Fault::Pause(node) => self.hosts[&node].resume(),
            Fault::SlowDisk(node) => self.hosts[&node].slow_disk(false),
            Fault::SlowLink(a, b) => self.link_latency(a, b, self.way_max(a, b)),
            Fault::LossyLink(a, b) => self.loss(a, b, 0.0),
            Fault::ClockStep(node, by) => self.hosts[&node].wall.step(-by),
            Fault::ClockDrift(node, by) => self.hosts[&node].wall.drift(now, -by),
            Fault::Flap(a, b) if going.is_there => self.heal_links(Fault::CutLink(a, b)),
            Fault::FlapSites(..) if going.is_there => self.heal_links(fault),
            Fault::Flap(..) | Fault::FlapSites(..) => {}
            Fault::DrainSite(nodes) => self.desk.order(nodes.iter().map(Order::Undrain)),
            _ => {
                self.heal_links(fault);
                for (a, b) in self.held(fault) {
                    self.links.release(&self.sim, &a, &b);
                }
            }
        }
        Ok(())
    }

    fn toggle(&mut self, one: &mut ActiveFault, now: Duration) -> turmoil::Result {
        match one.fault {
            Fault::Flap(a, b) if one.changes <= now => {
                one.changes = now + FLAP;
                one.is_there = !one.is_there;
                let cut = Fault::CutLink(a, b);
                if one.is_there {
                    self.cut(cut)
                } else {
                    self.heal_links(cut)
                }
            }
            Fault::FlapSites(..) if one.changes <= now => {
                one.changes = now + FLAP_SITES;
                one.is_there = !one.is_there;
                if one.is_there {
                    self.cut(one.fault)
                } else {
                    self.heal_links(one.fault)
                }
            }
            Fault::PowerCutAt(node, _) if !one.is_there => {
                if let Some(point) = self.hosts[&node].disk().failed_at() {
                    tracing::info!(node, point, at = ?self.sim.elapsed(), "the power fails");
                    one.is_there = true;
                    self.course.kinds.insert(one.fault.kind());
                    self.course.points.insert(point);
                    self.power_cut(node, false)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Number of machines for nodes, including learners and spares.
    fn nodes(&self) -> u64 {
        self.hosts.len() as u64
    }

    pub(super) fn cut(&mut self, fault: Fault) {
        for (from, to) in self.ways(fault) {
            self.links.cut(&self.sim, &from, &to);
        }
    }

    pub(super) fn heal_links(&mut self, fault: Fault) {
        for (from, to) in self.ways(fault) {
            self.links.heal(&self.sim, &from, &to);
        }
    }

    /// The one-way links that a fault cuts.
    fn ways(&self, fault: Fault) -> Vec<(String, String)> {
        if let Fault::CutClients(node) = fault {
            let both = self.pairs_with_clients(node).into_iter();
            return both
                .flat_map(|(a, b)| [(a.clone(), b.clone()), (b, a)])
                .collect();
        }
        match self.site_ways(fault) {
            Some(ways) => ways,
            None => self.named(fault.cut_ways(self.nodes())),
        }
    }

    /// The pairs of machines whose messages a fault holds.
    fn held(&self, fault: Fault) -> Vec<(String, String)> {
        match fault {
            Fault::HoldClients(node) => self.pairs_with_clients(node),
            _ => self.named(fault.held_pairs(self.nodes())),
        }
    }

    fn pairs_with_clients(&self, node: u64) -> Vec<(String, String)> {
        let name = &self.hosts[&node].name;
        let clients = self.clients.iter();
        clients
            .map(|client| (client.clone(), name.clone()))
            .collect()
    }

    fn named(&self, pairs: Vec<(u64, u64)>) -> Vec<(String, String)> {
        let name = |node: u64| self.hosts[&node].name.clone();
        pairs.into_iter().map(|(a, b)| (name(a), name(b))).collect()
    }

    fn link_latency(&self, a: u64, b: u64, most: Duration) {
        let (a, b) = (self.hosts[&a].name.clone(), self.hosts[&b].name.clone());
        self.sim.set_link_max_message_latency(a, b, most);
    }

    fn loss(&mut self, a: u64, b: u64, rate: f64) {
        let (a, b) = (self.hosts[&a].name.clone(), self.hosts[&b].name.clone());
        self.sim.set_link_fail_rate(a, b, rate);
    }

    /// Powers a node off. Faults may overlap: the node starts when the last of them ends.
    fn power_cut(&mut self, node: u64, torn: bool) -> turmoil::Result {
        self.kill(node);
        // Unsynced writes from before an earlier kill or stop are lost too.
        if !self.hosts[&node].is_rotten() {
            self.course.lost_bytes += self.hosts[&node].lose_power(torn)?;
        }
        Ok(())
    }

    pub(super) fn kill(&mut self, node: u64) {
        *self.down.entry(node).or_default() += 1;
        let host = &self.hosts[&node];
        self.sim.crash(host.name.as_str());
        host.forget();
    }

    fn stop(&mut self, node: u64) {
        *self.down.entry(node).or_default() += 1;
        self.hosts[&node].set_running(false);
    }

    pub(super) fn start(&mut self, node: u64) {
        let Some(count) = self.down.get_mut(&node) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.down.remove(&node);
            let host = &self.hosts[&node];
            // A host that was asked to stop is still running and can be asked to start.
            if self.sim.is_host_running(host.name.as_str()) {
                host.set_running(true)
            } else {
                self.sim.bounce(host.name.as_str())
            }
        }
    }
}
