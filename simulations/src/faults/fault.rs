//! The kinds of faults, and the nodes that each hits.

use std::fmt;

use placement_machine::POINTS;

use crate::nodes::Nodes;

macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident $(($($field:ident: $type:ty),*))?, $kind:literal, $words:literal $(, $more:expr)*;)*) => {
        /// A fault, with the nodes or sites that it hits.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $fault $(($($type),*))?,)*
        }

        impl Fault {
            /// Names of all kinds.
            pub const KINDS: &[&str] = &[$($kind,)*];

            /// Name of the kind, without the nodes.
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

// Each fault: its name in counts, and its text in `explain`.
faults! {
    /// The power of one node fails: its unsynced data is lost.
    PowerCut(node: u64), "power-cut", "the power of node {node} fails";
    /// The power of the leader fails.
    PowerCutLeader, "power-cut-leader", "the power of the leader fails";
    /// The power of all nodes but the leader fails.
    PowerCutFollowers, "power-cut-followers", "the power of all but the leader fails";
    /// The power of all nodes fails at once.
    PowerCutAll, "power-cut-all", "the power of all nodes fails";
    /// The power of these nodes fails at once.
    PowerCutSome(some: Nodes), "power-cut-some", "the power of nodes {some} fails";
    /// The power of one node fails, and some of its unsynced data has reached the disk.
    PowerCutTorn(node: u64), "power-cut-torn", "the power of node {node} fails, and some of the unsynced data is kept";
    /// The power of all nodes fails at once, and some of their unsynced data has reached the disk.
    PowerCutTornAll, "power-cut-torn-all", "the power of all nodes fails, and some of the unsynced data is kept";
    /// The power of one node fails when it next reaches this point of [`POINTS`].
    PowerCutAt(node: u64, point: usize), "power-cut-at", "the power of node {node} fails when {}", POINTS[point];
    /// A node loses its disk for good and starts with an empty one. An operator removes it and adds
    /// a spare machine.
    Replace(node: u64), "replace", "the disk of node {node} is lost, a spare replaces it";
    /// An operator adds a spare machine as a permanent learner.
    Learner(node: u64), "learner", "node {node} is added as a learner";
    /// An operator transfers leadership to this node.
    Transfer(node: u64), "transfer", "leadership is transferred to node {node}";
    /// An operator adds a spare machine and makes it a voter.
    Grow(node: u64), "grow", "node {node} is added as a voter";
    /// An operator demotes this node to a learner, and then makes it a voter again.
    Demote(node: u64), "demote", "node {node} is demoted and promoted";
    /// An operator removes this node while it runs.
    Retire(node: u64), "retire", "node {node} is removed";
    /// An operator removes the leader.
    RetireLeader, "retire-leader", "the leader is removed";
    /// The process of one node is killed. Its writes survive, synced or not.
    Kill(node: u64), "kill", "node {node} is killed";
    /// The process of the leader is killed.
    KillLeader, "kill-leader", "the leader is killed";
    /// A node is asked to stop, and starts again when the fault ends.
    Restart(node: u64), "restart", "node {node} is asked to stop";
    /// The leader is asked to stop, and starts again when the fault ends.
    RestartLeader, "restart-leader", "the leader is asked to stop";
    /// The process of a node is stopped: messages to it queue up and its clocks advance.
    Pause(node: u64), "pause", "node {node} is stopped";
    /// The process of the leader is stopped.
    PauseLeader, "pause-leader", "the leader is stopped";
    /// No message passes between this node and the other nodes; clients still reach it.
    Isolate(node: u64), "isolate", "node {node} is cut off from the others";
    /// No message passes between the leader and the other nodes; clients still reach it.
    IsolateLeader, "isolate-leader", "the leader is cut off from the others";
    /// Messages from this node to other nodes are lost; messages to it arrive.
    Mute(node: u64), "mute", "messages from node {node} are lost";
    /// Messages from other nodes to this node are lost; messages from it arrive.
    Deafen(node: u64), "deafen", "messages to node {node} are lost";
    /// Messages to the leader are lost; its own messages arrive, so its heartbeats continue.
    DeafenLeader, "deafen-leader", "messages to the leader are lost";
    /// No message passes between these two nodes; the others reach both.
    CutLink(a: u64, b: u64), "cut-link", "nodes {a} and {b} are cut off from each other";
    /// Messages from the first node to the second are lost.
    CutWay(a: u64, b: u64), "cut-way", "messages from node {a} to node {b} are lost";
    /// No message passes between these nodes and the others.
    Split(side: Nodes), "split", "nodes {side} are cut off from the rest";
    /// The leader and as many followers as possible without forming a majority are cut off from the
    /// rest.
    SplitLeader, "split-leader", "the leader is with a minority";
    /// The other nodes are split in two halves, and this node reaches both.
    Bridge(node: u64), "bridge", "node {node} alone reaches both halves of the rest";
    /// The link between these two nodes goes down and up several times a second.
    Flap(a: u64, b: u64), "flap", "the link between nodes {a} and {b} flaps";
    /// Messages between this node and the others are delayed until the fault ends.
    Hold(node: u64), "hold", "messages between node {node} and the others are delayed";
    /// Messages between the leader and the others are delayed until the fault ends.
    HoldLeader, "hold-leader", "messages between the leader and the others are delayed";
    /// Messages between these two nodes are delayed until the fault ends.
    HoldLink(a: u64, b: u64), "hold-link", "messages between nodes {a} and {b} are delayed";
    /// Messages between clients and this node are delayed until the fault ends: requests arrive
    /// after the clients have timed out.
    HoldClients(node: u64), "hold-clients", "messages between clients and node {node} are delayed";
    /// Clients do not reach this node; other nodes do.
    CutClients(node: u64), "cut-clients", "clients are cut off from node {node}";
    /// Syncs of this node are very slow.
    SlowDisk(node: u64), "slow-disk", "the disk of node {node} is slow";
    /// Syncs of the leader are very slow.
    SlowDiskLeader, "slow-disk-leader", "the disk of the leader is slow";
    /// The disk of this node is full: all syncs fail. When the fault ends, there is free space
    /// again, and the node is restarted.
    FullDisk(node: u64), "full-disk", "the disk of node {node} is full";
    /// The disk of the leader is full.
    FullDiskLeader, "full-disk-leader", "the disk of the leader is full";
    /// One sync of this node fails, and its data may be lost. When the fault ends, the node is
    /// started again.
    DiskError(node: u64), "disk-error", "a sync of node {node} fails";
    /// One sync of the leader fails.
    DiskErrorLeader, "disk-error-leader", "a sync of the leader fails";
    /// Syncs of this node hang.
    HungDisk(node: u64), "hung-disk", "the disk of node {node} hangs";
    /// Syncs of the leader hang.
    HungDiskLeader, "hung-disk-leader", "the disk of the leader hangs";
    /// A bit in the log of this node flips while the node is down.
    RotLog(node: u64), "rot-log", "a bit in the log of node {node} flips";
    /// A bit in a row of this node's state flips while the node is down.
    RotRow(node: u64), "rot-row", "a bit in the state of node {node} flips";
    /// The disk of this node is copied while it is down.
    Copy(node: u64), "copy", "the disk of node {node} is copied";
    /// The disk of this node is restored from that copy, after all other nodes have seen a later
    /// write of it.
    PutBack(node: u64), "put-back", "the disk of node {node} is restored from its copy";
    /// Messages between these two nodes are very slow.
    SlowLink(a: u64, b: u64), "slow-link", "the link between nodes {a} and {b} is slow";
    /// Each connection from this node carries only a few kilobytes per second.
    Thin(node: u64), "thin", "connections of node {node} have little bandwidth";
    /// Each connection from the leader carries only a few kilobytes per second.
    ThinLeader, "thin-leader", "connections of the leader have little bandwidth";
    /// Messages between these two nodes are lost at random.
    LossyLink(a: u64, b: u64), "lossy-link", "messages between nodes {a} and {b} are lost at random";
    /// The power of all nodes of a site fails.
    PowerCutSite(some: Nodes), "power-cut-site", "the power of the site of nodes {some} fails";
    /// The power of all nodes of the leader's site fails.
    PowerCutLeaderSite, "power-cut-leader-site", "the power of the leader's site fails";
    /// This site and the others do not reach each other, neither nodes nor clients.
    CutSite(site: usize), "cut-site", "site r{site} is cut off from the others";
    /// The leader's site and the others do not reach each other.
    CutLeaderSite, "cut-leader-site", "the leader's site is cut off from the others";
    /// The link between these two sites goes down and up every few seconds.
    FlapSites(a: usize, b: usize), "flap-sites", "the link between sites r{a} and r{b} flaps";
    /// Messages from the first site to the second are lost.
    CutSiteWay(a: usize, b: usize), "cut-site-way", "messages from site r{a} to site r{b} are lost";
    /// Each connection from these nodes, which form a site, carries only a few kilobytes per
    /// second.
    ThinSite(some: Nodes), "thin-site", "connections of the site of nodes {some} have little bandwidth";
    /// An operator drains these nodes, which form a site, and undrains them when the fault ends.
    DrainSite(some: Nodes), "drain-site", "the site of nodes {some} is drained";
    /// An operator drains the leader's site.
    DrainLeaderSite, "drain-leader-site", "the leader's site is drained";
    /// The wall clock of a node is set forward or back by this many milliseconds, and corrected
    /// when the fault ends.
    ClockStep(node: u64, by: i64), "clock-step", "the clock of node {node} is set {} by {} ms", if by < 0 { "back" } else { "forward" }, by.unsigned_abs();
    /// The wall clock of a node gains or loses this many microseconds per second; the accumulated
    /// difference stays.
    ClockDrift(node: u64, by: i64), "clock-drift", "the clock of node {node} {} {} µs a second", if by < 0 { "loses" } else { "gains" }, by.unsigned_abs();
}

impl Fault {
    /// Whether the fault may have no effect: it counts as happened only if it found a target.
    pub fn may_miss(self) -> bool {
        matches!(self, Fault::RotRow(_) | Fault::Copy(_) | Fault::PutBack(_))
    }

    /// Resolves the fault to faults on concrete nodes, in a cluster of `nodes` nodes with this
    /// leader. Empty for a fault of the leader while there is no leader.
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

    /// The one-way links between nodes that it cuts while it lasts.
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

    /// The pairs of nodes whose messages it holds while it lasts.
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
    fn split_leader_leaves_the_leader_with_a_minority() {
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
