//! A cluster in several regions, one of which is lost, cut off, cut off in one direction or
//! drained.

use std::time::Duration;

use placement_simulations::faults::{Fault, FaultRecord, Nodes, Planned};
use placement_simulations::history::Event;
use placement_simulations::operation::{Level, Operation};
use placement_simulations::parameters::{NodeTuning, OurClient, Parameters};
use placement_simulations::places::in_regions;
use placement_simulations::regions::Regions;
use placement_simulations::report::Report;
use placement_simulations::seed::Seed;
use placement_simulations::timeline::NodeState;

use crate::common::{answered, is_write, ms, run_without_violations, written};

/// A healthy cluster in these regions. Its clients do not wait long for a node that cannot answer.
fn quiet(seed: u64, fault_phase: u64, regions: Regions) -> Parameters {
    let parameters = Parameters {
        tick: ms(2),
        latency_max: ms(5),
        sync_max: ms(5),
        heartbeat: ms(100),
        snapshot_every: 1000,
        keep_in_log: 50,
        clients: 8,
        providers: 2,
        pause_max: ms(20),
        patience: ms(1500),
        wait: ms(800),
        our_client: OurClient::Absent,
        writes_percent: 40,
        fault_phase: ms(fault_phase),
        minority_stays_down: false,
        spares: 0,
        knobs: NodeTuning::default(),
        ..Parameters::from_seed(Seed(seed))
    };
    in_regions(parameters, regions)
}

fn nodes(these: &[u64]) -> Nodes {
    these.iter().copied().collect()
}

/// Whether it is a read that needs no other node.
fn is_local_read(event: &Event) -> bool {
    matches!(
        event.operation,
        Operation::Read(_, Level::Local | Level::Session(_))
    )
}

/// The leader at a moment.
fn leader(report: &Report, moment: Duration) -> Option<u64> {
    let lives = report.story.lives.iter();
    let lives = lives.filter_map(|(node, lives)| {
        let life = lives.iter().rfind(|(from, _)| *from <= moment)?.1;
        match life {
            NodeState::Leads(term) => Some((term, *node)),
            NodeState::Down | NodeState::Follows(_) => None,
        }
    });
    lives.max().map(|(_, node)| node)
}

/// The leaders, with the start of their leadership.
fn leaders(report: &Report) -> Vec<(Duration, u64)> {
    let lives = report.story.lives.iter();
    let mut leaders: Vec<_> = lives
        .flat_map(|(node, lives)| lives.iter().map(move |(from, life)| (*from, *node, *life)))
        .filter(|(_, _, life)| matches!(life, NodeState::Leads(_)))
        .map(|(from, node, _)| (from, node))
        .collect();
    leaders.sort_unstable();
    leaders
}

/// The first fault that happened.
fn first(report: &Report) -> FaultRecord {
    *report.faults.first().expect("a fault happened")
}

/// Five voters in three regions survive the loss of any region: the others accept writes within
/// three election timeouts, and the final scan finds all acknowledged writes.
#[test]
fn other_regions_accept_writes_after_the_leaders_region_is_lost() {
    for (seed, fault) in [
        (1, Fault::PowerCutLeaderSite),
        (2, Fault::PowerCutLeaderSite),
        (3, Fault::CutLeaderSite),
        (4, Fault::CutLeaderSite),
    ] {
        let regions = Regions::new(&[2, 2, 1], 0, ms(60));
        let parameters = quiet(seed, 8000, regions.clone());
        let election_max = 2 * parameters.election;
        let report = run_without_violations(parameters, vec![Planned::new(2000, 5000, fault)]);
        let lost = first(&report);
        let led = leader(&report, lost.from).expect("a node led");
        let site = regions.site(led);
        let elsewhere = |node| regions.site(node) != site;
        let soon = lost.from + 3 * election_max;
        assert!(
            written(&report, lost.from, soon, elsewhere) > 0,
            "seed {seed}: no client wrote within {:?} of the loss of node {led}'s region",
            3 * election_max
        );
        assert!(
            written(&report, soon, lost.to, elsewhere) > 5,
            "{:?}",
            report.counts
        );
        let there = written(&report, lost.from + ms(500), lost.to, |node| {
            !elsewhere(node)
        });
        assert_eq!(there, 0, "seed {seed}: the lost region accepted writes");
    }
}

/// Leadership moves to the preferred region, leaves it when it is drained, and returns after the
/// drain.
#[test]
fn leadership_leaves_a_drained_region_and_returns_after_the_drain() {
    for seed in 1..=2 {
        let regions = Regions {
            preference: vec![1],
            ..Regions::new(&[1, 2, 2], 0, ms(30))
        };
        let faults = vec![Planned::new(14_000, 9000, Fault::DrainSite(nodes(&[2, 3])))];
        let parameters = Parameters {
            pause_max: ms(400),
            ..quiet(seed, 28_000, regions.clone())
        };
        let report = run_without_violations(parameters, faults);
        let drained = first(&report);
        let changes = leaders(&report);
        let is_preferred = |node: &u64| regions.site(*node) == 1;
        let led = leader(&report, drained.from).expect("a node leads");
        assert!(
            is_preferred(&led),
            "seed {seed}: {changes:?}, drained at {:?}",
            drained.from
        );
        let (left, undrained) = (drained.from + ms(2000), drained.to);
        for moment in [left, left + (undrained - left) / 2, undrained] {
            let led = leader(&report, moment).expect("a node leads");
            assert!(
                !is_preferred(&led),
                "seed {seed}: node {led} leads at {moment:?}"
            );
        }
        let back = leader(&report, undrained + ms(4500));
        assert!(
            back.is_some_and(|node| is_preferred(&node)),
            "seed {seed}: {changes:?}"
        );
        assert!(changes.len() <= 4, "seed {seed}: {changes:?}");
    }
}

/// An edge site that is cut off continues to answer reads with their staleness, and refuses writes.
/// When it is reachable again, the log entries that it misses are purged.
#[test]
fn edge_site_serves_reads_while_cut_off_and_then_gets_a_snapshot() {
    for seed in 1..=2 {
        let parameters = Parameters {
            snapshot_every: 10,
            keep_in_log: 0,
            clients: 24,
            writes_percent: 25,
            ..quiet(seed, 13_000, Regions::new(&[1, 1, 1], 1, ms(60)))
        };
        let report = run_without_violations(
            parameters,
            vec![Planned::new(3000, 9000, Fault::CutSite(3))],
        );
        let cut = first(&report);
        let from = cut.from + ms(100);
        let there = answered(&report, from, cut.to, |node| node == 4);
        let read = there
            .iter()
            .filter(|(event, answer)| is_local_read(event) && answer.status < 500);
        let oldest = read
            .clone()
            .filter_map(|(_, answer)| answer.staleness)
            .max();
        let count = read.count();
        assert!(count > 5, "seed {seed}: the edge answered {count} reads");
        assert!(
            oldest > Some(ms(7000)),
            "seed {seed}: the oldest answer was {oldest:?} old"
        );
        assert_eq!(
            written(&report, from, cut.to, |node| node == 4),
            0,
            "seed {seed}"
        );
        let refused = there
            .iter()
            .filter(|(event, answer)| is_write(event) && answer.status == 503);
        assert!(
            refused.count() > 0,
            "seed {seed}: no write at the edge got 503"
        );
        assert!(
            written(&report, from, cut.to, |node| node < 4) > 20,
            "seed {seed}"
        );
        assert!(
            report.counts.snapshots > 0,
            "seed {seed}: {:?}",
            report.counts
        );
    }
}

/// A node that does not receive the leader's messages requests votes, and the nodes that do receive
/// them grant none.
#[test]
fn one_way_partition_between_regions_causes_no_elections() {
    for (seed, regions) in [(1, [2, 2, 1]), (2, [1, 2, 2])] {
        let ways = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)];
        let faults = (0..).zip(ways).map(|(number, (from, to))| {
            Planned::new(1000 + 3500 * number, 3000, Fault::CutSiteWay(from, to))
        });
        let parameters = quiet(seed, 22_500, Regions::new(&regions, 0, ms(60)));
        let report = run_without_violations(parameters, faults.collect());
        for cut in &report.faults {
            let written = written(&report, cut.from, cut.to, |_| true);
            assert!(
                written > 5,
                "seed {seed}: {written} writes while {}",
                cut.fault
            );
        }
        let changes = leaders(&report);
        assert!(changes.len() <= 3, "seed {seed}: {changes:?}");
    }
}

/// Two of four voters are not a majority, nor are two of five.
#[test]
fn two_regions_survive_a_loss_that_leaves_a_majority() {
    for (seed, voters, survives) in [(3, [2, 2], [false, false]), (2, [3, 2], [false, true])] {
        let regions = Regions::new(&voters, 0, ms(30));
        let faults = vec![
            Planned::new(1000, 4000, Fault::PowerCutSite(regions.nodes(0))),
            Planned::new(7000, 4000, Fault::PowerCutSite(regions.nodes(1))),
        ];
        let report = run_without_violations(quiet(seed, 12_000, regions.clone()), faults);
        for (site, survives) in survives.into_iter().enumerate() {
            let lost = report
                .faults
                .iter()
                .find(
                    |one| matches!(one.fault, Fault::PowerCut(node) if regions.site(node) == site),
                )
                .expect("the power of the region failed");
            let others = |node| regions.site(node) != site;
            let written = written(&report, lost.from, lost.to, others);
            assert_eq!(
                written > 0,
                survives,
                "{voters:?} without r{site}: {written} writes"
            );
            let read = answered(&report, lost.from, lost.to, others)
                .into_iter()
                .filter(|(event, answer)| is_local_read(event) && answer.status < 500);
            assert!(read.count() > 0, "{voters:?} without r{site}: no reads");
        }
    }
}

/// A starting node asks the others for the start in which it has last written, however far away
/// they are.
#[test]
fn older_copy_is_refused_across_distant_regions() {
    for seed in 1..=2 {
        let faults = vec![
            Planned::new(1500, 300, Fault::Copy(2)),
            Planned::new(4000, 300, Fault::PowerCut(2)),
        ];
        let regions = Regions::new(&[1, 1, 1], 0, ms(200));
        let report = run_without_violations(quiet(seed, 7000, regions), faults);
        let [words] = report.refused.as_slice() else {
            panic!("seed {seed}: {:?}", report.refused);
        };
        assert!(words.contains("is an older copy"), "{words}");
    }
}
