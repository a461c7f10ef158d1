//! The checks can fail: each bug that is put in on purpose is caught, within a few seeds, by the
//! promise that it breaks. Without the bug the same runs hold.

use placement_simulations::campaign::Subject;
use placement_simulations::invariants::NAMES;
use placement_simulations::mutant::Mutant;
use placement_simulations::seed::Seed;

/// So many seeds are tried, as any change of the product changes what a seed leads to. DESIGN.md
/// records how many of them catch what.
const SEEDS: u64 = 20;

fn is_caught(mutant: Mutant) {
    for seed in (1..=SEEDS).map(Seed) {
        let control = Subject::Control(mutant);
        let report = control.run(seed);
        let replay = control.replay(seed);
        assert!(
            report.violations.is_empty(),
            "without the bug: {replay}: {:#?}",
            report.violations
        );
        if mutant.is_caught_by(&Subject::Mutant(mutant).run(seed)) {
            return;
        }
    }
    panic!(
        "none of the seeds 1 to {SEEDS} caught {} by {:?}",
        mutant.name(),
        mutant.complaint()
    );
}

#[test]
fn acknowledging_before_the_sync_is_caught() {
    is_caught(Mutant::AcknowledgeBeforeSync);
}

#[test]
fn forgetting_votes_is_caught() {
    is_caught(Mutant::ForgetVotes);
}

#[test]
fn a_local_read_served_as_linearizable_is_caught() {
    is_caught(Mutant::LocalReadAsLinearizable);
}

#[test]
fn skipping_the_capacity_check_is_caught() {
    is_caught(Mutant::SkipCapacityCheck);
}

#[test]
fn carrying_out_a_repeated_request_again_is_caught() {
    is_caught(Mutant::ApplyRetriesTwice);
}

#[test]
fn a_node_that_decides_otherwise_is_caught() {
    is_caught(Mutant::DivergingNode);
}

/// The name is what a person types, the promise is what decides; neither may be missing.
#[test]
fn every_mutant_has_a_name_and_breaks_a_promise() {
    for mutant in Mutant::ALL.iter().copied() {
        assert_eq!(Mutant::named(mutant.name()), Some(mutant));
        assert!(NAMES.contains(&mutant.complaint()), "{mutant:?}");
    }
}
