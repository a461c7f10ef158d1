//! The kinds of trouble, and whom each meets.

use std::fmt;

use placement_raft_store::simulation::POINTS;

use super::nodes::Nodes;

/// One kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The power of one node fails: what was not synced is gone.
    PowerCut(u64),
    /// The power of the leader fails.
    PowerCutLeader,
    /// The power of all nodes but the leader fails.
    PowerCutFollowers,
    /// The power of all nodes fails at once.
    PowerCutAll,
    /// The power of these fails at once.
    PowerCutSome(Nodes),
    /// The power of one node fails, and of what was not synced some has reached the disk all the same.
    PowerCutTorn(u64),
    /// The same for all nodes at once.
    PowerCutTornAll,
    /// The power of one node fails when it next comes to this one of [`POINTS`], in the middle of its work.
    PowerCutAt(u64, usize),
    /// A node loses its disk for good, and starts with an empty one. An operator takes it out, and a spare
    /// machine in.
    Replace(u64),
    /// An operator adds a spare machine as a learner, which it stays.
    Learner(u64),
    /// An operator hands leadership to this node.
    Transfer(u64),
    /// An operator adds a spare machine, and makes it a voter.
    Grow(u64),
    /// An operator makes this node a learner, and then a voter again.
    Demote(u64),
    /// An operator takes this node out, which runs.
    Retire(u64),
    /// An operator takes out the leader.
    RetireLeader,
    /// The process of one node is killed: what it wrote is there, synced or not.
    Kill(u64),
    /// The process of the leader is killed.
    KillLeader,
    /// A node is asked to stop, and starts again when the fault is over.
    Restart(u64),
    /// The leader is asked to stop, and starts again.
    RestartLeader,
    /// A node takes no step, as a stopped process: what it is sent waits for it, and its clocks go on.
    Pause(u64),
    /// The leader takes no step.
    PauseLeader,
    /// No message passes between this node and the other nodes; clients still reach it.
    Isolate(u64),
    /// The same for whoever leads.
    IsolateLeader,
    /// What this node says reaches no other node, but it hears them.
    Mute(u64),
    /// What the others say does not reach this node, but they hear it.
    Deafen(u64),
    /// The leader hears nobody, but is heard: its heartbeats go on.
    DeafenLeader,
    /// No message passes between these two; others reach both.
    CutLink(u64, u64),
    /// What the first says does not reach the second.
    CutWay(u64, u64),
    /// These nodes and the others do not reach each other.
    Split(Nodes),
    /// The leader and as many of the others as make no majority with it are cut off from the rest.
    SplitLeader,
    /// The others are split in two halves, and this node reaches both.
    Bridge(u64),
    /// The way between these two comes and goes, several times a second.
    Flap(u64, u64),
    /// Messages between this node and the others are kept, and all of them arrive at the end.
    Hold(u64),
    /// The same for whoever leads.
    HoldLeader,
    /// Messages between these two are kept, and arrive at the end.
    HoldLink(u64, u64),
    /// Messages between clients and this node are kept: its requests come after clients have given up.
    HoldClients(u64),
    /// Clients do not reach this node, other nodes do.
    CutClients(u64),
    /// Syncs of this node take very long.
    SlowDisk(u64),
    /// Syncs of the leader take very long.
    SlowDiskLeader,
    /// The disk of this node is full: no sync succeeds. At the end there is room, and the node is started
    /// again.
    FullDisk(u64),
    /// The disk of the leader is full.
    FullDiskLeader,
    /// One sync of this node fails, and what it was to make durable may be lost. At the end the node is
    /// started again.
    DiskError(u64),
    /// One sync of the leader fails.
    DiskErrorLeader,
    /// No sync of this node comes back.
    HungDisk(u64),
    /// No sync of the leader comes back.
    HungDiskLeader,
    /// A bit of the log of this node turns on the disk while it is down.
    RotLog(u64),
    /// A bit of a row of this node's state turns while it is down.
    RotRow(u64),
    /// The disk of this node is copied while it is down.
    Copy(u64),
    /// The disk of this node is put back to that copy, once all others know that it has written since.
    PutBack(u64),
    /// Messages between these two take very long.
    SlowLink(u64, u64),
    /// Each connection carries but a few kilobytes a second away from this node.
    Thin(u64),
    /// Each connection of the leader does.
    ThinLeader,
    /// Messages between these two are lost at random.
    LossyLink(u64, u64),
    /// The power of all nodes of a site fails.
    PowerCutSite(Nodes),
    /// The power of all nodes of the leader's site fails.
    PowerCutLeaderSite,
    /// This site and the others do not reach each other, neither nodes nor clients.
    CutSite(usize),
    /// The same for the leader's site.
    CutLeaderSite,
    /// The way between these two sites comes and goes, every few seconds.
    FlapSites(usize, usize),
    /// What the first site says does not reach the second.
    CutSiteWay(usize, usize),
    /// Each connection carries but a few kilobytes a second away from these nodes, which are those of a site.
    ThinSite(Nodes),
    /// An operator drains these nodes, which are those of a site, and takes that back at the end.
    DrainSite(Nodes),
    /// The same for the leader's site.
    DrainLeaderSite,
    /// The wall clock of a node is set forth, or back, by so many milliseconds, and set right at the end.
    ClockStep(u64, i64),
    /// The wall clock of a node gains so many microseconds a second, or loses them; what it has gained
    /// stays.
    ClockDrift(u64, i64),
}

impl Fault {
    /// Whether it may come to nothing: it has happened only if there was something to strike at.
    pub fn may_miss(self) -> bool {
        matches!(self, Fault::RotRow(_) | Fault::Copy(_) | Fault::PutBack(_))
    }

    /// The kind, without the nodes.
    pub fn kind(self) -> &'static str {
        match self {
            Fault::PowerCut(_) => "power-cut",
            Fault::PowerCutLeader => "power-cut-leader",
            Fault::PowerCutFollowers => "power-cut-followers",
            Fault::PowerCutAll => "power-cut-all",
            Fault::PowerCutSome(_) => "power-cut-some",
            Fault::PowerCutTorn(_) => "power-cut-torn",
            Fault::PowerCutTornAll => "power-cut-torn-all",
            Fault::PowerCutAt(..) => "power-cut-at",
            Fault::Replace(_) => "replace",
            Fault::Learner(_) => "learner",
            Fault::Transfer(_) => "transfer",
            Fault::Grow(_) => "grow",
            Fault::Demote(_) => "demote",
            Fault::Retire(_) => "retire",
            Fault::RetireLeader => "retire-leader",
            Fault::Kill(_) => "kill",
            Fault::KillLeader => "kill-leader",
            Fault::Restart(_) => "restart",
            Fault::RestartLeader => "restart-leader",
            Fault::Pause(_) => "pause",
            Fault::PauseLeader => "pause-leader",
            Fault::Isolate(_) => "isolate",
            Fault::IsolateLeader => "isolate-leader",
            Fault::Mute(_) => "mute",
            Fault::Deafen(_) => "deafen",
            Fault::DeafenLeader => "deafen-leader",
            Fault::CutLink(..) => "cut-link",
            Fault::CutWay(..) => "cut-way",
            Fault::Split(_) => "split",
            Fault::SplitLeader => "split-leader",
            Fault::Bridge(_) => "bridge",
            Fault::Flap(..) => "flap",
            Fault::Hold(_) => "hold",
            Fault::HoldLeader => "hold-leader",
            Fault::HoldLink(..) => "hold-link",
            Fault::HoldClients(_) => "hold-clients",
            Fault::CutClients(_) => "cut-clients",
            Fault::SlowDisk(_) => "slow-disk",
            Fault::SlowDiskLeader => "slow-disk-leader",
            Fault::FullDisk(_) => "full-disk",
            Fault::FullDiskLeader => "full-disk-leader",
            Fault::DiskError(_) => "disk-error",
            Fault::DiskErrorLeader => "disk-error-leader",
            Fault::HungDisk(_) => "hung-disk",
            Fault::HungDiskLeader => "hung-disk-leader",
            Fault::RotLog(_) => "rot-log",
            Fault::RotRow(_) => "rot-row",
            Fault::Copy(_) => "copy",
            Fault::PutBack(_) => "put-back",
            Fault::SlowLink(..) => "slow-link",
            Fault::Thin(_) => "thin",
            Fault::ThinLeader => "thin-leader",
            Fault::LossyLink(..) => "lossy-link",
            Fault::PowerCutSite(_) => "power-cut-site",
            Fault::PowerCutLeaderSite => "power-cut-leader-site",
            Fault::CutSite(_) => "cut-site",
            Fault::CutLeaderSite => "cut-leader-site",
            Fault::FlapSites(..) => "flap-sites",
            Fault::CutSiteWay(..) => "cut-site-way",
            Fault::ThinSite(_) => "thin-site",
            Fault::DrainSite(_) => "drain-site",
            Fault::DrainLeaderSite => "drain-leader-site",
            Fault::ClockStep(..) => "clock-step",
            Fault::ClockDrift(..) => "clock-drift",
        }
    }

    /// All kinds, for the gate that says each was seen.
    pub const KINDS: [&'static str; 63] = [
        "power-cut",
        "power-cut-leader",
        "power-cut-followers",
        "power-cut-all",
        "power-cut-some",
        "power-cut-torn",
        "power-cut-torn-all",
        "power-cut-at",
        "replace",
        "transfer",
        "grow",
        "demote",
        "retire",
        "retire-leader",
        "kill",
        "kill-leader",
        "restart",
        "restart-leader",
        "pause",
        "pause-leader",
        "isolate",
        "isolate-leader",
        "mute",
        "deafen",
        "deafen-leader",
        "cut-link",
        "cut-way",
        "split",
        "split-leader",
        "bridge",
        "flap",
        "hold",
        "hold-leader",
        "hold-link",
        "hold-clients",
        "cut-clients",
        "slow-disk",
        "slow-disk-leader",
        "full-disk",
        "full-disk-leader",
        "disk-error",
        "disk-error-leader",
        "hung-disk",
        "hung-disk-leader",
        "rot-log",
        "rot-row",
        "copy",
        "put-back",
        "slow-link",
        "thin",
        "thin-leader",
        "lossy-link",
        "power-cut-site",
        "power-cut-leader-site",
        "cut-site",
        "cut-leader-site",
        "flap-sites",
        "cut-site-way",
        "thin-site",
        "drain-site",
        "drain-leader-site",
        "clock-step",
        "clock-drift",
    ];

    /// What it comes to in a cluster of so many nodes with this leader. One that aims at the leader
    /// comes to nothing while there is none.
    pub fn meets(self, nodes: u64, leader: Option<u64>) -> Vec<Fault> {
        let at_leader = |fault: fn(u64) -> Fault| leader.map(fault).into_iter().collect();
        let all = 1..=nodes;
        match self {
            Fault::PowerCutLeader => at_leader(Fault::PowerCut),
            Fault::KillLeader => at_leader(Fault::Kill),
            Fault::RestartLeader => at_leader(Fault::Restart),
            Fault::PauseLeader => at_leader(Fault::Pause),
            Fault::RetireLeader => at_leader(Fault::Retire),
            Fault::IsolateLeader => at_leader(Fault::Isolate),
            Fault::DeafenLeader => at_leader(Fault::Deafen),
            Fault::HoldLeader => at_leader(Fault::Hold),
            Fault::SlowDiskLeader => at_leader(Fault::SlowDisk),
            Fault::ThinLeader => at_leader(Fault::Thin),
            Fault::FullDiskLeader => at_leader(Fault::FullDisk),
            Fault::DiskErrorLeader => at_leader(Fault::DiskError),
            Fault::HungDiskLeader => at_leader(Fault::HungDisk),
            Fault::SplitLeader => (leader.into_iter())
                .map(|leader| {
                    let others = all.clone().filter(|node| *node != leader);
                    let minority = usize::try_from((nodes - 1) / 2).expect("few nodes");
                    let few = minority.saturating_sub(1);
                    Fault::Split(others.take(few).chain([leader]).collect())
                })
                .collect(),
            Fault::PowerCutFollowers => all
                .filter(|node| Some(*node) != leader)
                .map(Fault::PowerCut)
                .collect(),
            Fault::PowerCutAll => all.map(Fault::PowerCut).collect(),
            Fault::PowerCutTornAll => all.map(Fault::PowerCutTorn).collect(),
            Fault::PowerCutSome(some) | Fault::PowerCutSite(some) => {
                some.iter().map(Fault::PowerCut).collect()
            }
            Fault::ThinSite(some) => some.iter().map(Fault::Thin).collect(),
            fault => vec![fault],
        }
    }

    /// The ways between nodes that it cuts for as long as it lasts.
    pub fn cut_ways(self, nodes: u64) -> Vec<(u64, u64)> {
        let others = move |node: u64| (1..=nodes).filter(move |one| *one != node);
        let out = |node: u64| others(node).map(move |one| (node, one));
        let into = |node: u64| others(node).map(move |one| (one, node));
        let between = |side: Nodes, spared: Option<u64>| {
            let pairs = (1..=nodes).flat_map(|a| others(a).map(move |b| (a, b)));
            pairs
                .filter(|(a, b)| side.contains(*a) != side.contains(*b))
                .filter(|(a, b)| Some(*a) != spared && Some(*b) != spared)
                .collect()
        };
        match self {
            Fault::Isolate(node) => out(node).chain(into(node)).collect(),
            Fault::Mute(node) => out(node).collect(),
            Fault::Deafen(node) => into(node).collect(),
            Fault::CutLink(a, b) => vec![(a, b), (b, a)],
            Fault::CutWay(a, b) => vec![(a, b)],
            Fault::Split(side) => between(side, None),
            Fault::Bridge(node) => {
                let half = others(node).take(usize::try_from(nodes / 2).expect("few nodes"));
                between(half.collect(), Some(node))
            }
            _ => Vec::new(),
        }
    }

    /// The pairs of nodes between which messages are kept for as long as it lasts.
    pub fn held_pairs(self, nodes: u64) -> Vec<(u64, u64)> {
        match self {
            Fault::Hold(node) => (1..=nodes)
                .filter(|one| *one != node)
                .map(|one| (node, one))
                .collect(),
            Fault::HoldLink(a, b) => vec![(a, b)],
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |number: i64| number.unsigned_abs();
        match *self {
            Fault::PowerCut(node) => write!(f, "the power of node {node} fails"),
            Fault::PowerCutLeader => write!(f, "the power of the leader fails"),
            Fault::PowerCutFollowers => write!(f, "the power of all but the leader fails"),
            Fault::PowerCutAll => write!(f, "the power of all nodes fails"),
            Fault::PowerCutSome(some) => write!(f, "the power of nodes {some} fails"),
            Fault::PowerCutTorn(node) => {
                write!(
                    f,
                    "the power of node {node} fails, and some of what was not synced is kept"
                )
            }
            Fault::PowerCutTornAll => {
                write!(
                    f,
                    "the power of all nodes fails, and some of what was not synced is kept"
                )
            }
            Fault::PowerCutAt(node, point) => {
                write!(f, "the power of node {node} fails when {}", POINTS[point])
            }
            Fault::Replace(node) => {
                write!(f, "the disk of node {node} is lost, a spare replaces it")
            }
            Fault::Learner(node) => write!(f, "node {node} is added as a learner"),
            Fault::Transfer(node) => write!(f, "leadership is handed to node {node}"),
            Fault::Grow(node) => write!(f, "node {node} is added as a voter"),
            Fault::Demote(node) => write!(f, "node {node} loses its vote and gets it back"),
            Fault::Retire(node) => write!(f, "node {node} is taken out"),
            Fault::RetireLeader => write!(f, "the leader is taken out"),
            Fault::Kill(node) => write!(f, "node {node} is killed"),
            Fault::KillLeader => write!(f, "the leader is killed"),
            Fault::Restart(node) => write!(f, "node {node} is asked to stop"),
            Fault::RestartLeader => write!(f, "the leader is asked to stop"),
            Fault::Pause(node) => write!(f, "node {node} takes no step"),
            Fault::PauseLeader => write!(f, "the leader takes no step"),
            Fault::Isolate(node) => write!(f, "node {node} is cut off from the others"),
            Fault::IsolateLeader => write!(f, "the leader is cut off from the others"),
            Fault::Mute(node) => write!(f, "no node hears node {node}"),
            Fault::Deafen(node) => write!(f, "node {node} hears no other"),
            Fault::DeafenLeader => write!(f, "the leader hears no other"),
            Fault::CutLink(a, b) => write!(f, "nodes {a} and {b} are cut off from each other"),
            Fault::CutWay(a, b) => write!(f, "node {b} does not hear node {a}"),
            Fault::Split(side) => write!(f, "nodes {side} are cut off from the rest"),
            Fault::SplitLeader => write!(f, "the leader is with a minority"),
            Fault::Bridge(node) => write!(f, "node {node} alone reaches both halves of the rest"),
            Fault::Flap(a, b) => write!(f, "the way between nodes {a} and {b} comes and goes"),
            Fault::Hold(node) => write!(f, "messages of node {node} and the others are late"),
            Fault::HoldLeader => write!(f, "messages of the leader and the others are late"),
            Fault::HoldLink(a, b) => write!(f, "messages of nodes {a} and {b} are late"),
            Fault::HoldClients(node) => write!(f, "messages of clients and node {node} are late"),
            Fault::CutClients(node) => write!(f, "clients are cut off from node {node}"),
            Fault::SlowDisk(node) => write!(f, "the disk of node {node} is slow"),
            Fault::SlowDiskLeader => write!(f, "the disk of the leader is slow"),
            Fault::FullDisk(node) => write!(f, "the disk of node {node} is full"),
            Fault::FullDiskLeader => write!(f, "the disk of the leader is full"),
            Fault::DiskError(node) => write!(f, "a sync of node {node} fails"),
            Fault::DiskErrorLeader => write!(f, "a sync of the leader fails"),
            Fault::HungDisk(node) => write!(f, "the disk of node {node} hangs"),
            Fault::HungDiskLeader => write!(f, "the disk of the leader hangs"),
            Fault::RotLog(node) => write!(f, "a bit of the log of node {node} turns"),
            Fault::RotRow(node) => write!(f, "a bit of the state of node {node} turns"),
            Fault::Copy(node) => write!(f, "the disk of node {node} is copied"),
            Fault::PutBack(node) => write!(f, "the disk of node {node} is put back to its copy"),
            Fault::SlowLink(a, b) => write!(f, "the way between nodes {a} and {b} is slow"),
            Fault::Thin(node) => write!(f, "connections of node {node} are thin"),
            Fault::ThinLeader => write!(f, "connections of the leader are thin"),
            Fault::LossyLink(a, b) => {
                write!(f, "messages between nodes {a} and {b} are lost at random")
            }
            Fault::PowerCutSite(some) => write!(f, "the power of the site of nodes {some} fails"),
            Fault::PowerCutLeaderSite => write!(f, "the power of the leader's site fails"),
            Fault::CutSite(site) => write!(f, "site r{site} is cut off from the others"),
            Fault::CutLeaderSite => write!(f, "the leader's site is cut off from the others"),
            Fault::FlapSites(a, b) => {
                write!(f, "the way between sites r{a} and r{b} comes and goes")
            }
            Fault::CutSiteWay(a, b) => write!(f, "site r{b} does not hear site r{a}"),
            Fault::ThinSite(some) => {
                write!(f, "connections of the site of nodes {some} are thin")
            }
            Fault::DrainSite(some) => write!(f, "the site of nodes {some} is drained"),
            Fault::DrainLeaderSite => write!(f, "the leader's site is drained"),
            Fault::ClockStep(node, by) => {
                let way = if by < 0 { "back" } else { "forth" };
                write!(f, "the clock of node {node} is set {way} by {} ms", ms(by))
            }
            Fault::ClockDrift(node, by) => {
                let way = if by < 0 { "loses" } else { "gains" };
                let by = ms(by);
                write!(f, "the clock of node {node} {way} {by} µs a second")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leader_is_left_with_a_minority() {
        let met = |nodes, leader| Fault::SplitLeader.meets(nodes, leader);
        assert_eq!(met(3, Some(2)), [Fault::Split([2].into_iter().collect())]);
        let side = [1, 4].into_iter().collect();
        assert_eq!(met(5, Some(4)), [Fault::Split(side)]);
        assert_eq!(met(5, None), []);
    }

    #[test]
    fn each_point_can_be_named() {
        for (number, point) in POINTS.iter().enumerate() {
            let said = Fault::PowerCutAt(2, number).to_string();
            assert!(said.ends_with(point), "{said}");
        }
    }

    #[test]
    fn a_bridge_reaches_both_halves() {
        let cut = Fault::Bridge(3).cut_ways(5);
        assert_eq!(cut.len(), 8, "two and two, both ways: {cut:?}");
        assert!(cut.contains(&(1, 4)) && cut.contains(&(5, 2)));
        assert!(cut.iter().all(|(a, b)| *a != 3 && *b != 3));
        assert_eq!(Fault::Bridge(2).cut_ways(3), [(1, 3), (3, 1)]);
    }

    #[test]
    fn halves_do_not_reach_each_other() {
        let side = [1, 2].into_iter().collect();
        let cut = Fault::Split(side).cut_ways(5);
        assert_eq!(cut.len(), 12, "two and three, both ways: {cut:?}");
        assert!(!cut.contains(&(1, 2)) && !cut.contains(&(3, 5)));
    }
}
