//! What goes wrong, and when: a plan made from the seed before the run begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;

use crate::parameters::Parameters;
use crate::seed::Seed;

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
    /// Clients do not reach this node, other nodes do.
    CutClients(u64),
    /// Syncs of this node take very long.
    SlowDisk(u64),
    /// Syncs of the leader take very long.
    SlowDiskLeader,
    /// Messages between these two take very long.
    SlowLink(u64, u64),
    /// Messages between these two are lost at random.
    LossyLink(u64, u64),
}

impl Fault {
    /// The kind, without the nodes.
    pub fn kind(self) -> &'static str {
        match self {
            Fault::PowerCut(_) => "power-cut",
            Fault::PowerCutLeader => "power-cut-leader",
            Fault::PowerCutFollowers => "power-cut-followers",
            Fault::PowerCutAll => "power-cut-all",
            Fault::Isolate(_) => "isolate",
            Fault::IsolateLeader => "isolate-leader",
            Fault::Mute(_) => "mute",
            Fault::Deafen(_) => "deafen",
            Fault::DeafenLeader => "deafen-leader",
            Fault::CutClients(_) => "cut-clients",
            Fault::SlowDisk(_) => "slow-disk",
            Fault::SlowDiskLeader => "slow-disk-leader",
            Fault::SlowLink(..) => "slow-link",
            Fault::LossyLink(..) => "lossy-link",
        }
    }

    /// All kinds, for the gate that says each was seen.
    pub const KINDS: [&'static str; 14] = [
        "power-cut",
        "power-cut-leader",
        "power-cut-followers",
        "power-cut-all",
        "isolate",
        "isolate-leader",
        "mute",
        "deafen",
        "deafen-leader",
        "cut-clients",
        "slow-disk",
        "slow-disk-leader",
        "slow-link",
        "lossy-link",
    ];
}

/// A fault that happened.
#[derive(Debug, Clone, Copy)]
pub struct Happened {
    /// What it was, with the node that it met if it aimed at the leader.
    pub fault: Fault,
    /// When it began, since the start of the simulation.
    pub from: Duration,
    /// When it ended; `Duration::MAX` if it did not.
    pub to: Duration,
}

impl Happened {
    /// Whether it was going on from the first moment to the second.
    pub fn spans(&self, first: Duration, second: Duration) -> bool {
        self.from <= first && second <= self.to
    }
}

/// A fault with its time.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    /// When it begins, since the storm began.
    pub begins: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// What it is.
    pub fault: Fault,
}

/// What follows from a seed: the choices of the run, and its faults.
pub fn drawn(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters::from_seed(seed);
    let faults = plan(&parameters);
    (parameters, faults)
}

/// The faults of one run, in order.
pub fn plan(parameters: &Parameters) -> Vec<Planned> {
    let random = &mut parameters.seed.stream("faults");
    let mut planned = Vec::new();
    let mut begins = Duration::from_millis(300);
    while begins < parameters.storm {
        let lasts = if random.random_bool(0.6) {
            Duration::from_millis(random.random_range(50..1000))
        } else {
            Duration::from_millis(random.random_range(1000..4000))
        };
        planned.push(Planned {
            begins,
            lasts,
            fault: draw(random, parameters.nodes),
        });
        begins += parameters
            .fault_every
            .mul_f64(random.random_range(0.2..1.8));
    }
    planned
}

fn draw(random: &mut SmallRng, nodes: u64) -> Fault {
    let node = random.random_range(1..=nodes);
    let other = (node + random.random_range(1..nodes) - 1) % nodes + 1;
    match random.random_range(0..100) {
        0..13 => Fault::PowerCut(node),
        13..25 => Fault::PowerCutLeader,
        25..29 => Fault::PowerCutFollowers,
        29..36 => Fault::PowerCutAll,
        36..42 => Fault::Isolate(node),
        42..53 => Fault::IsolateLeader,
        53..60 => Fault::Mute(node),
        60..65 => Fault::Deafen(node),
        65..74 => Fault::DeafenLeader,
        74..78 => Fault::CutClients(node),
        78..82 => Fault::SlowDisk(node),
        82..86 => Fault::SlowDiskLeader,
        86..93 => Fault::SlowLink(node, other),
        _ => Fault::LossyLink(node, other),
    }
}

/// Which ways are cut, each as often as faults that cut it are going on.
#[derive(Debug, Default)]
pub struct Cuts {
    cuts: BTreeMap<(String, String), usize>,
}

impl Cuts {
    /// Cuts the way; true if it was open.
    pub fn cut(&mut self, from: &str, to: &str) -> bool {
        let count = self
            .cuts
            .entry((from.to_owned(), to.to_owned()))
            .or_default();
        *count += 1;
        *count == 1
    }

    /// Takes one cut back; true if the way is open again.
    pub fn mend(&mut self, from: &str, to: &str) -> bool {
        match self.cuts.get_mut(&(from.to_owned(), to.to_owned())) {
            Some(count) if *count > 0 => {
                *count -= 1;
                *count == 0
            }
            _ => false,
        }
    }
}

/// The kinds that were seen, over one run or many.
pub type Kinds = BTreeSet<&'static str>;
