//! Tools for analyzing a failing seed.

use placement_simulations::campaign::TestedProgram;
use placement_simulations::explain::explain;
use placement_simulations::fault_subset::{FaultSubset, Numbers};
use placement_simulations::mutant::Mutant;
use placement_simulations::seed::Seed;

#[test]
fn explain_names_each_fault_and_leader() {
    let report = TestedProgram::Product.run(Seed(3));
    assert!(report.faults.len() > 3, "{:?}", report.faults);
    let story = explain(&report);
    for happened in &report.faults {
        let line = format!("fault begins: {}", happened.fault);
        assert!(story.contains(&line), "{line}: {story}");
    }
    assert!(story.contains("leads in term 1"), "{story}");
    assert!(story.contains("No violations."), "{story}");
}

#[test]
fn violations_have_times() {
    // A violation that is found during the run has the time at which it was seen; one that the
    // check of the history finds has the times of the requests.
    for mutant in [
        Mutant::SkipCapacityCheck,
        Mutant::ForgetVotes,
        Mutant::AnsweredBeforeItIs,
    ] {
        let mut runs = (1..10).map(|seed| TestedProgram::Mutant(mutant).run(Seed(seed)));
        let report = runs.find(|report| mutant.is_caught_by(report)).unwrap();
        for wrong in &report.violations {
            let seen = wrong.contains("\n    seen at ");
            assert!(seen || wrong.contains(" s client"), "{wrong}");
        }
    }
}

#[test]
fn shrinking_leaves_out_faults_that_a_failure_does_not_need() {
    let subject = TestedProgram::Mutant(Mutant::SkipCapacityCheck);
    let fails = |seed, less: &FaultSubset| {
        let report = subject.run_less(seed, less);
        Mutant::SkipCapacityCheck.is_caught_by(&report)
    };
    let mut seeds = (1..=20).map(Seed);
    let none = FaultSubset {
        only_faults: Some(Numbers::default()),
    };
    // A seed with faults that also fails without them.
    let seed = seeds
        .find(|seed| fails(*seed, &FaultSubset::default()) && fails(*seed, &none))
        .unwrap();
    let least = FaultSubset::search(subject.course(seed).1.len(), |less| fails(seed, less));
    assert_eq!(least.only_faults.unwrap().to_string(), "none");
}
