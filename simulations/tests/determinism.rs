//! The proof that comes before any other simulation is believed: the same seed gives the same
//! history, byte for byte, and the same packets at the same moments; in one process and in
//! another.

use std::process::Command;

use placement_simulations::faults::Fault;
use placement_simulations::parameters::Parameters;
use placement_simulations::report::Report;
use placement_simulations::run::run;
use placement_simulations::seed::Seed;
use placement_simulations::trace::PacketDigest;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// Power cuts, partitions and elections must happen in each; choose others if they no longer do.
const SEEDS: [u64; 4] = [4, 6, 8, 11];

fn traced(seed: u64) -> Report {
    std::thread::spawn(move || {
        let packets = PacketDigest.with_filter(EnvFilter::new("turmoil=trace"));
        let subscriber = Registry::default().with(packets);
        tracing::subscriber::with_default(subscriber, || {
            run(&Parameters::from_seed(Seed(seed)), None)
        })
    })
    .join()
    .expect("a run reports its panics")
}

/// A run in which nothing fails proves little.
fn is_eventful(report: &Report) {
    let seed = report.parameters.seed.0;
    let partitions = [
        "isolate",
        "isolate-leader",
        "mute",
        "deafen",
        "deafen-leader",
    ];
    let some = |kinds: &[&str]| kinds.iter().any(|kind| report.kinds.contains(kind));
    let power_cuts: Vec<&str> = Fault::KINDS
        .into_iter()
        .filter(|kind| kind.starts_with("power-cut"))
        .collect();
    assert!(some(&power_cuts), "seed {seed}: {:?}", report.kinds);
    assert!(some(&partitions), "seed {seed}: {:?}", report.kinds);
    assert!(
        report.counts.elections > 1,
        "seed {seed}: {:?}",
        report.counts
    );
    assert!(
        report.counts.lost_bytes > 0,
        "seed {seed}: {:?}",
        report.counts
    );
}

#[test]
fn one_seed_is_one_history() {
    for seed in SEEDS {
        let (first, second) = (traced(seed), traced(seed));
        is_eventful(&first);
        assert!(
            first.trace.0 > 10_000,
            "packets were seen: {:?}",
            first.trace
        );
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
        let said = String::from_utf8_lossy(&output.stdout);
        let (history, packets) = (first.history.digest(), first.trace.1);
        assert!(
            said.contains(&format!("{history:032x}")),
            "another process: {said}"
        );
        assert!(
            said.contains(&format!("{packets:032x}")),
            "another process: {said}"
        );
    }
}

#[test]
fn another_seed_is_another_history() {
    assert_ne!(
        traced(SEEDS[0]).history.digest(),
        traced(SEEDS[1]).history.digest()
    );
}

/// openraft checks some eighty invariants by `debug_assert!`; a dependency is built without them unless the
/// profile says otherwise.
#[test]
fn assertions_are_on_in_our_crates_and_in_openraft() {
    const { assert!(cfg!(debug_assertions)) };
    let program = std::env::current_exe().and_then(std::fs::read);
    let program = program.expect("a running program can be read");
    let holds = |words: &str| {
        let words = words.as_bytes();
        program.windows(words.len()).any(|found| found == words)
    };
    // What an assertion of openraft's engine says. Put together here, so that it is not this test's own.
    let said = ["it can only commit", " its own vote"].concat();
    assert!(holds(&said), "openraft is built without its assertions");
}
