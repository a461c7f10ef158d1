//! Runs that bring about what a bug needs, where the runs as they are drawn do so too seldom.

use std::time::Duration;

use crate::faults::{Fault, Planned};
use crate::parameters::{OurClient, Parameters};
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

/// Leaders fall while they answer, and nodes wait so long for the next one.
pub(super) fn leaders_fall(seed: Seed, wait: Duration) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        clients: 8,
        writes_percent: 80,
        pause_max: Duration::from_millis(10),
        sync_min: Duration::from_millis(1),
        sync_max: Duration::from_millis(20),
        wait,
        ..Parameters::from_seed(seed)
    };
    let (every, lasts) = (Duration::from_millis(1500), Duration::from_millis(300));
    let faults = again_and_again(Fault::PowerCutLeader, every, lasts, 5);
    (parameters, faults)
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

/// One link after the other is slow, syncs are not, and many ask at once.
pub(super) fn slow_links(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        nodes: 3,
        sync_max: Duration::from_millis(1),
        clients: 8,
        pause_max: Duration::from_millis(10),
        ..Parameters::from_seed(seed)
    };
    let links = [(1, 2), (2, 3), (1, 3), (1, 2), (2, 3), (1, 3)];
    let faults = (0_u64..).zip(links).map(|(number, (one, other))| Planned {
        begins: Duration::from_millis(200 + 1000 * number),
        lasts: Duration::from_millis(1500),
        fault: Fault::SlowLink(one, other),
    });
    let faults = faults.collect();
    (parameters, faults)
}

/// Nothing goes wrong, but followers are behind, and many ask at once.
pub(super) fn lagging_followers(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        latency_max: Duration::from_millis(30),
        sync_max: Duration::from_millis(1),
        clients: 8,
        pause_max: Duration::from_millis(10),
        ..Parameters::from_seed(seed)
    };
    (parameters, Vec::new())
}

/// Leaders are cut off with entries that nobody else has, and the power fails again and again while they
/// are told of others.
pub(super) fn truncations(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        heartbeat: Duration::from_millis(50),
        election: Duration::from_millis(150),
        sync_max: Duration::from_millis(5),
        clients: 12,
        writes_percent: 100,
        pause_max: Duration::from_millis(10),
        snapshot_every: 1000,
        storm: Duration::from_secs(9),
        ..Parameters::from_seed(seed)
    };
    let ms = Duration::from_millis;
    let mut faults = Vec::new();
    for round in 0..3 {
        let begins = ms(500 + 3000 * round);
        let isolated = Planned {
            begins,
            lasts: ms(800),
            fault: Fault::IsolateLeader,
        };
        let cuts = (0..4).map(|cut| Planned {
            begins: begins + ms(850 + 470 * cut),
            lasts: ms(50),
            fault: Fault::PowerCutAll,
        });
        faults.push(isolated);
        faults.extend(cuts);
    }
    (parameters, faults)
}

/// The same, where the power fails for the first time before those who were cut off are heard again.
pub(super) fn tails(seed: Seed) -> (Parameters, Vec<Planned>) {
    let (parameters, mut faults) = truncations(seed);
    for planned in &mut faults {
        if planned.fault == Fault::IsolateLeader {
            planned.lasts += Duration::from_millis(600);
        }
    }
    (parameters, faults)
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

/// Our own client is there, and leaders fall while they answer it.
pub(super) fn careful_client(seed: Seed) -> (Parameters, Vec<Planned>) {
    let (parameters, faults) = leaders_fall(seed, Duration::from_millis(800));
    let parameters = Parameters {
        our_client: OurClient::Careful,
        ..parameters
    };
    (parameters, faults)
}
