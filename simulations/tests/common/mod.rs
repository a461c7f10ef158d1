//! Helpers for runs with explicit faults.

use std::time::Duration;

use placement_simulations::faults::Planned;
use placement_simulations::history::{Answer, Event};
use placement_simulations::operation::Operation;
use placement_simulations::parameters::Parameters;
use placement_simulations::report::Report;
use placement_simulations::run::run_with;

pub(crate) const fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Runs with these faults; asserts that there is no violation and that clients wrote.
pub(crate) fn run_without_violations(parameters: Parameters, faults: Vec<Planned>) -> Report {
    let report = std::thread::spawn(move || run_with(&parameters, None, faults))
        .join()
        .expect("a run reports its panics");
    let (violations, counts) = (&report.violations, report.counts);
    assert!(violations.is_empty(), "{violations:#?}\n{counts:?}");
    assert!(counts.commits > 50, "too few commits: {counts:?}");
    report
}

/// Answers of the selected nodes to requests sent and answered between two moments.
pub(crate) fn answered(
    report: &Report,
    from: Duration,
    to: Duration,
    is_meant: impl Fn(u64) -> bool,
) -> Vec<(&Event, &Answer)> {
    let events = report.history.events.iter();
    let within = events
        .filter(|event| event.sent >= from && is_meant(event.node))
        .filter(|event| event.ended.is_some_and(|ended| ended <= to));
    within
        .filter_map(|event| Some((event, event.answer()?)))
        .collect()
}

/// Number of answered writes among them with a status below 500.
pub(crate) fn written(
    report: &Report,
    from: Duration,
    to: Duration,
    is_meant: impl Fn(u64) -> bool,
) -> usize {
    let answered = answered(report, from, to, is_meant).into_iter();
    let written = answered.filter(|(event, answer)| is_write(event) && answer.status < 500);
    written.count()
}

pub(crate) fn is_write(event: &Event) -> bool {
    matches!(event.operation, Operation::Write(_))
}
