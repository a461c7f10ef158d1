//! Runs a fixed set of seeds, and some that never ran before.
//!
//! `PLACEMENT_SIM_SEEDS` is the number of fixed seeds, `PLACEMENT_SIM_FIRST` the first of them.
//! `PLACEMENT_SIM_FRESH_S` is the time for fresh seeds in seconds. `PLACEMENT_SIM_COMMIT`, which
//! `scripts/test` sets, selects the fresh seeds.

#![allow(clippy::unwrap_used, reason = "a failing unwrap fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::Write;
use std::ops::Range;
use std::time::{Duration, Instant};

use placement_base::coverage::RarePath;
use placement_simulations::campaign::{TestedProgram, fresh};
use placement_simulations::faults::Fault;
use placement_simulations::operation::QuestionKind;
use placement_simulations::parameters::Clouds;
use placement_simulations::report::{Counts, Report};
use placement_simulations::swarm::Swarm;
use skip::skipped;

#[path = "../../tests/src/skip.rs"]
#[allow(unreachable_pub, reason = "the file also belongs to another crate")]
mod skip;

const SEEDS: u64 = 80;
const FRESH_S: u64 = 10;
/// Maximum number of fresh seeds for one commit. Two commits hardly ever share seeds.
const FRESH_MAX: u64 = 100_000;
/// One in this many seeds runs twice and must give the same result.
const TWICE_ONE_IN: u64 = 10;
/// Limits of the recovery time as a percentage of its bound, at the median and the 95th percentile
/// of the fixed seeds. Only changes of the product change the results.
const RECOVERY_MEDIAN_MAX: u128 = 3;
const RECOVERY_P95_MAX: u128 = 15;
/// The number of cores of the smallest machine that runs this test.
const WORKERS: usize = 2;
/// Interval of progress reports.
const PAUSE: Duration = Duration::from_secs(2);
/// With at least this many seeds, everything must have happened at least once.
const ENOUGH: u64 = 30;

/// A number from the environment.
fn number(name: &str, text: Option<&str>, default: u64) -> Result<u64, String> {
    let Some(text) = text else {
        return Ok(default);
    };
    text.trim()
        .parse()
        .map_err(|error| format!("{name} is {text:?}, not a number: {error}"))
}

/// A number of runs from the environment. Zero is refused, as it would prove nothing.
fn count(name: &str, text: Option<&str>, default: u64) -> Result<u64, String> {
    match number(name, text, default)? {
        0 => Err(format!("{name} is 0: nothing would run")),
        count => Ok(count),
    }
}

fn from_environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|text| text.to_string_lossy().into_owned())
}

/// Prints a line even if the test passes: writes to standard error directly, past the test harness.
fn say(line: impl Display) {
    writeln!(std::io::stderr(), "{line}").expect("standard error takes a line");
}

/// Runs seeds, all of them or until a deadline. Fails if a seed fails or too little happened.
fn hold(what: &str, seeds: Range<u64>, until: Option<Instant>) -> Vec<Report> {
    say(format!(
        "{what}: scripts/simulate swarm --seeds {}..{}",
        seeds.start, seeds.end
    ));
    let swarm = Swarm {
        subject: TestedProgram::Product,
        seeds: seeds.clone(),
        in_regions: false,
        until,
        jobs: WORKERS,
    };
    let mut reports = Vec::new();
    let summary = swarm.run(PAUSE, |report, _| reports.extend(report));
    reports.sort_by_key(|report: &Report| report.parameters.seed.0);
    say(format!("{what}: {summary}"));
    assert!(summary.succeeded(), "{summary}");
    assert!(until.is_some() || summary.seeds as u64 == seeds.end - seeds.start);
    for report in &reports {
        something_happened(report);
    }
    if reports.len() as u64 >= ENOUGH {
        enough_happened(&reports);
    }
    reports
}

/// The same seed gives the same run, independent of concurrent runs.
fn runs_twice_alike(reports: &[Report]) {
    let some = (reports.iter()).filter(|one| one.parameters.seed.0.is_multiple_of(TWICE_ONE_IN));
    for first in some {
        let seed = first.parameters.seed;
        let second = TestedProgram::Product.run(seed);
        assert!(
            first.history.digest() == second.history.digest(),
            "two runs of a seed differ: {}",
            TestedProgram::Product.replay(seed)
        );
    }
}

/// Recovery takes far less time than its bound allows.
fn recovers_soon(reports: &[Report]) {
    let mut percents: Vec<u128> = (reports.iter())
        .map(|report| report.counts.recovery_percent())
        .collect();
    percents.sort_unstable();
    let (median, p95) = (
        percents[percents.len() / 2],
        percents[percents.len() * 95 / 100],
    );
    say(format!(
        "recovery took {median} % of its bound at the median, {p95} % at the 95th percentile"
    ));
    assert!(median <= RECOVERY_MEDIAN_MAX, "median: {median} %");
    assert!(p95 <= RECOVERY_P95_MAX, "95th percentile: {p95} %");
}

#[test]
fn invariants_hold_whatever_fails() {
    let environment = |name, default| count(name, from_environment(name).as_deref(), default);
    let count = environment("PLACEMENT_SIM_SEEDS", SEEDS).unwrap();
    let first = from_environment("PLACEMENT_SIM_FIRST");
    let first = number("PLACEMENT_SIM_FIRST", first.as_deref(), 1).unwrap();
    let reports = hold("the fixed seeds", first..first + count, None);
    runs_twice_alike(&reports);
    if count < ENOUGH {
        skipped(
            "whether every kind of fault, snapshots, elections and repetitions happened",
            &format!("PLACEMENT_SIM_SEEDS is {count}, fewer than {ENOUGH}"),
        );
    } else {
        everything_happened(&reports);
        rare_paths_ran(&reports);
        everything_was_asked_for(&reports);
        recovers_soon(&reports);
    }
    let seconds = environment("PLACEMENT_SIM_FRESH_S", FRESH_S).unwrap();
    let name = from_environment("PLACEMENT_SIM_COMMIT").unwrap_or_else(|| {
        say("PLACEMENT_SIM_COMMIT is not set: the fresh seeds are the same in each run");
        "no commit".to_owned()
    });
    let (first, until) = (
        fresh(&name).0,
        Instant::now() + Duration::from_secs(seconds),
    );
    let reports = hold("the fresh seeds", first..first + FRESH_MAX, Some(until));
    assert!(!reports.is_empty(), "no fresh seed was run");
}

/// Fails runs that prove nothing because too little happened.
fn something_happened(report: &Report) {
    let counts = &report.counts;
    let replay = TestedProgram::Product.replay(report.parameters.seed);
    let at_least = |what: &str, there: usize, least: usize| {
        assert!(there >= least, "hardly any {what}: {replay}: {counts:?}");
    };
    at_least("commits", counts.commits, 10);
    at_least("linearizable reads", counts.reads.linearizable, 1);
    at_least("leaders", counts.elections, 1);
    let simulated_s = counts.simulated.as_secs().max(1);
    // At most 55 per second in 500 seeds; thousands without a pause between retries.
    assert!(
        counts.connections < 100 * simulated_s,
        "nodes connect without a pause: {replay}: {counts:?}"
    );
}

/// Rare paths that random faults take in few seeds or none, each with the test that takes it.
const TAKEN_ELSEWHERE: &str = "
interrupted install done again: power_may_fail_in_the_middle_of_an_installation
received snapshot installed at start: power_may_fail_in_the_middle_of_an_installation
received snapshot refused: a_damaged_snapshot_is_refused_and_changes_nothing
damaged snapshot built again: node_replaces_its_own_damaged_snapshot
snapshot put off: partial_snapshot_is_kept_and_one_without_room_is_not_begun
snapshot resumed: partial_snapshot_is_kept_and_one_without_room_is_not_begun
write refused, too many wait: queue_is_bounded_by_best_recent_rate
damaged rows refused: node_refuses_rotten_rows
older copy refused: node_refuses_an_older_copy_of_its_disk
repeated claim answered as done: claims_whose_answers_are_lost_are_done_once
";
/// The files of these tests.
const ELSEWHERE: [&str; 4] = [
    "tests/scenarios.rs",
    "../raft-store/tests/snapshots.rs",
    "../node/tests/cluster/snapshots.rs",
    "../node/cluster/src/backlog.rs",
];

/// Fails if a rare path was taken by no seed: the simulations then say nothing about it.
fn rare_paths_ran(reports: &[Report]) {
    let tests = ELSEWHERE
        .map(|file| std::fs::read_to_string(file).unwrap())
        .concat();
    let is_taken_elsewhere = |path: &RarePath| {
        let mut taken = TAKEN_ELSEWHERE
            .lines()
            .filter_map(|line| line.split_once(": "));
        let test = taken.find(|(name, _)| *name == path.name());
        test.is_some_and(|(_, test)| tests.contains(&format!("fn {test}()")))
    };
    let never: Vec<&str> = RarePath::ALL
        .iter()
        .filter(|path| !is_taken_elsewhere(path))
        .filter(|path| !reports.iter().any(|one| one.rare.contains_key(path)))
        .map(|path| path.name())
        .collect();
    assert!(never.is_empty(), "no seed took: {never:?}");
}

/// Fails if too little happened over many runs; a single short run may lack some of it.
fn enough_happened(reports: &[Report]) {
    let runs = reports.len();
    let gate = |what: &str, each: usize, of: fn(&Counts) -> usize| {
        let all: usize = reports.iter().map(|report| of(&report.counts)).sum();
        assert!(all >= each * runs, "only {all} {what} in {runs} runs");
    };
    gate("commits", 20, |counts| counts.commits);
    gate("linearizable reads", 5, |counts| counts.reads.linearizable);
    gate("session reads", 5, |counts| counts.reads.session);
    gate("local reads", 2, |counts| counts.reads.local);
    gate("forwarded writes", 1, |counts| counts.forwarded);
    gate("second opinions", 1, |counts| counts.searched);
}

/// Requests that are never refused.
const NEVER_REFUSED: [&str; 6] = [
    "EnsureTrait",
    "EnsureResourceClass",
    "allocations",
    "usages",
    "traits",
    "resource classes",
];
/// Commands that clients send.
const WRITES: [&str; 21] = [
    "CreateProvider",
    "UpdateProvider",
    "DeleteProvider",
    "ReplaceInventories",
    "CreateInventory",
    "UpdateInventory",
    "DeleteInventory",
    "DeleteInventories",
    "ReplaceProviderTraits",
    "DeleteProviderTraits",
    "ReplaceProviderAggregates",
    "EnsureTrait",
    "DeleteTrait",
    "CreateResourceClass",
    "EnsureResourceClass",
    "RenameResourceClass",
    "DeleteResourceClass",
    "ReplaceAllocations",
    "DeleteAllocations",
    "Reshape",
    "ReplaceLimits",
];
/// Error codes that must occur.
const CODES: [&str; 8] = [
    "placement.concurrent_update",
    "placement.duplicate_name",
    "placement.inventory.inuse",
    "placement.project.over_limit",
    "placement.resource_provider.cannot_delete_parent",
    "placement.resource_provider.inuse",
    "placement.resource_provider.not_found",
    "placement.undefined_code",
];

/// Fails unless every kind of request occurred, succeeded, and was refused if it can be.
fn everything_was_asked_for(reports: &[Report]) {
    let (mut done, mut refused, mut codes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let events = reports.iter().flat_map(|report| &report.history.events);
    for event in events {
        let Some(answer) = event.answer().filter(|answer| answer.status < 500) else {
            continue;
        };
        let kind = event.operation.kind();
        if answer.status < 300 {
            *done.entry(kind).or_insert(0) += 1;
        } else {
            *refused.entry(kind).or_insert(0) += 1;
            *codes.entry(answer.code().unwrap_or_default()).or_insert(0) += 1;
        }
    }
    say(format!(
        "answered well: {done:?}\nrefused: {refused:?}\ncodes: {codes:?}"
    ));
    let lacking = |there: &BTreeMap<&str, usize>, but: &[&str]| -> Vec<&str> {
        let all = WRITES.iter().chain(&QuestionKind::KINDS).copied();
        all.filter(|kind| !there.contains_key(kind) && !but.contains(kind))
            .collect()
    };
    assert_eq!(lacking(&done, &[]), Vec::<&str>::new(), "answered well");
    assert_eq!(
        lacking(&refused, &NEVER_REFUSED),
        Vec::<&str>::new(),
        "refused"
    );
    for code in CODES {
        assert!(
            codes.contains_key(code),
            "no request was refused with {code}"
        );
    }
}

/// Fails if something never happened in any seed.
fn everything_happened(reports: &[Report]) {
    let seen: BTreeSet<&str> = reports
        .iter()
        .flat_map(|report| report.kinds.iter().copied())
        .collect();
    // Only runs of mutants have this fault.
    let kinds = Fault::KINDS
        .iter()
        .copied()
        .filter(|kind| *kind != "learner");
    assert_eq!(seen, kinds.collect(), "a kind of fault never happened");
    let sum =
        |of: fn(&Counts) -> usize| -> usize { reports.iter().map(|one| of(&one.counts)).sum() };
    let runs = reports.len();
    let happens = |what, more_than: usize, of: fn(&Counts) -> usize| {
        let times = sum(of);
        assert!(times > more_than, "{what}: {times} times in {runs} runs");
    };
    happens("power cut loses bytes", 0, |c| {
        usize::from(c.lost_bytes > 0)
    });
    happens("election", runs, |counts| counts.elections);
    happens("outcome that is unknown at first", 0, |counts| {
        counts.resolved
    });
    happens("repeated request", 0, |counts| counts.repeated);
    happens("request without a quorum", 0, |counts| counts.unavailable);
    happens("write of a neighbour", runs, |counts| counts.neighbours);
    happens("event that is watched", 20 * runs, |counts| counts.events);
    happens("earlier moment that is read", runs, |counts| {
        counts.looked_back
    });
    happens("snapshot that is sent", 0, |counts| counts.snapshots);
    // Applied on at least three nodes, and again after crashes.
    let commits = sum(|counts| counts.commits);
    happens("applied command", 3 * commits, |counts| counts.applied);
    happens("bounded read", runs, |counts| counts.reads.bounded);
    // Many faults leave no quorum to answer them.
    happens("linearizable read in a fault", runs, |c| c.reads.in_faults);
    let several: usize = (reports.iter().flat_map(|one| &one.history.calls))
        .map(|call| usize::from(call.requests.len() > 1))
        .sum();
    assert!(
        several > runs,
        "our own client repeated requests only {several} times"
    );
    assert!(
        (reports.iter()).any(|one| one.parameters.clouds == Clouds::Second),
        "no run has its clients in the second partition and the other cloud in the default one"
    );
    let far_apart = reports.iter().filter_map(|one| {
        let regions = one.parameters.regions.as_ref()?;
        Some((one, regions.learners > 0 && one.parameters.nodes == 5))
    });
    let learners = far_apart.clone().filter(|(_, has_learners)| *has_learners);
    assert!(
        far_apart.count() >= reports.len() / 10,
        "too few runs span regions"
    );
    let answered_by_learners: usize = learners
        .map(|(one, _)| {
            let learners =
                one.parameters.nodes + 1..=one.parameters.nodes + one.parameters.learners();
            let events = one.history.events.iter();
            events
                .filter(|event| learners.contains(&event.node))
                .filter(|event| event.answer().is_some_and(|answer| answer.status < 500))
                .count()
        })
        .sum();
    assert!(
        answered_by_learners > 50,
        "learners in clusters with five voters answered only {answered_by_learners} times"
    );
    let (searched, skipped) = (sum(|counts| counts.searched), sum(|counts| counts.skipped));
    say(format!(
        "second opinions: {searched} consumers, {skipped} more had histories too long for one"
    ));
    assert!(
        skipped * 5 <= searched,
        "too few histories have a second opinion: {skipped} were too long, {searched} were not"
    );
}

#[test]
fn environment_numbers_are_parsed_or_refused() {
    assert_eq!(count("SEEDS", None, 40), Ok(40));
    assert_eq!(count("SEEDS", Some(" 7\n"), 40), Ok(7));
    let refused = count("SEEDS", Some("4O"), 40).unwrap_err();
    assert!(refused.contains("SEEDS is \"4O\""), "{refused}");
    let refused = count("SEEDS", Some("0"), 40).unwrap_err();
    assert!(refused.contains("nothing"), "{refused}");
    count("SEEDS", Some(""), 40).unwrap_err();
    count("SEEDS", Some("-1"), 40).unwrap_err();
    assert_eq!(number("FIRST", Some("0"), 1), Ok(0));
    number("FIRST", Some("one"), 1).unwrap_err();
}

#[test]
fn commits_have_distinct_fresh_seeds() {
    let (one, other) = (fresh("6791e26"), fresh("c40efff"));
    assert_eq!(one, fresh("6791e26"));
    assert!(one.0.abs_diff(other.0) > FRESH_MAX, "{one:?} {other:?}");
    assert!(one.0 > 1_000_000_000, "no fixed seed reaches {one:?}");
}
