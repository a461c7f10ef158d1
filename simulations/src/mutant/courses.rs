//! Runs that create the conditions that a bug needs, where random runs do so too rarely.

use std::time::Duration;

use crate::faults::{Fault, Planned};
use crate::parameters::{Clouds, OurClient, Parameters};
use crate::places::in_regions;
use crate::regions::Regions;
use crate::seed::Seed;

/// Repeats a fault `count` times, every `every` milliseconds.
fn again_and_again(fault: Fault, every: u64, lasts: u64, count: u64) -> Vec<Planned> {
    let nth = |number: u64| Planned::new(every * number, lasts, fault);
    (1..=count).map(nth).collect()
}

/// The random run of the seed, with three or five voters, no operator and no limits.
fn several(seed: Seed) -> Parameters {
    let drawn = Parameters::from_seed(seed);
    Parameters {
        nodes: if drawn.nodes == 5 { 5 } else { 3 },
        spares: 0,
        two_operators: false,
        is_lost: false,
        limits_percent: 0,
        ..drawn
    }
}

/// Delays every second thread by up to 30 ms.
fn late_threads(parameters: &mut Parameters) {
    parameters.knobs.lateness.one_in = 2;
    parameters.knobs.lateness.most = Duration::from_millis(30);
}

/// The log is purged after snapshots under heavy writes, and the power of the nodes fails in turn.
pub(super) fn power_cuts_behind_snapshots(seed: Seed) -> (Parameters, Vec<Planned>) {
    let mut parameters = Parameters {
        nodes: 3,
        snapshot_every: 15,
        keep_in_log: 0,
        sync_max: Duration::from_millis(1),
        clients: 12,
        writes_percent: 100,
        pause_max: Duration::from_millis(10),
        fault_phase: Duration::from_secs(12),
        faults_from_the_start: false,
        minority_stays_down: false,
        ..several(seed)
    };
    late_threads(&mut parameters);
    let nth = |number: u64| Planned::new(500 * number, 100, Fault::PowerCut(1 + number % 3));
    (parameters, (1..=20).map(nth).collect())
}

/// The given run, with this size limit of each node's change ledger.
pub(super) fn ledgers(
    (mut parameters, faults): (Parameters, Vec<Planned>),
    bytes: u64,
) -> (Parameters, Vec<Planned>) {
    parameters.knobs.ledger_bytes = bytes;
    (parameters, faults)
}

/// The cluster is lost except for a backup; processes are killed before and after.
pub(super) fn lost(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        nodes: 3,
        fault_phase: Duration::from_secs(4),
        ..several(seed)
    }
    .lost();
    (parameters, again_and_again(Fault::KillLeader, 900, 200, 3))
}

/// One operator demotes node 2 while node 3 is cut off: the leader waits for a majority of the two
/// remaining voters. Before node 3 returns, the other operator makes node 4 a voter and removes
/// node 2. It tries the removal twice, because it may send the first attempt to node 3.
pub(super) fn two_operators(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        nodes: 3,
        spares: 1,
        two_operators: true,
        latency_max: Duration::from_millis(5),
        sync_max: Duration::from_millis(5),
        election: Duration::from_millis(1500),
        wait: Duration::from_millis(200),
        fault_phase: Duration::from_secs(19),
        faults_from_the_start: false,
        minority_stays_down: false,
        ..several(seed)
    };
    let at = |begins, fault| Planned::new(begins, 10, fault);
    let faults = vec![
        at(200, Fault::Learner(4)),
        at(6000, Fault::Transfer(1)),
        Planned::new(7500, 8300, Fault::Isolate(3)),
        at(14_200, Fault::Demote(2)),
        at(14_400, Fault::Grow(4)),
        at(14_500, Fault::Retire(2)),
        at(14_600, Fault::Retire(2)),
    ];
    (parameters, faults)
}

/// Syncs are slow, and the power of all nodes fails repeatedly: a majority must lose the same
/// entry. About one in twenty random runs loses an acknowledged write this way.
pub(super) fn power_cuts(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        sync_min: Duration::from_millis(50),
        sync_max: Duration::from_millis(250),
        writes_percent: 80,
        ..several(seed)
    };
    (
        parameters,
        again_and_again(Fault::PowerCutAll, 1500, 100, 4),
    )
}

/// The cluster has a second partition with clients of its own.
pub(super) fn neighbours(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        clouds: Clouds::First,
        ..several(seed)
    };
    let faults = crate::faults::plan(&parameters);
    (parameters, faults)
}

/// Leaders lose power while they answer. Nodes wait up to `wait` for the next leader.
pub(super) fn leaders_fall(seed: Seed, wait: Duration) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        clients: 8,
        writes_percent: 80,
        pause_max: Duration::from_millis(10),
        sync_min: Duration::from_millis(1),
        sync_max: Duration::from_millis(20),
        wait,
        ..several(seed)
    };
    (
        parameters,
        again_and_again(Fault::PowerCutLeader, 1500, 300, 5),
    )
}

/// All clients claim the same amount of one provider for two consumers: most claims are equal to
/// those of other clients.
pub(super) fn equal_claims(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        clients: 8,
        consumers: 2,
        unchecked_percent: 0,
        equal_percent: 100,
        repeated_percent: 100,
        writes_percent: 80,
        pause_max: Duration::from_millis(50),
        ..several(seed)
    };
    ledgers((parameters, Vec::new()), 1 << 20)
}

/// Almost all claims have several choices, ceilings and groups; there are no faults.
pub(super) fn choices(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        clients: 6,
        consumers: 6,
        providers: 3,
        total: 6,
        choices_percent: 90,
        holds_percent: 0,
        writes_percent: 80,
        pause_max: Duration::from_millis(20),
        sync_max: Duration::from_millis(5),
        ..several(seed)
    };
    (parameters, Vec::new())
}

/// Most claims make short holds for other consumers; there are no faults.
pub(super) fn holds(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        holds_percent: 70,
        consumers: 12,
        total: 12,
        pause_max: Duration::from_millis(50),
        ..choices(seed).0
    };
    (parameters, Vec::new())
}

/// The limits of projects are often replaced while clients claim; there are no faults.
pub(super) fn limits(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        limits_percent: 60,
        choices_percent: 30,
        consumers: 12,
        total: 12,
        ..choices(seed).0
    };
    (parameters, Vec::new())
}

/// Each node in turn is cut off from its clients for a moment: their claims are committed, but the
/// answers are lost, and they send the claims again. There is room for all claims, and few
/// conflict. No node needs a snapshot.
pub(super) fn repeated_claims(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        nodes: 3,
        clients: 12,
        total: 1000,
        consumers: 200,
        sync_min: Duration::from_millis(10),
        sync_max: Duration::from_millis(30),
        unchecked_percent: 0,
        repeated_percent: 100,
        writes_percent: 80,
        pause_max: Duration::from_millis(10),
        patience: Duration::from_millis(500),
        snapshot_every: 1000,
        faults_from_the_start: false,
        minority_stays_down: false,
        ..several(seed)
    };
    let nth = |number: u64| Planned::new(100 * number, 30, Fault::CutClients(1 + number % 3));
    ledgers((parameters, (1..=50).map(nth).collect()), 1 << 20)
}

/// Leaders are cut off from the other nodes while clients still reach them.
pub(super) fn leaders_are_cut_off(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        clients: 5,
        writes_percent: 40,
        pause_max: Duration::from_millis(10),
        ..several(seed)
    };
    (
        parameters,
        again_and_again(Fault::IsolateLeader, 2000, 1500, 4),
    )
}

/// Each of five nodes in turn is connected to only one other node, which reaches all. If the
/// isolated node led, there are now two leaders, and one node receives messages from both.
/// Acknowledgements of the others reach that node late.
pub(super) fn two_leaders_are_reachable(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        nodes: 5,
        clients: 12,
        writes_percent: 40,
        pause_max: Duration::from_millis(10),
        ..several(seed)
    };
    let mut faults = Vec::new();
    for round in 0..5_u64 {
        let nth = |step: u64| 1 + (round + step) % 5;
        let (alone, both) = (nth(0), nth(1));
        let mut plan = |fault| faults.push(Planned::new(300 + 1900 * round, 1500, fault));
        for other in [nth(2), nth(3), nth(4)] {
            plan(Fault::CutLink(alone, other));
            plan(Fault::SlowLink(both, other));
        }
    }
    (parameters, faults)
}

/// A single voter has slow syncs, and its power fails repeatedly. It records its commit index only
/// with the next entry, so after a start it has to commit and apply the end of its log. Clients
/// pause long enough that some first send a request during that time.
pub(super) fn only_voter(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        nodes: 1,
        latency_max: Duration::from_millis(5),
        sync_min: Duration::from_millis(20),
        sync_max: Duration::from_millis(80),
        clients: 12,
        writes_percent: 50,
        pause_max: Duration::from_millis(200),
        wait: Duration::from_secs(5),
        fault_phase: Duration::from_secs(9),
        faults_from_the_start: false,
        minority_stays_down: false,
        ..several(seed)
    };
    let faults = again_and_again(Fault::PowerCut(1), 900, 50, 9);
    (parameters, faults)
}

/// One voter and one learner, both with clients. Each applies entries on a thread that is often
/// late, so the learner acknowledges many writes before the voter has applied them. The clock drift
/// is harmless. It counts as a fault: a new learner may refuse requests only during a fault.
pub(super) fn learner_is_ahead(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        sync_max: Duration::from_millis(5),
        snapshot_every: 1000,
        clients: 6,
        writes_percent: 40,
        pause_max: Duration::from_millis(50),
        faults_from_the_start: false,
        minority_stays_down: false,
        ..several(seed)
    };
    let regions = Regions::new(&[1], 1, Duration::from_millis(1));
    let mut parameters = in_regions(parameters, regions);
    late_threads(&mut parameters);
    parameters.knobs.append_entries = 1000;
    parameters.knobs.limits.apply_inline = 0;
    parameters.knobs.rows_behind = 1;
    (
        parameters,
        vec![Planned::new(100, 4000, Fault::ClockDrift(1, 500))],
    )
}

/// Messages from leaders are lost, but messages to them arrive: no other node learns that the
/// entries which a leader acknowledges in this time are committed.
pub(super) fn leaders_fall_mute(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        nodes: 3,
        sync_min: Duration::from_millis(5),
        sync_max: Duration::from_millis(30),
        clients: 12,
        pause_max: Duration::from_millis(10),
        ..several(seed)
    };
    let nth = |round: u64| Planned::new(1800 * round - 1300, 1500, Fault::Mute(1 + round % 3));
    (parameters, (1..=6).map(nth).collect())
}

/// One link after the other is slow, syncs are fast, and many clients send requests.
pub(super) fn slow_links(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        nodes: 3,
        sync_max: Duration::from_millis(1),
        clients: 8,
        pause_max: Duration::from_millis(10),
        ..several(seed)
    };
    let links = [(1, 2), (2, 3), (1, 3), (1, 2), (2, 3), (1, 3)];
    let faults = (0..)
        .zip(links)
        .map(|(number, (one, other)): (u64, (u64, u64))| {
            Planned::new(200 + 1000 * number, 1500, Fault::SlowLink(one, other))
        });
    (parameters, faults.collect())
}

/// No faults, but followers lag behind the leader: by one entry with few clients, by several
/// entries with many.
pub(super) fn lagging_followers(seed: Seed, clients: usize) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        tick: Duration::from_millis(1),
        latency_max: Duration::from_millis(30),
        sync_max: Duration::from_millis(1),
        clients,
        pause_max: Duration::from_millis(10),
        ..several(seed)
    };
    (parameters, Vec::new())
}

/// Leaders are cut off with entries that no other node has, and the power fails repeatedly while
/// they receive other entries.
pub(super) fn truncations(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        heartbeat: Duration::from_millis(50),
        election: Duration::from_millis(150),
        sync_max: Duration::from_millis(5),
        clients: 12,
        writes_percent: 100,
        pause_max: Duration::from_millis(10),
        snapshot_every: 1000,
        fault_phase: Duration::from_secs(9),
        ..several(seed)
    };
    let mut faults = Vec::new();
    for round in 0..3_u64 {
        let begins = 500 + 3000 * round;
        faults.push(Planned::new(begins, 800, Fault::IsolateLeader));
        let cut = |nth: u64| Planned::new(begins + 850 + 470 * nth, 50, Fault::PowerCutAll);
        faults.extend((0..4).map(cut));
    }
    (parameters, faults)
}

/// Like [`truncations`], but the power first fails before the isolated leaders are reachable again.
pub(super) fn tails(seed: Seed) -> (Parameters, Vec<Planned>) {
    let (parameters, mut faults) = truncations(seed);
    for planned in &mut faults {
        if planned.fault == Fault::IsolateLeader {
            planned.lasts += Duration::from_millis(600);
        }
    }
    (parameters, faults)
}

/// Nodes are down for so long that the leader sends them snapshots.
pub(super) fn snapshots(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        snapshot_every: 15,
        keep_in_log: 0,
        pause_max: Duration::from_millis(10),
        writes_percent: 80,
        ..several(seed)
    };
    (
        parameters,
        again_and_again(Fault::PowerCut(1), 2500, 1500, 3),
    )
}

/// A run with our own client library, where leaders lose power while they answer it.
pub(super) fn careful_client(seed: Seed) -> (Parameters, Vec<Planned>) {
    let (parameters, faults) = leaders_fall(seed, Duration::from_millis(800));
    let parameters = Parameters {
        our_client: OurClient::Careful,
        ..parameters
    };
    (parameters, faults)
}

/// A leader without followers appends many entries and loses them to a leader that appended almost
/// none. Then all nodes are killed.
pub(super) fn long_tails(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        nodes: 3,
        heartbeat: Duration::from_millis(50),
        election: Duration::from_millis(150),
        sync_max: Duration::from_millis(20),
        clients: 6,
        writes_percent: 100,
        pause_max: Duration::from_millis(10),
        patience: Duration::from_millis(500),
        wait: Duration::from_millis(300),
        snapshot_every: 1000,
        fault_phase: Duration::from_secs(9),
        faults_from_the_start: false,
        ..several(seed)
    };
    let mut faults = Vec::new();
    for round in 0..2_u64 {
        let at = |after: u64, lasts, fault| Planned::new(500 + 4200 * round + after, lasts, fault);
        faults.push(at(0, 1500, Fault::PowerCutFollowers));
        faults.push(at(1400, 2000, Fault::KillLeader));
        // Otherwise leaders in between would append as many entries.
        faults.extend((1..=3).map(|node| at(1400, 2300, Fault::CutClients(node))));
        faults.extend((1..=3).map(|node| at(3600, 100, Fault::Kill(node))));
    }
    (parameters, faults)
}

/// Two learners stay learners; later a leader reaches no other voter.
pub(super) fn learners(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        nodes: 3,
        spares: 2,
        snapshot_every: 15,
        keep_in_log: 0,
        clients: 5,
        writes_percent: 80,
        pause_max: Duration::from_millis(10),
        sync_max: Duration::from_millis(5),
        latency_max: Duration::from_millis(5),
        fault_phase: Duration::from_secs(12),
        faults_from_the_start: false,
        minority_stays_down: false,
        ..several(seed)
    };
    let mut faults = vec![
        Planned::new(200, 10, Fault::Learner(4)),
        Planned::new(300, 10, Fault::Learner(5)),
        Planned::new(4500, 100, Fault::PowerCutAll),
    ];
    for voter in 1..=3 {
        let side = [voter, 4, 5].into_iter().collect();
        faults.push(Planned::new(4000 + 2000 * voter, 1800, Fault::Split(side)));
    }
    (parameters, faults)
}

/// Each node in turn is cut off from the others while clients still reach it. Its connections to
/// the other nodes stay open, but carry no data.
pub(super) fn each_is_cut_off(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        nodes: 3,
        clients: 5,
        writes_percent: 40,
        pause_max: Duration::from_millis(10),
        wait: Duration::from_millis(200),
        faults_from_the_start: false,
        ..several(seed)
    };
    let cut_off = |node: u64| Planned::new(1500 * node, 1000, Fault::Isolate(node));
    (parameters, (1..=3).map(cut_off).collect())
}

/// Like [`each_is_cut_off`], but the nodes are killed and start again.
pub(super) fn each_is_killed(seed: Seed) -> (Parameters, Vec<Planned>) {
    let (parameters, _) = each_is_cut_off(seed);
    let killed = |node: u64| Planned::new(1500 * node, 200, Fault::Kill(node));
    (parameters, (1..=3).map(killed).collect())
}

/// Rows of one node rot, most of them on disk.
pub(super) fn rotten_rows(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = loses_one(seed, 15);
    (parameters, again_and_again(Fault::RotRow(2), 2500, 200, 3))
}

/// The disk of one node is restored from a copy.
pub(super) fn copied_disks(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = loses_one(seed, 1000);
    (parameters, again_and_again(Fault::Copy(2), 2000, 200, 1))
}

/// No other faults, and one node may be lost for good.
fn loses_one(seed: Seed, snapshot_every: u64) -> Parameters {
    Parameters {
        nodes: 3,
        snapshot_every,
        sync_max: Duration::from_millis(5),
        clients: 5,
        pause_max: Duration::from_millis(10),
        writes_percent: 80,
        minority_stays_down: false,
        spares: 0,
        faults_from_the_start: false,
        fault_phase: Duration::from_secs(9),
        ..several(seed)
    }
}

/// Three regions and an edge site, with a round trip of 20 ms between sites; no other faults.
fn three_regions_and_an_edge(seed: Seed, preference: Vec<usize>) -> Parameters {
    let parameters = Parameters {
        snapshot_every: 15,
        keep_in_log: 0,
        sync_max: Duration::from_millis(5),
        clients: 6,
        pause_max: Duration::from_millis(10),
        minority_stays_down: false,
        spares: 0,
        ..several(seed)
    };
    let regions = Regions {
        preference,
        lag_max: 3,
        ..Regions::new(&[1, 1, 1], 1, Duration::from_millis(20))
    };
    in_regions(parameters, regions)
}

/// The preferred site comes back after a while over slow connections: it is reachable long before
/// it has caught up.
pub(super) fn preferred_falls_behind(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        writes_percent: 80,
        fault_phase: Duration::from_secs(16),
        ..three_regions_and_an_edge(seed, vec![0])
    };
    let thin = |node| Fault::ThinSite([node].into_iter().collect());
    let faults = vec![
        Planned::new(200, 10_300, Fault::CutSite(0)),
        Planned::new(10_000, 5000, thin(2)),
        Planned::new(10_000, 5000, thin(3)),
    ];
    (parameters, faults)
}

/// An edge site is cut off for long, and its clients continue to send requests.
pub(super) fn edge_is_cut_off(seed: Seed) -> (Parameters, Vec<Planned>) {
    let parameters = Parameters {
        writes_percent: 30,
        clients: 12,
        wait: Duration::from_millis(300),
        fault_phase: Duration::from_secs(11),
        ..three_regions_and_an_edge(seed, Vec::new())
    };
    let faults = vec![Planned::new(3000, 7000, Fault::CutSite(3))];
    (parameters, faults)
}
