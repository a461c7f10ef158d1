//! Retries of write requests.

use placement_model::command::{Command, DeleteProvider, RetireNode, SyncStandards, WriteId};
use placement_model::outcome::Outcome;
use placement_model::state::change::Change;

use crate::cloud::{Cloud, provider, wanted};

fn id(boot: u64, sequence: u64, answered_below: u64) -> Option<WriteId> {
    Some(WriteId {
        origin: 1,
        boot,
        sequence,
        answered_below,
    })
}

fn outcomes(cloud: &Cloud) -> usize {
    cloud
        .state
        .rows()
        .filter(|row| matches!(row, Change::PutOutcome(..)))
        .count()
}

fn cloud() -> Cloud {
    let mut cloud = Cloud::new();
    cloud.host("cn1", &[("VCPU", 8)]);
    cloud
}

fn claim() -> Command {
    wanted("vm", &[("cn1", &[("VCPU", 1)])]).put()
}

#[test]
fn answered_outcomes_are_forgotten_but_their_retries_are_recognized() {
    let mut cloud = cloud();
    for sequence in 1..=20 {
        cloud.try_request(id(1, sequence, sequence.saturating_sub(3)), claim());
    }
    assert_eq!(outcomes(&cloud), 4);
    assert_eq!(
        cloud.try_request(id(1, 3, 1), claim()),
        Outcome::AnsweredBefore
    );
    assert!(matches!(
        cloud.try_request(id(1, 18, 1), claim()),
        Outcome::Refused(_)
    ));
}

#[test]
fn newer_boot_restarts_sequences_and_older_boot_is_rejected() {
    let mut cloud = cloud();
    cloud.try_request(id(1, 9, 5), claim());
    let again = cloud.try_request(id(2, 1, 1), claim());
    assert!(
        matches!(again, Outcome::Refused(_)),
        "a lower sequence of a newer boot is a new write"
    );
    assert_eq!(outcomes(&cloud), 1);
    assert_eq!(
        cloud.try_request(id(1, 10, 5), claim()),
        Outcome::AnsweredBefore
    );
}

#[test]
fn outcomes_per_node_are_bounded() {
    let mut cloud = Cloud::new();
    let command = Command::DeleteProvider(DeleteProvider {
        uuid: provider("unknown"),
    });
    for sequence in 1..=17_000 {
        cloud.try_request(id(1, sequence, 0), command.clone());
    }
    assert_eq!(outcomes(&cloud), 16_384);
    assert_eq!(
        cloud.try_request(id(1, 1, 0), command),
        Outcome::AnsweredBefore
    );
}

fn retire(node: u64) -> Command {
    Command::RetireNode(RetireNode { node })
}

#[test]
fn commands_of_a_removed_node_are_not_applied() {
    let mut cloud = cloud();
    cloud.try_request(id(1, 1, 1), claim());
    cloud.done(retire(1));
    assert!(cloud.state.is_retired(1));
    assert_eq!(outcomes(&cloud), 0);
    let digest = cloud.digest();
    for late in [id(1, 1, 1), id(1, 2, 1), id(2, 1, 1), id(u64::MAX, 1, 0)] {
        assert_eq!(cloud.try_request(late, claim()), Outcome::AnsweredBefore);
    }
    cloud.done(retire(1));
    assert_eq!(cloud.digest(), digest, "a second removal changes nothing");
}

/// In the first log format, a write with the boot `u64::MAX` removes its node.
#[test]
fn removal_in_the_first_log_format_is_effective() {
    let mut cloud = cloud();
    let nothing = Command::SyncStandards(SyncStandards {
        resource_classes: Vec::new(),
        traits: std::collections::BTreeSet::new(),
    });
    cloud.try_request(id(u64::MAX, 0, 0), nothing);
    assert!(cloud.state.is_retired(1));
    let late = cloud.try_request(id(3, 1, 1), claim());
    assert_eq!(late, Outcome::AnsweredBefore);
}
