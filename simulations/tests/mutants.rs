//! The checks can fail: each bug that is put in on purpose is caught, within a few seeds.

use placement_simulations::mutant::Mutant;
use placement_simulations::parameters::Parameters;
use placement_simulations::run::run;
use placement_simulations::seed::Seed;

/// The seed that catches it, as DESIGN.md records, and a word of the complaint.
fn caught(mutant: Mutant, seed: u64, complaint: &str) {
    let report = std::thread::spawn(move || run(&Parameters::from_seed(Seed(seed)), Some(mutant)))
        .join()
        .expect("a run reports its panics");
    assert!(
        report
            .violations
            .iter()
            .any(|violation| violation.contains(complaint)),
        "{} did not catch it: {:#?}",
        report.replay(Some(mutant)),
        report.violations
    );
}

#[test]
fn acknowledging_before_the_sync_is_caught() {
    caught(Mutant::AcknowledgeBeforeSync, 1, "");
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
