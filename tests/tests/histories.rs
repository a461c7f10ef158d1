//! Checks the histories of real processes under faults with the witness of the simulations, for a
//! short time; `scripts/torture --minutes` does so for longer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use placement_tests::histories::{Fault, KeptLog, Round, RoundResult, judge};
use placement_witness::history::{Answer, End, History};
use placement_witness::operation::{Level, Operation};
use placement_witness::promise;

const SHORT: Duration = Duration::from_millis(1_500);

async fn course(seed: u64, nodes: u64, encrypted: bool, faults: &[Fault]) -> RoundResult {
    let round = Round {
        seed,
        nodes,
        encrypted,
        script: faults.iter().map(|fault| (*fault, SHORT)).collect(),
        fault_phase: Duration::ZERO,
    };
    let course = round.run(|line| eprintln!("{line}")).await.unwrap();
    let RoundResult {
        history,
        log,
        verdict,
        kept,
        ..
    } = &course;
    eprintln!(
        "{} requests, {} entries by {} leaders, {} answers compared, {} writes without an answer found, \
         {} consumers searched",
        history.events.len(),
        log.entries(),
        log.leaders(),
        verdict.compared,
        verdict.resolved,
        verdict.searched
    );
    assert!(
        verdict.violations.is_empty(),
        "seed {seed}, kept in {kept:?}: {}",
        verdict.violations.join("\n")
    );
    assert!(verdict.compared > 300, "only {} answers", verdict.compared);
    assert!(log.leaders() > 1, "no election");
    course
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_under_faults_match_the_log_and_wrong_answers_are_detected() {
    let course = course(
        1,
        3,
        false,
        &[
            Fault::KillLeader,
            Fault::CutOffLeader,
            Fault::PauseLeader,
            Fault::LoseAllPower,
            Fault::Transfer,
            Fault::Replace,
            Fault::Restart,
        ],
    )
    .await;
    lies(&course.history, &course.log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_processes_over_tls_lose_and_regain_their_majority() {
    let faults = [
        Fault::KillMajority,
        Fault::CutInHalves,
        Fault::PauseMajority,
        Fault::KillLeader,
        Fault::KillAll,
    ];
    course(2, 5, true, &faults).await;
}

/// A single wrong answer to a client, or a single change in the log, is detected and named.
fn lies(history: &History, log: &KeptLog) {
    let found = |history: &History, log: &KeptLog, name: &str| {
        let violations = judge(history, log).violations;
        let named = violations.iter().any(|one| one.starts_with(name));
        assert!(named, "{name} is not among {violations:#?}");
    };
    let late = history.events.len() / 2;
    let acknowledged = |operation: &Operation, answer: &Answer| {
        let is_write = matches!(operation, Operation::Write(_));
        is_write && [200, 201, 204].contains(&answer.status) && answer.index.is_some()
    };

    // An acknowledged write is dropped from the log.
    let (_, place) = find(history, late, acknowledged);
    let mut lost = log.clone();
    lost.commands.remove(&place);
    found(history, &lost, promise::ACKNOWLEDGED_IS_THERE);

    // A write was answered as refused and applied, or the other way round.
    let mut lied = history.clone();
    let (number, _) = find(history, late, acknowledged);
    answer(&mut lied, number).status = 409;
    found(&lied, log, promise::ANSWERS_FOLLOW);

    // A read shows an allocation that does not exist.
    let shows = |operation: &Operation, answer: &Answer| {
        let is_read = matches!(operation, Operation::Read(..));
        is_read && answer.status == 200 && answer.body.contains("\"VCPU\":1}")
    };
    let mut lied = history.clone();
    let (number, _) = find(history, 0, shows);
    let body = &mut answer(&mut lied, number).body;
    *body = body.replacen("\"VCPU\":1}", "\"VCPU\":2}", 1);
    found(&lied, log, promise::ANSWERS_FOLLOW);

    // A linearizable read is answered from an old state. The content may be the same as now.
    let linearizable = |operation: &Operation, answer: &Answer| {
        let is_read = matches!(operation, Operation::Read(_, Level::Linearizable));
        is_read && answer.status == 200
    };
    let mut lied = history.clone();
    let (number, _) = find(history, late, linearizable);
    let answer = answer(&mut lied, number);
    answer.index.as_mut().unwrap().index /= 2;
    found(&lied, log, promise::LINEARIZABLE);
}

/// The first event from `from` on whose answer matches, and its position in the log.
fn find(
    history: &History,
    from: usize,
    wanted: impl Fn(&Operation, &Answer) -> bool,
) -> (usize, u64) {
    let mut events = history.events.iter().enumerate().skip(from);
    let found = events.find_map(|(number, event)| {
        let answer = event.answer()?;
        wanted(&event.operation, answer).then_some((number, answer.index?.index))
    });
    found.expect("the fault phase is long enough for one")
}

fn answer(history: &mut History, number: usize) -> &mut Answer {
    match &mut history.events[number].end {
        End::Answer(answer) => answer,
        _ => panic!("it was found by its answer"),
    }
}
