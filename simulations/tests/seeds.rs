//! Some tens of seeds; `PLACEMENT_SIM_SEEDS` says how many, `PLACEMENT_SIM_FIRST` from which on.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use placement_simulations::faults::Fault;
use placement_simulations::parameters::Parameters;
use placement_simulations::run::{Report, run};
use placement_simulations::seed::Seed;

const SEEDS: u64 = 40;
/// As many as the smallest machine that runs this has cores.
const WORKERS: usize = 2;
/// From so many seeds on, everything must have happened at least once.
const ENOUGH: u64 = 30;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Each seed on a thread of its own, as the simulated world is bound to its thread.
fn run_all(first: u64, count: u64) -> Vec<Report> {
    let (next, reports) = (
        Arc::new(AtomicU64::new(first)),
        Arc::new(Mutex::new(Vec::new())),
    );
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (next, reports) = (next.clone(), reports.clone());
            std::thread::spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    let one =
                        std::thread::spawn(move || run(&Parameters::from_seed(Seed(seed)), None));
                    let report = one.join().expect("a run reports its panics");
                    reports.lock().expect("nobody panics").push(report);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("workers do not panic");
    }
    let mut reports = std::mem::take(&mut *reports.lock().expect("nobody panics"));
    reports.sort_by_key(|report| report.parameters.seed.0);
    reports
}

#[test]
fn the_promises_hold_whatever_fails() {
    let (first, count) = (
        number("PLACEMENT_SIM_FIRST", 1),
        number("PLACEMENT_SIM_SEEDS", SEEDS),
    );
    let reports = run_all(first, count);
    let mut failures = Vec::new();
    for report in &reports {
        if let Some(violation) = report.violations.first() {
            failures.push(format!(
                "{}\n    {} violations, the first: {violation}\n    {:?}",
                report.replay(None),
                report.violations.len(),
                report.parameters,
            ));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} seeds failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
    something_happened(&reports, count);
}

/// Gates against runs that prove nothing because nothing happened in them.
fn something_happened(reports: &[Report], count: u64) {
    for report in reports {
        let (counts, replay) = (&report.counts, report.replay(None));
        assert!(
            counts.commits >= 20,
            "hardly any commits: {replay}: {counts:?}"
        );
        assert!(counts.reads >= 10, "hardly any reads: {replay}: {counts:?}");
        assert!(
            counts.forwarded >= 1,
            "no forwarded write: {replay}: {counts:?}"
        );
        assert!(counts.elections >= 1, "no leader: {replay}: {counts:?}");
        let simulated_s = counts.simulated.as_secs().max(1);
        assert!(
            counts.connections < 150 * simulated_s,
            "nodes connect without a pause: {replay}: {counts:?}"
        );
        assert!(
            counts.searched >= 1,
            "no second opinion: {replay}: {counts:?}"
        );
    }
    if count < ENOUGH {
        return;
    }
    let seen: BTreeSet<&str> = reports
        .iter()
        .flat_map(|report| report.kinds.iter().copied())
        .collect();
    assert_eq!(
        seen,
        BTreeSet::from(Fault::KINDS),
        "every kind of fault happens"
    );
    let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
    assert!(
        sum(|one| one.counts.lost_bytes) > 0,
        "power cuts take unsynced bytes"
    );
    assert!(
        sum(|one| one.counts.elections as u64) > count,
        "leaders change"
    );
    assert!(
        sum(|one| one.counts.resolved as u64) > 0,
        "some outcomes are unknown at first"
    );
    assert!(
        sum(|one| one.counts.repeated as u64) > 0,
        "some requests are repeated"
    );
    assert!(
        sum(|one| one.counts.unavailable as u64) > 0,
        "some requests find no quorum"
    );
    assert!(
        sum(|one| one.counts.snapshots as u64) > 0,
        "some nodes are sent snapshots"
    );
    assert!(
        sum(|one| one.counts.applied as u64) > sum(|one| one.counts.commits as u64) * 3,
        "some commands are applied again after a crash"
    );
}
