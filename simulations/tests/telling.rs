//! What a run is told and drawn as, and how little of a failing one is needed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use placement_simulations::campaign::Subject;
use placement_simulations::explain::explain;
use placement_simulations::less::Less;
use placement_simulations::mutant::Mutant;
use placement_simulations::picture::picture;
use placement_simulations::seed::Seed;
use placement_simulations::swarm::Swarm;

#[test]
fn the_story_tells_of_each_fault_and_each_leader() {
    let report = Subject::Product.run(Seed(3));
    assert!(report.faults.len() > 3, "{:?}", report.faults);
    let story = explain(&report);
    let drawn = picture(&report);
    for happened in &report.faults {
        let told = format!("fault begins: {}", happened.fault);
        assert!(story.contains(&told), "{told}: {story}");
    }
    assert!(story.contains("==== the storm begins"), "{story}");
    assert!(story.contains("leads in term 1"), "{story}");
    assert!(story.contains("Nothing is wrong."), "{story}");
    assert!(drawn.contains("leads in term 1"));
    assert!(drawn.ends_with("</svg>"));
    // As many bars as requests, and more for the nodes and the faults.
    let bars = drawn.matches("<rect").count();
    assert!(bars > report.history.events.len() + report.faults.len());
}

#[test]
fn what_is_wrong_has_its_moment() {
    // One is noticed in the ledger, one on a disk, one in what clients saw.
    for (mutant, seeds) in [
        (Mutant::SkipCapacityCheck, 1..10),
        (Mutant::ForgetVotes, 1..10),
        (Mutant::AnsweredBeforeItIs, 1..10),
    ] {
        let subject = Subject::Mutant(mutant);
        let mut runs = seeds.map(|seed| subject.run(Seed(seed)));
        let report = runs.find(|report| mutant.is_caught_by(report)).unwrap();
        for wrong in &report.violations {
            let seen = wrong.contains("\n    seen at ");
            assert!(seen || wrong.contains(" s client"), "{wrong}");
        }
    }
}

#[test]
fn of_a_run_that_fails_only_what_it_takes_is_left() {
    let subject = Subject::Mutant(Mutant::SkipCapacityCheck);
    let fails = |seed, less: &Less| {
        let report = subject.run_less(seed, less);
        (report.violations.iter()).any(|one| one.contains(Mutant::SkipCapacityCheck.complaint()))
    };
    let seed = (1..=20)
        .map(Seed)
        .find(|seed| fails(*seed, &Less::default()));
    let seed = seed.expect("one of twenty seeds catches it");
    let (parameters, faults) = subject.course(seed);
    let least = Less::search(&parameters, faults.len(), |less| fails(seed, less));
    // No fault is needed to give away more than there is.
    assert_eq!(least.only_faults.as_ref().unwrap().to_string(), "none");
    assert!(fails(seed, &least), "{least}");
}

#[test]
fn a_swarm_runs_each_of_its_seeds_once() {
    let swarm = Swarm {
        subject: Subject::Product,
        seeds: 1..4,
        in_regions: false,
        until: None,
        jobs: 2,
    };
    let mut seeds = Vec::new();
    let summary = swarm.run(Duration::from_secs(1), |report, _| {
        seeds.extend(report.map(|report| report.parameters.seed.0));
    });
    seeds.sort_unstable();
    assert_eq!(seeds, [1, 2, 3]);
    assert!(summary.is_well(), "{summary}");
    assert!(summary.totals.commits > 30, "{}", summary.totals);
    assert!(!summary.totals.requests.is_empty());
}
