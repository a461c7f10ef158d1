//! Proves determinism, on which all other simulations rely: the same seed gives the same history,
//! byte for byte, and the same packets at the same times, within one process and across processes.

use std::process::Command;

use placement_simulations::faults::drawn;
use placement_simulations::report::Report;
use placement_simulations::run::run_with;
use placement_simulations::seed::Seed;
use placement_simulations::trace::PacketDigest;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// Number of eventful runs to compare, with seeds from 1 on.
const COMPARED: usize = 4;
const SEED_MAX: u64 = 60;

fn traced(seed: u64) -> Report {
    std::thread::spawn(move || {
        let packets = PacketDigest.with_filter(EnvFilter::new("turmoil=trace"));
        let subscriber = Registry::default().with(packets);
        tracing::subscriber::with_default(subscriber, || {
            let (parameters, faults) = drawn(Seed(seed));
            run_with(&parameters, None, faults)
        })
    })
    .join()
    .expect("a run reports its panics")
}

/// Whether power cuts, partitions, elections and writes happened. Other runs prove little.
fn is_eventful(report: &Report) -> bool {
    let partitions = [
        "isolate",
        "isolate-leader",
        "mute",
        "deafen",
        "deafen-leader",
    ];
    let kinds = &report.kinds;
    kinds.iter().any(|kind| kind.starts_with("power-cut"))
        && kinds.iter().any(|kind| partitions.contains(kind))
        && report.counts.elections > 1
        && report.counts.acknowledged > 50
        && report.counts.lost_bytes > 0
}

#[test]
fn one_seed_gives_one_history() {
    let (mut compared, mut neighbours) = (0, 0);
    for seed in 1..=SEED_MAX {
        let first = traced(seed);
        if !is_eventful(&first) {
            continue;
        }
        let second = traced(seed);
        assert!(first.trace.0 > 1_000, "too few packets: {:?}", first.trace);
        assert!(
            first.history.text() == second.history.text() && first.trace == second.trace,
            "seed {seed} gave two histories: {:032x} {:?} and {:032x} {:?}; compare two runs of \
             scripts/simulate run --seed {seed} --history --trace",
            first.history.digest(),
            first.trace,
            second.history.digest(),
            second.trace,
        );
        let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
            .args(["run", "--seed", &seed.to_string(), "--trace"])
            .output()
            .expect("the binary runs");
        let printed = String::from_utf8_lossy(&output.stdout);
        let (history, packets) = (first.history.digest(), first.trace.1);
        assert!(
            printed.contains(&format!("{history:032x}")),
            "another process: {printed}"
        );
        assert!(
            printed.contains(&format!("{packets:032x}")),
            "another process: {printed}"
        );
        compared += 1;
        neighbours += first.counts.neighbours;
        if compared >= COMPARED && neighbours > 0 {
            return;
        }
    }
    panic!("{compared} of {SEED_MAX} seeds are eventful, with {neighbours} writes of neighbours");
}

#[test]
fn different_seeds_give_different_histories() {
    assert_ne!(traced(1).history.digest(), traced(2).history.digest());
}

/// openraft checks about eighty invariants with `debug_assert!`, which dependencies lack unless the
/// profile enables it.
#[test]
fn debug_assertions_are_enabled_in_our_crates_and_in_openraft() {
    const { assert!(cfg!(debug_assertions)) };
    let program = std::env::current_exe().and_then(std::fs::read);
    let program = program.expect("a running program can be read");
    let holds = |words: &str| {
        let words = words.as_bytes();
        program.windows(words.len()).any(|found| found == words)
    };
    // The message of an assertion in openraft's engine, concatenated here so that the search does
    // not find this test's own copy.
    let message = ["it can only commit", " its own vote"].concat();
    assert!(holds(&message), "openraft is built without its assertions");
}
