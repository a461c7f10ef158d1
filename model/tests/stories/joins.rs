//! Joining of nodes with tokens.

use placement_model::command::{
    Command, IssueJoinToken, RedeemJoinToken, RetireNode, RevokeJoinToken, SetReplacement,
};
use placement_model::state::change::Replaced;
use placement_model::types::Timestamp;
use placement_model::{Outcome, Reply, State, apply};
use placement_naive::stamped;

/// One second, in microseconds.
const SECOND: i64 = 1_000_000;

fn carry_out(state: &mut State, seconds: i64, command: Command) {
    let stamped = stamped(Timestamp(seconds * SECOND), None, command);
    let (outcome, changes) = apply(state, &stamped);
    assert_eq!(outcome, Outcome::Done(Reply::Done));
    state.commit(&changes);
    assert!(state.agrees_with_recount());
}

fn issue(token: &str, replaces: Option<Replaced>) -> Command {
    Command::IssueJoinToken(IssueJoinToken {
        token: token.to_owned(),
        seconds: 100,
        above: 3,
        replaces,
        expires_at: Timestamp::default(),
    })
}

fn redeem(node: u64, token: &str, nonce: &str) -> Command {
    Command::RedeemJoinToken(RedeemJoinToken {
        node,
        token: token.to_owned(),
        nonce: nonce.to_owned(),
    })
}

fn replaced(node: u64) -> Replaced {
    Replaced {
        node,
        name: String::new(),
        votes: true,
        stays: false,
        though_reachable: false,
    }
}

fn nonce(state: &State, node: u64) -> Option<&str> {
    state.join(node).unwrap().nonce.as_deref()
}

#[test]
fn token_admits_one_node_and_repeats_its_answer() {
    let mut state = State::default();
    carry_out(&mut state, 0, issue("a", None));
    carry_out(&mut state, 1, redeem(4, "b", "thief"));
    assert_eq!(nonce(&state, 4), None);
    carry_out(&mut state, 2, redeem(4, "a", "first"));
    carry_out(&mut state, 3, redeem(4, "a", "second"));
    assert_eq!(nonce(&state, 4), Some("first"));
    carry_out(&mut state, 4, redeem(4, "a", "first"));
    assert_eq!(nonce(&state, 4), Some("first"));
}

#[test]
fn an_expired_or_revoked_token_admits_no_node() {
    let mut state = State::default();
    carry_out(&mut state, 0, issue("late", None));
    carry_out(&mut state, 0, issue("revoked", None));
    let revoke = Command::RevokeJoinToken(RevokeJoinToken { node: 5 });
    carry_out(&mut state, 1, revoke);
    carry_out(&mut state, 1, redeem(5, "revoked", "n"));
    carry_out(&mut state, 101, redeem(4, "late", "n"));
    assert_eq!((nonce(&state, 4), nonce(&state, 5)), (None, None));
}

#[test]
fn node_numbers_are_never_reused() {
    let mut state = State::default();
    carry_out(&mut state, 0, issue("a", None));
    carry_out(&mut state, 0, issue("b", None));
    assert!(state.join(4).is_some() && state.join(5).is_some());
    // All tokens have expired by now, and their rows are deleted.
    carry_out(&mut state, 200, issue("c", None));
    assert_eq!(state.joins().map(|(node, _)| node).collect::<Vec<_>>(), [6]);
    let retired = Command::RetireNode(RetireNode { node: 9 });
    carry_out(&mut state, 201, retired);
    carry_out(&mut state, 202, issue("d", None));
    assert_eq!(state.last_node(), 10);
    assert!(state.join(10).is_some());
    // A command that is proposed twice reserves one number.
    carry_out(&mut state, 203, issue("d", None));
    assert_eq!(state.last_node(), 10);
}

#[test]
fn node_is_replaced_by_one_node() {
    let set = |by, replaces| Command::SetReplacement(SetReplacement { by, replaces });
    let mut state = State::default();
    carry_out(&mut state, 0, issue("a", Some(replaced(2))));
    carry_out(&mut state, 1, set(7, Some(replaced(2))));
    assert_eq!(state.join(7), None, "node 4 already replaces it");
    carry_out(&mut state, 2, set(7, Some(replaced(3))));
    carry_out(&mut state, 3, set(7, Some(replaced(1))));
    let taken = |state: &State, by| {
        let row = state.join(by).unwrap();
        row.replaces.as_ref().map(|replaced| replaced.node)
    };
    assert_eq!(taken(&state, 7), Some(3), "a node replaces only one node");
    carry_out(&mut state, 4, set(7, None));
    assert_eq!(taken(&state, 7), None);
    // A token can no longer be redeemed once its replacement is cancelled.
    carry_out(&mut state, 5, set(4, None));
    carry_out(&mut state, 6, redeem(4, "a", "n"));
    assert_eq!(nonce(&state, 4), Some(""));
}
