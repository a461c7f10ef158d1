//! The checks can fail: each bug that is put in on purpose is caught, within a few seeds.

use placement_simulations::mutant::Mutant;
use placement_simulations::parameters::Parameters;
use placement_simulations::run::run;
use placement_simulations::seed::Seed;

/// So many seeds are tried after the recorded one, as any change of the product changes what a
/// seed leads to.
const SEEDS: u64 = 60;

/// `recorded` is the seed that caught it when DESIGN.md was written, `complaint` a word of what
/// the checks then say.
fn caught(mutant: Mutant, recorded: u64, complaint: &str) {
    for seed in std::iter::once(recorded).chain(1..=SEEDS) {
        let report =
            std::thread::spawn(move || run(&Parameters::from_seed(Seed(seed)), Some(mutant)))
                .join()
                .expect("a run reports its panics");
        if report
            .violations
            .iter()
            .any(|violation| violation.contains(complaint))
        {
            println!("caught by {}", report.replay(Some(mutant)));
            return;
        }
    }
    let name = mutant.name();
    panic!("not caught: scripts/simulate --count {SEEDS} --mutant {name}");
}

#[test]
fn acknowledging_before_the_sync_is_caught() {
    caught(Mutant::AcknowledgeBeforeSync, 18, "");
}

#[test]
fn a_local_read_served_as_linearizable_is_caught() {
    caught(Mutant::LocalReadAsLinearizable, 1, "must not be before");
}

#[test]
fn skipping_the_capacity_check_is_caught() {
    caught(Mutant::SkipCapacityCheck, 1, "over-allocation");
}

#[test]
fn carrying_out_a_repeated_request_again_is_caught() {
    caught(Mutant::ApplyRetriesTwice, 1, "");
}

#[test]
fn a_node_that_decides_otherwise_is_caught() {
    caught(Mutant::DivergingNode, 1, "equal digests");
}
