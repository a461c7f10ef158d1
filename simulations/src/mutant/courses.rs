//! Runs that bring about what a bug needs, where the runs as they are drawn do so too seldom.

use std::time::Duration;

use crate::faults::{Fault, Planned, drawn};
use crate::parameters::Parameters;
use crate::seed::Seed;

/// A fault every so often.
fn again_and_again(fault: Fault, every: Duration, lasts: Duration, count: u32) -> Vec<Planned> {
    (1..=count)
        .map(|number| Planned {
            begins: every * number,
            lasts,
            fault,
        })
        .collect()
}

/// Syncs are slow, and the power of all nodes fails again and again: a majority must lose the same
/// entry. Among the runs as they are drawn, about one in twenty loses an acknowledged write.
pub(super) fn power_cuts(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        sync_min: Duration::from_millis(50),
        sync_max: Duration::from_millis(250),
        writes_percent: 80,
        ..Parameters::from_seed(seed)
    };
    let (every, lasts) = (Duration::from_millis(1500), Duration::from_millis(100));
    let faults = again_and_again(Fault::PowerCutAll, every, lasts, 4);
    (parameters, faults)
}

/// Nothing goes wrong.
pub(super) fn without_faults(seed: Seed) -> (Parameters, Vec<Planned>) {
    (drawn(seed).0, Vec::new())
}

/// Leaders lose sight of the others while clients still ask them.
pub(super) fn leaders_are_cut_off(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        clients: 5,
        writes_percent: 40,
        pause_max: Duration::from_millis(10),
        ..Parameters::from_seed(seed)
    };
    let (every, lasts) = (Duration::from_millis(2000), Duration::from_millis(1500));
    let faults = again_and_again(Fault::IsolateLeader, every, lasts, 4);
    (parameters, faults)
}

/// Messages take long, syncs do not, and many ask at once.
pub(super) fn slow_links(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        latency_max: Duration::from_millis(30),
        sync_max: Duration::from_millis(1),
        clients: 5,
        pause_max: Duration::from_millis(10),
        ..Parameters::from_seed(seed)
    };
    (parameters, Vec::new())
}

/// Nodes are away for so long that they are sent snapshots.
pub(super) fn snapshots(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        snapshot_every: 15,
        keep_in_log: 0,
        pause_max: Duration::from_millis(10),
        writes_percent: 80,
        ..Parameters::from_seed(seed)
    };
    let (every, lasts) = (Duration::from_millis(2500), Duration::from_millis(1500));
    let faults = again_and_again(Fault::PowerCut(1), every, lasts, 3);
    (parameters, faults)
}
