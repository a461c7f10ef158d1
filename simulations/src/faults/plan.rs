//! Plans the faults of a run: which, when, and for how long.

use std::collections::BTreeSet;
use std::time::Duration;

use placement_machine::POINTS;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

use super::fault::Fault;
use super::planned::Planned;
use super::sites;
use crate::choice::one_of;
use crate::nodes::Nodes;
use crate::parameters::Parameters;
use crate::places::place;
use crate::seed::Seed;

/// A fault that happened.
#[derive(Debug, Clone, Copy)]
pub struct FaultRecord {
    /// The fault, with the actual node if it aimed at the leader.
    pub fault: Fault,
    /// Start, since the start of the simulation.
    pub from: Duration,
    /// End; `Duration::MAX` if it never ended.
    pub to: Duration,
}

impl FaultRecord {
    /// Whether the fault lasted from the first moment to the second.
    pub fn spans(&self, first: Duration, second: Duration) -> bool {
        self.from <= first && second <= self.to
    }
}

/// Kinds of faults that occurred, over one run or many.
pub type Kinds = BTreeSet<&'static str>;

/// The parameters and the faults of a seed.
pub fn drawn(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = place(Parameters::from_seed(seed));
    let faults = plan(&parameters);
    (parameters, faults)
}

/// The faults of one run, sorted by start.
pub fn plan(parameters: &Parameters) -> Vec<Planned> {
    let nodes = parameters.nodes;
    let mut planned = series(parameters, "faults", 1.0, |random| draw(random, nodes));
    // Each run has only some areas of faults, so that faults of these areas coincide more often.
    for (area, draw) in AREAS {
        if parameters
            .seed
            .stream(&format!("area {area}"))
            .random_bool(0.4)
        {
            let name = format!("faults {area}");
            planned.extend(series(parameters, &name, 2.0, |random| draw(random, nodes)));
        }
    }
    let rots = (parameters.seed.stream("area rot")).random_bool(0.2);
    let may_lose_one = parameters.spares_a_node() && parameters.spares == 0;
    if rots && may_lose_one {
        planned.push(rot(parameters));
    }
    if !rots && may_lose_one && (parameters.seed.stream("area data")).random_bool(0.35) {
        planned.push(data(parameters));
    }
    if parameters.spares > 0 {
        let members = "faults members";
        planned.extend(series(parameters, members, 2.0, |random| {
            Fault::Transfer(random.random_range(1..=nodes))
        }));
    }
    if parameters.is_lost {
        // The spare has a token, and no node is replaced.
    } else if parameters.two_operators {
        planned.extend(orders(parameters));
    } else if parameters.spares > 0 {
        let random = &mut parameters.seed.stream("faults replace");
        planned.push(Planned {
            begins: parameters
                .fault_phase
                .mul_f64(random.random_range(0.1..0.6)),
            lasts: Duration::ZERO,
            fault: Fault::Replace(random.random_range(1..=nodes)),
        });
    }
    planned.extend(sites::plan(parameters));
    planned.sort_by_key(|one| one.begins);
    planned
}

/// Random faults, drawn from a stream of their own.
fn series(
    parameters: &Parameters,
    stream: &str,
    pause: f64,
    draw: impl Fn(&mut SmallRng) -> Fault,
) -> Vec<Planned> {
    let random = &mut parameters.seed.stream(stream);
    let mut planned = Vec::new();
    let mut begins = Duration::from_millis(300);
    while begins < parameters.fault_phase {
        let short = random.random_bool(0.6);
        let lasts = if short {
            random.random_range(50..1000)
        } else {
            random.random_range(1000..4000)
        };
        let fault = alone(draw(random), parameters.nodes);
        // Held messages may be very late.
        let longer = match fault {
            Fault::Hold(_) | Fault::HoldLeader | Fault::HoldLink(..) => 2.5,
            // The node needs time to reach the point.
            Fault::PowerCutAt(..) => 2.0,
            _ => 1.0,
        };
        planned.push(Planned {
            begins,
            lasts: Duration::from_millis(lasts).mul_f64(longer),
            fault,
        });
        let pause = random.random_range(0.2..1.8) * pause;
        begins += parameters.fault_every.mul_f64(pause);
    }
    planned
}

/// Concurrent orders of two operators: both add a voter, one demotes and promotes nodes, and the
/// other may remove a running node.
fn orders(parameters: &Parameters) -> Vec<Planned> {
    let (random, nodes) = (
        &mut parameters.seed.stream("faults orders"),
        parameters.nodes,
    );
    let at = |when: f64, fault| Planned {
        begins: parameters.fault_phase.mul_f64(when),
        lasts: Duration::ZERO,
        fault,
    };
    let (first, spare) = (random.random_range(0.0..0.4), nodes + parameters.learners());
    let mut planned: Vec<Planned> = (1..=parameters.spares)
        .map(|number| at(first, Fault::Grow(spare + number)))
        .collect();
    for _ in 0..random.random_range(0..=3) {
        let node = random.random_range(1..=nodes);
        planned.push(at(random.random_range(0.0..0.9), Fault::Demote(node)));
    }
    match random.random_range(0..5) {
        0 | 1 => planned.push(at(random.random_range(0.4..0.9), Fault::RetireLeader)),
        2 | 3 => {
            let node = random.random_range(1..=nodes);
            planned.push(at(random.random_range(0.4..0.9), Fault::Retire(node)));
        }
        _ => {}
    }
    planned
}

/// Bit rot of a log, at most once in a run: the node stays down afterwards.
fn rot(parameters: &Parameters) -> Planned {
    let random = &mut parameters.seed.stream("faults rot");
    Planned {
        begins: parameters
            .fault_phase
            .mul_f64(random.random_range(0.3..0.9)),
        lasts: Duration::from_millis(random.random_range(50..1000)),
        fault: Fault::RotLog(random.random_range(1..=parameters.nodes)),
    }
}

/// The state of one node rots, or its disk is restored from an older copy. The node stays down
/// afterwards.
fn data(parameters: &Parameters) -> Planned {
    let random = &mut parameters.seed.stream("faults data");
    let (node, _) = two(random, parameters.nodes);
    let rots = random.random_bool(0.5);
    let mut at = |when: std::ops::Range<f64>, fault| Planned {
        begins: parameters.fault_phase.mul_f64(random.random_range(when)),
        lasts: Duration::from_millis(random.random_range(50..1000)),
        fault,
    };
    if rots {
        at(0.4..1.0, Fault::RotRow(node))
    } else {
        at(0.1..0.6, Fault::Copy(node))
    }
}

/// An area of faults, which a run has as a whole or not at all: its name, and the function that
/// draws one of its faults.
type Area = (&'static str, fn(&mut SmallRng, u64) -> Fault);

const AREAS: [Area; 6] = [
    ("torn", draw_torn),
    ("disk", draw_disk),
    ("ways", draw_ways),
    ("late", draw_late),
    ("process", draw_process),
    ("clock", draw_clock),
];

/// Replaces faults between nodes by a kill in a cluster of one node.
fn alone(fault: Fault, nodes: u64) -> Fault {
    match fault {
        Fault::SlowLink(..)
        | Fault::LossyLink(..)
        | Fault::CutLink(..)
        | Fault::CutWay(..)
        | Fault::Flap(..)
        | Fault::HoldLink(..)
        | Fault::Split(_)
        | Fault::SplitLeader
        | Fault::Bridge(_)
            if nodes == 1 =>
        {
            Fault::Kill(1)
        }
        fault => fault,
    }
}

fn two(random: &mut SmallRng, nodes: u64) -> (u64, u64) {
    let node = random.random_range(1..=nodes);
    if nodes == 1 {
        return (node, node);
    }
    let other = (node + random.random_range(1..nodes) - 1) % nodes + 1;
    (node, other)
}

fn some(random: &mut SmallRng, nodes: u64, count: usize) -> Nodes {
    let all: Vec<u64> = (1..=nodes).collect();
    all.choose_multiple(random, count).copied().collect()
}

fn draw(random: &mut SmallRng, nodes: u64) -> Fault {
    let (node, other) = two(random, nodes);
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

fn draw_ways(random: &mut SmallRng, nodes: u64) -> Fault {
    let (node, other) = two(random, nodes);
    let minority = usize::try_from((nodes - 1) / 2).expect("few nodes");
    match random.random_range(0..100) {
        0..20 => Fault::CutLink(node, other),
        20..40 => Fault::CutWay(node, other),
        40..55 => Fault::Split(some(random, nodes, minority)),
        55..70 => Fault::SplitLeader,
        70..85 => Fault::Bridge(node),
        _ => Fault::Flap(node, other),
    }
}

fn draw_late(random: &mut SmallRng, nodes: u64) -> Fault {
    let (node, other) = two(random, nodes);
    match random.random_range(0..100) {
        0..18 => Fault::Hold(node),
        18..38 => Fault::HoldLeader,
        38..55 => Fault::HoldLink(node, other),
        55..67 => Fault::Thin(node),
        67..82 => Fault::ThinLeader,
        _ => Fault::HoldClients(node),
    }
}

fn draw_process(random: &mut SmallRng, nodes: u64) -> Fault {
    let (node, _) = two(random, nodes);
    match random.random_range(0..100) {
        0..12 => Fault::Kill(node),
        12..27 => Fault::KillLeader,
        27..40 => Fault::Restart(node),
        40..55 => Fault::RestartLeader,
        55..67 => Fault::Pause(node),
        67..85 => Fault::PauseLeader,
        _ => Fault::PowerCutSome(some(random, nodes, 2)),
    }
}

fn draw_torn(random: &mut SmallRng, nodes: u64) -> Fault {
    let (node, _) = two(random, nodes);
    let point = random.random_range(0..POINTS.len());
    match random.random_range(0..100) {
        0..20 => Fault::PowerCutTorn(node),
        20..40 => Fault::PowerCutTornAll,
        _ => Fault::PowerCutAt(node, point),
    }
}

fn draw_disk(random: &mut SmallRng, nodes: u64) -> Fault {
    let (node, _) = two(random, nodes);
    match random.random_range(0..100) {
        0..15 => Fault::FullDisk(node),
        15..32 => Fault::FullDiskLeader,
        32..47 => Fault::DiskError(node),
        47..65 => Fault::DiskErrorLeader,
        65..80 => Fault::HungDisk(node),
        _ => Fault::HungDiskLeader,
    }
}

fn draw_clock(random: &mut SmallRng, nodes: u64) -> Fault {
    let (node, _) = two(random, nodes);
    let sign = if random.random_bool(0.5) { 1 } else { -1 };
    if random.random_bool(0.6) {
        // ntpd steps a clock by up to about a second, a person by an hour.
        Fault::ClockStep(node, sign * one_of(random, &[50, 1_000, 30_000, 3_600_000]))
    } else {
        // A normal quartz drifts by 500 µs/s at most, a broken one by far more.
        Fault::ClockDrift(node, sign * one_of(random, &[500, 200_000]))
    }
}
