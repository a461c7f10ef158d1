//! The kinds of trouble, and whom each meets.

use std::fmt;

use placement_machine::POINTS;

use crate::nodes::Nodes;

macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident $(($($field:ident: $type:ty),*))?, $kind:literal, $words:literal $(, $more:expr)*;)*) => {
        /// One kind of trouble.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $fault $(($($type),*))?,)*
        }

        impl Fault {
            /// All kinds.
            pub const KINDS: &[&str] = &[$($kind,)*];

            /// The kind, without the nodes.
            pub fn kind(self) -> &'static str {
                match self {
                    $(Fault::$fault { .. } => $kind,)*
                }
            }
        }

        impl fmt::Display for Fault {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Fault::$fault $(($($field),*))? => write!(f, $words $(, $more)*),)*
                }
            }
        }
    };
}

// The kind by which it is counted, and what `explain` prints of it.
faults! {
    /// The power of one node fails: what was not synced is gone.
    PowerCut(node: u64), "power-cut", "the power of node {node} fails";
    /// The power of the leader fails.
    PowerCutLeader, "power-cut-leader", "the power of the leader fails";
    /// The power of all nodes but the leader fails.
    PowerCutFollowers, "power-cut-followers", "the power of all but the leader fails";
    /// The power of all nodes fails at once.
    PowerCutAll, "power-cut-all", "the power of all nodes fails";
    /// The power of these fails at once.
    PowerCutSome(some: Nodes), "power-cut-some", "the power of nodes {some} fails";
    /// The power of one node fails, and of what was not synced some has reached the disk all the
    /// same.
    PowerCutTorn(node: u64), "power-cut-torn", "the power of node {node} fails, and some of what was not synced is kept";
    /// The same for all nodes at once.
    PowerCutTornAll, "power-cut-torn-all", "the power of all nodes fails, and some of what was not synced is kept";
    /// The power of one node fails when it next comes to this one of [`POINTS`], in the middle of
    /// its work.
    PowerCutAt(node: u64, point: usize), "power-cut-at", "the power of node {node} fails when {}", POINTS[point];
    /// A node loses its disk for good, and starts with an empty one. An operator takes it out, and
    /// a spare machine in.
    Replace(node: u64), "replace", "the disk of node {node} is lost, a spare replaces it";
    /// An operator adds a spare machine as a learner, which it stays.
    Learner(node: u64), "learner", "node {node} is added as a learner";
    /// An operator hands leadership to this node.
    Transfer(node: u64), "transfer", "leadership is handed to node {node}";
    /// An operator adds a spare machine, and makes it a voter.
    Grow(node: u64), "grow", "node {node} is added as a voter";
    /// An operator makes this node a learner, and then a voter again.
    Demote(node: u64), "demote", "node {node} loses its vote and gets it back";
    /// An operator takes this node out, which runs.
    Retire(node: u64), "retire", "node {node} is taken out";
    /// An operator takes out the leader.
    RetireLeader, "retire-leader", "the leader is taken out";
    /// The process of one node is killed: what it wrote is there, synced or not.
    Kill(node: u64), "kill", "node {node} is killed";
    /// The process of the leader is killed.
    KillLeader, "kill-leader", "the leader is killed";
    /// A node is asked to stop, and starts again when the fault is over.
    Restart(node: u64), "restart", "node {node} is asked to stop";
    /// The leader is asked to stop, and starts again.
    RestartLeader, "restart-leader", "the leader is asked to stop";
    /// A node takes no step, as a stopped process: what it is sent waits for it, and its clocks go
    /// on.
    Pause(node: u64), "pause", "node {node} takes no step";
    /// The leader takes no step.
    PauseLeader, "pause-leader", "the leader takes no step";
    /// No message passes between this node and the other nodes; clients still reach it.
    Isolate(node: u64), "isolate", "node {node} is cut off from the others";
    /// The same for the leader.
    IsolateLeader, "isolate-leader", "the leader is cut off from the others";
    /// What this node says reaches no other node, but it hears them.
    Mute(node: u64), "mute", "no node hears node {node}";
    /// What the others say does not reach this node, but they hear it.
    Deafen(node: u64), "deafen", "node {node} hears no other";
    /// The leader receives nothing, but its messages arrive: its heartbeats go on.
    DeafenLeader, "deafen-leader", "the leader hears no other";
    /// No message passes between these two; others reach both.
    CutLink(a: u64, b: u64), "cut-link", "nodes {a} and {b} are cut off from each other";
    /// What the first says does not reach the second.
    CutWay(a: u64, b: u64), "cut-way", "node {b} does not hear node {a}";
    /// These nodes and the others do not reach each other.
    Split(side: Nodes), "split", "nodes {side} are cut off from the rest";
    /// The leader and as many of the others as make no majority with it are cut off from the rest.
    SplitLeader, "split-leader", "the leader is with a minority";
    /// The others are split in two halves, and this node reaches both.
    Bridge(node: u64), "bridge", "node {node} alone reaches both halves of the rest";
    /// The way between these two comes and goes, several times a second.
    Flap(a: u64, b: u64), "flap", "the way between nodes {a} and {b} comes and goes";
    /// Messages between this node and the others are kept, and all of them arrive at the end.
    Hold(node: u64), "hold", "messages of node {node} and the others are late";
    /// The same for the leader.
    HoldLeader, "hold-leader", "messages of the leader and the others are late";
    /// Messages between these two are kept, and arrive at the end.
    HoldLink(a: u64, b: u64), "hold-link", "messages of nodes {a} and {b} are late";
    /// Messages between clients and this node are kept: its requests come after clients have given
    /// up.
    HoldClients(node: u64), "hold-clients", "messages of clients and node {node} are late";
    /// Clients do not reach this node, other nodes do.
    CutClients(node: u64), "cut-clients", "clients are cut off from node {node}";
    /// Syncs of this node take very long.
    SlowDisk(node: u64), "slow-disk", "the disk of node {node} is slow";
    /// Syncs of the leader take very long.
    SlowDiskLeader, "slow-disk-leader", "the disk of the leader is slow";
    /// The disk of this node is full: no sync succeeds. At the end there is room, and the node is
    /// started again.
    FullDisk(node: u64), "full-disk", "the disk of node {node} is full";
    /// The disk of the leader is full.
    FullDiskLeader, "full-disk-leader", "the disk of the leader is full";
    /// One sync of this node fails, and what it was to make durable may be lost. At the end the
    /// node is started again.
    DiskError(node: u64), "disk-error", "a sync of node {node} fails";
    /// One sync of the leader fails.
    DiskErrorLeader, "disk-error-leader", "a sync of the leader fails";
    /// No sync of this node comes back.
    HungDisk(node: u64), "hung-disk", "the disk of node {node} hangs";
    /// No sync of the leader comes back.
    HungDiskLeader, "hung-disk-leader", "the disk of the leader hangs";
    /// A bit of the log of this node turns on the disk while it is down.
    RotLog(node: u64), "rot-log", "a bit of the log of node {node} turns";
    /// A bit of a row of this node's state turns while it is down.
    RotRow(node: u64), "rot-row", "a bit of the state of node {node} turns";
    /// The disk of this node is copied while it is down.
    Copy(node: u64), "copy", "the disk of node {node} is copied";
    /// The disk of this node is put back to that copy, once all others know that it has written
    /// since.
    PutBack(node: u64), "put-back", "the disk of node {node} is put back to its copy";
    /// Messages between these two take very long.
    SlowLink(a: u64, b: u64), "slow-link", "the way between nodes {a} and {b} is slow";
    /// Each connection carries but a few kilobytes a second away from this node.
    Thin(node: u64), "thin", "connections of node {node} are thin";
    /// Each connection of the leader does.
    ThinLeader, "thin-leader", "connections of the leader are thin";
    /// Messages between these two are lost at random.
    LossyLink(a: u64, b: u64), "lossy-link", "messages between nodes {a} and {b} are lost at random";
    /// The power of all nodes of a site fails.
    PowerCutSite(some: Nodes), "power-cut-site", "the power of the site of nodes {some} fails";
    /// The power of all nodes of the leader's site fails.
    PowerCutLeaderSite, "power-cut-leader-site", "the power of the leader's site fails";
    /// This site and the others do not reach each other, neither nodes nor clients.
    CutSite(site: usize), "cut-site", "site r{site} is cut off from the others";
    /// The same for the leader's site.
    CutLeaderSite, "cut-leader-site", "the leader's site is cut off from the others";
    /// The way between these two sites comes and goes, every few seconds.
    FlapSites(a: usize, b: usize), "flap-sites", "the way between sites r{a} and r{b} comes and goes";
    /// What the first site says does not reach the second.
    CutSiteWay(a: usize, b: usize), "cut-site-way", "site r{b} does not hear site r{a}";
    /// Each connection carries but a few kilobytes a second away from these nodes, which are those
    /// of a site.
    ThinSite(some: Nodes), "thin-site", "connections of the site of nodes {some} are thin";
    /// An operator drains these nodes, which are those of a site, and takes that back at the end.
    DrainSite(some: Nodes), "drain-site", "the site of nodes {some} is drained";
    /// The same for the leader's site.
    DrainLeaderSite, "drain-leader-site", "the leader's site is drained";
    /// The wall clock of a node is set forth, or back, by so many milliseconds, and set right at
    /// the end.
    ClockStep(node: u64, by: i64), "clock-step", "the clock of node {node} is set {} by {} ms", if by < 0 { "back" } else { "forth" }, by.unsigned_abs();
    /// The wall clock of a node gains so many microseconds a second, or loses them; what it has
    /// gained stays.
    ClockDrift(node: u64, by: i64), "clock-drift", "the clock of node {node} {} {} µs a second", if by < 0 { "loses" } else { "gains" }, by.unsigned_abs();
}

impl Fault {
    /// Whether it may come to nothing: it has happened only if there was something to strike at.
    pub fn may_miss(self) -> bool {
        matches!(self, Fault::RotRow(_) | Fault::Copy(_) | Fault::PutBack(_))
    }

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
    fn a_bridge_reaches_both_halves() {
        let cut = Fault::Bridge(3).cut_ways(5);
        assert_eq!(cut.len(), 8, "two and two, both ways: {cut:?}");
        assert!(cut.contains(&(1, 4)) && cut.contains(&(5, 2)));
        assert!(cut.iter().all(|(a, b)| *a != 3 && *b != 3));
        assert_eq!(Fault::Bridge(2).cut_ways(3), [(1, 3), (3, 1)]);
    }
}
