//! The promises that are held against logs and applied commands: what is right is accepted, what is
//! wrong is not, told in small stories written by hand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::time::Duration;

use placement_model::command::{CreateProvider, RequestId};
use placement_model::mutant::inject;
use placement_model::types::{PartitionId, ProviderName, ProviderUuid, Timestamp};
use placement_model::{Change, Changes, Command, Outcome, Reply, Stamped, State};
use placement_raft_store::Vote;
use placement_simulations::history::{Answer, End, History};
use placement_simulations::invariants::{
    Applied, Hint, Leadership, NAMES, Role, all, applied_never_falls, carried_out_once,
    commit_immutable, commit_on_a_quorum, committed_stays, equal_digest, generations_rise,
    indexes_agree, leader_completeness, log_is_kept, log_matching, no_503_without_a_fault, of_logs,
    one_change_of_members, one_command_per_write_id, one_committed_leader_per_term, own_vote,
    refusals_change_nothing, staleness, stamps_rise, votes_rise,
};
use placement_simulations::ledger::SharedLedger;
use placement_simulations::logs::{EntryId, Happened, Logs, Written};
use placement_simulations::operation::{Asked, Level, Operation, Token};
use uuid::Uuid;

/// What was found wrong.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn note(&mut self, promise: &str, found: Result<(), String>) {
        if let Err(wrong) = found {
            self.0.push(format!("{promise}: {wrong}"));
        }
    }

    fn is_right(&self) {
        assert_eq!(self.0, Vec::<String>::new());
    }

    fn breaks(&self, promise: &str) {
        assert!(NAMES.contains(&promise), "{promise}");
        let prefix = format!("{promise}: ");
        let found = self.0.iter().any(|wrong| wrong.starts_with(&prefix));
        assert!(found, "{promise}: {:#?}", self.0);
    }
}

/// The logs of some nodes, and what was found wrong with them.
#[derive(Default)]
struct Cluster {
    logs: Logs,
    invariants: Vec<Box<dyn placement_simulations::invariants::LogInvariant + Send>>,
    wrong: Wrong,
}

fn id(term: u64, leader: u64, index: u64) -> EntryId {
    EntryId {
        leader: (term, leader),
        index,
    }
}

fn entry(id: EntryId) -> Written {
    Written {
        id,
        digest: 1,
        voters: None,
        members: None,
    }
}

impl Cluster {
    /// Nodes 1, 2 and 3, with an entry at place 0 that says that they vote.
    fn of_three() -> Self {
        let mut cluster = Self {
            invariants: of_logs(),
            ..Self::default()
        };
        let members = Written {
            voters: Some(vec![BTreeSet::from([1, 2, 3])]),
            ..entry(id(0, 0, 0))
        };
        for node in 1..=3 {
            cluster.happens(node, Happened::Opened(None, Vec::new()));
            cluster.happens(node, Happened::Appended(members.clone()));
            cluster.happens(node, Happened::Synced(Some(members.id)));
        }
        cluster
    }

    /// A node that writes as a leader has voted for itself, unless it has voted for another since.
    fn happens(&mut self, node: u64, happened: Happened) {
        if let Happened::Appended(Written { id, .. }) = &happened
            && id.leader.1 == node
        {
            let own = Vote::new(id.leader.0, node);
            if self.logs.of(node).vote < Some(own) {
                self.notes(node, Happened::VoteSynced(own));
            }
        }
        self.notes(node, happened);
    }

    fn notes(&mut self, node: u64, happened: Happened) {
        let committed = self.logs.note(node, &happened);
        let hint = Hint {
            node,
            happened: &happened,
            committed,
        };
        for invariant in &mut self.invariants {
            let found = invariant.noted(&self.logs, &hint);
            self.wrong.note(invariant.name(), found);
        }
    }

    fn takes(&mut self, nodes: &[u64], id: EntryId) {
        for node in nodes {
            self.happens(*node, Happened::Appended(entry(id)));
            self.happens(*node, Happened::Synced(Some(id)));
        }
    }
}

#[test]
fn an_entry_that_a_majority_has_on_disk_may_be_committed() {
    let mut cluster = Cluster::of_three();
    cluster.takes(&[1, 2], id(1, 1, 1));
    cluster.happens(1, Happened::Committed(id(1, 1, 1)));
    cluster.takes(&[3], id(1, 1, 1));
    cluster.happens(3, Happened::Committed(id(1, 1, 1)));
    cluster.wrong.is_right();
}

#[test]
fn an_entry_that_a_minority_has_on_disk_may_not_be_committed() {
    let mut cluster = Cluster::of_three();
    cluster.takes(&[1], id(1, 1, 1));
    // Taken, but not synced.
    cluster.happens(2, Happened::Appended(entry(id(1, 1, 1))));
    cluster.happens(1, Happened::Committed(id(1, 1, 1)));
    cluster.wrong.breaks(commit_on_a_quorum::NAME);
}

#[test]
fn a_membership_differs_from_the_one_before_in_one_node() {
    let set = |cluster: &mut Cluster, index, members: &[(u64, bool)]| {
        let voters = members.iter().filter(|(_, votes)| *votes);
        let written = Written {
            voters: Some(vec![voters.map(|(node, _)| *node).collect()]),
            members: Some(members.iter().copied().collect()),
            ..entry(id(1, 1, index))
        };
        for node in 1..=3 {
            cluster.happens(node, Happened::Appended(written.clone()));
            cluster.happens(node, Happened::Synced(Some(written.id)));
        }
        cluster.happens(1, Happened::Committed(written.id));
    };
    let three = [(1, true), (2, true), (3, true)];
    let mut cluster = Cluster::of_three();
    set(&mut cluster, 1, &three);
    set(&mut cluster, 2, &[three.as_slice(), &[(4, false)]].concat());
    set(&mut cluster, 3, &[three.as_slice(), &[(4, true)]].concat());
    cluster.wrong.is_right();
    set(&mut cluster, 4, &[three.as_slice(), &[(5, false)]].concat());
    cluster.wrong.breaks(one_change_of_members::NAME);
}

#[test]
fn both_sets_of_voters_must_agree_while_they_change_and_learners_do_not_count() {
    let joint = |index| Written {
        voters: Some(vec![BTreeSet::from([1, 2, 3]), BTreeSet::from([3, 4, 5])]),
        ..entry(id(1, 1, index))
    };
    for (there, right) in [(vec![1, 2, 4, 5], true), (vec![1, 2, 4], false)] {
        let mut cluster = Cluster::of_three();
        for node in there {
            cluster.happens(node, Happened::Appended(joint(1)));
            cluster.happens(node, Happened::Synced(Some(id(1, 1, 1))));
        }
        cluster.happens(1, Happened::Committed(id(1, 1, 1)));
        if right {
            cluster.wrong.is_right();
        } else {
            cluster.wrong.breaks(commit_on_a_quorum::NAME);
        }
    }
    let mut cluster = Cluster::of_three();
    cluster.takes(&[1, 4, 5], id(1, 1, 1));
    cluster.happens(1, Happened::Committed(id(1, 1, 1)));
    cluster.wrong.breaks(commit_on_a_quorum::NAME);
}

#[test]
fn what_was_purged_is_in_the_state_and_counts() {
    let mut cluster = Cluster::of_three();
    cluster.happens(2, Happened::Purged(id(1, 1, 1)));
    cluster.takes(&[1], id(1, 1, 1));
    cluster.happens(1, Happened::Committed(id(1, 1, 1)));
    cluster.wrong.is_right();
}

#[test]
fn under_one_name_all_hold_the_same_entry_behind_the_same_one() {
    let mut cluster = Cluster::of_three();
    cluster.takes(&[1, 2], id(1, 1, 1));
    cluster.takes(&[2], id(2, 2, 2));
    cluster.wrong.is_right();
    // Node 1 has (2, 2, 2) too, but behind another entry.
    cluster.happens(1, Happened::Truncated(Some(id(0, 0, 0))));
    cluster.takes(&[1], id(1, 3, 1));
    cluster.takes(&[1], id(2, 2, 2));
    cluster.wrong.breaks(log_matching::NAME);

    let mut cluster = Cluster::of_three();
    cluster.takes(&[1], id(1, 1, 1));
    let other = Written {
        digest: 2,
        ..entry(id(1, 1, 1))
    };
    cluster.happens(2, Happened::Appended(other));
    cluster.wrong.breaks(log_matching::NAME);
}

#[test]
fn a_log_that_is_opened_with_what_was_truncated_behind_what_followed_does_not_match() {
    let mut cluster = Cluster::of_three();
    cluster.takes(&[1], id(1, 1, 1));
    cluster.takes(&[1], id(1, 1, 2));
    cluster.happens(1, Happened::Truncated(Some(id(0, 0, 0))));
    cluster.takes(&[1], id(2, 2, 1));
    let found = [id(0, 0, 0), id(2, 2, 1), id(1, 1, 2)];
    let found = found.into_iter().map(entry).collect();
    cluster.happens(1, Happened::Opened(None, found));
    cluster.wrong.breaks(log_matching::NAME);
}

#[test]
fn a_leader_begins_with_all_that_was_committed_before() {
    let mut cluster = Cluster::of_three();
    cluster.takes(&[1, 2], id(1, 1, 1));
    cluster.happens(1, Happened::Committed(id(1, 1, 1)));
    cluster.takes(&[2], id(2, 2, 2));
    cluster.wrong.is_right();
    cluster.takes(&[3], id(3, 3, 1));
    cluster.wrong.breaks(leader_completeness::NAME);

    // Nor may what a leader did not have become committed later.
    let mut cluster = Cluster::of_three();
    cluster.happens(1, Happened::Voted((1, 1)));
    cluster.takes(&[1, 2], id(1, 1, 1));
    cluster.takes(&[3], id(2, 3, 1));
    cluster.wrong.is_right();
    cluster.happens(1, Happened::Committed(id(1, 1, 1)));
    cluster.wrong.breaks(leader_completeness::NAME);
}

/// The Raft paper, figure 8: what was written in term 1 is committed in term 3, and the leader of term 2
/// did not have it.
#[test]
fn a_later_leader_commits_what_an_earlier_one_wrote() {
    let mut cluster = Cluster::of_three();
    cluster.happens(1, Happened::Voted((1, 1)));
    cluster.takes(&[1], id(1, 1, 1));
    cluster.takes(&[3], id(2, 3, 1));
    cluster.happens(1, Happened::Voted((3, 1)));
    cluster.takes(&[2], id(1, 1, 1));
    cluster.takes(&[1, 2], id(3, 1, 2));
    cluster.happens(1, Happened::Committed(id(3, 1, 2)));
    cluster.wrong.is_right();

    // Another node may tell of it first.
    let mut cluster = Cluster::of_three();
    cluster.takes(&[1], id(1, 1, 1));
    cluster.takes(&[3], id(2, 3, 1));
    cluster.takes(&[2], id(1, 1, 1));
    cluster.happens(1, Happened::Voted((3, 2)));
    cluster.takes(&[2], id(3, 2, 2));
    cluster.happens(1, Happened::Committed(id(1, 1, 1)));
    cluster.wrong.is_right();
}

#[test]
fn of_two_leaders_of_one_term_one_commits() {
    let mut cluster = Cluster::of_three();
    cluster.takes(&[1, 2], id(1, 1, 1));
    cluster.takes(&[3], id(1, 3, 1));
    cluster.happens(1, Happened::Committed(id(1, 1, 1)));
    cluster.takes(&[1, 2], id(1, 3, 2));
    cluster.happens(1, Happened::Committed(id(1, 3, 2)));
    cluster.wrong.breaks(one_committed_leader_per_term::NAME);
}

#[test]
fn what_is_committed_stays_at_its_place() {
    let mut cluster = Cluster::of_three();
    cluster.takes(&[1, 2], id(1, 1, 1));
    cluster.happens(1, Happened::Committed(id(1, 1, 1)));
    cluster.takes(&[3], id(2, 3, 1));
    cluster.happens(3, Happened::Committed(id(2, 3, 1)));
    cluster.wrong.breaks(committed_stays::NAME);
}

#[test]
fn what_is_committed_is_not_removed_for_another_leader() {
    let mut cluster = Cluster::of_three();
    cluster.takes(&[1, 2, 3], id(1, 1, 1));
    cluster.takes(&[2], id(1, 1, 2));
    cluster.happens(1, Happened::Committed(id(1, 1, 1)));
    cluster.happens(2, Happened::Truncated(Some(id(1, 1, 1))));
    cluster.wrong.is_right();
    cluster.happens(3, Happened::Truncated(Some(id(0, 0, 0))));
    cluster.wrong.breaks(committed_stays::NAME);
}

#[test]
fn votes_rise_on_the_disk_while_the_node_runs() {
    let mut cluster = Cluster::of_three();
    cluster.happens(1, Happened::VoteSynced(Vote::new(2, 3)));
    cluster.happens(1, Happened::VoteSynced(Vote::new_committed(2, 3)));
    cluster.happens(1, Happened::Opened(None, vec![entry(id(0, 0, 0))]));
    cluster.happens(1, Happened::VoteSynced(Vote::new(2, 1)));
    cluster.wrong.is_right();
    cluster.happens(1, Happened::VoteSynced(Vote::new(1, 3)));
    cluster.wrong.breaks(votes_rise::NAME);
}

#[test]
fn a_leader_has_its_vote_for_itself_on_disk_before_it_writes() {
    let mut cluster = Cluster::of_three();
    cluster.happens(1, Happened::VoteSynced(Vote::new(1, 1)));
    cluster.takes(&[1, 2], id(1, 1, 1));
    // Its own entries may come back to it from another leader.
    cluster.happens(1, Happened::VoteSynced(Vote::new_committed(2, 2)));
    cluster.happens(1, Happened::Truncated(Some(id(0, 0, 0))));
    cluster.takes(&[1], id(1, 1, 1));
    cluster.happens(1, Happened::VoteSynced(Vote::new(3, 2)));
    cluster.wrong.is_right();
    cluster.takes(&[1], id(3, 1, 2));
    cluster.wrong.breaks(own_vote::NAME);
}

#[test]
fn what_was_synced_is_there_when_the_log_is_opened_again() {
    let first = entry(id(0, 0, 0));
    let mut cluster = Cluster::of_three();
    cluster.takes(&[1], id(1, 1, 1));
    cluster.happens(1, Happened::Appended(entry(id(1, 1, 2))));
    let kept = vec![first.clone(), entry(id(1, 1, 1))];
    cluster.happens(1, Happened::Opened(None, kept));
    cluster.wrong.is_right();
    cluster.happens(1, Happened::Opened(None, vec![first]));
    cluster.wrong.breaks(log_is_kept::NAME);
}

/// A node that applies commands, and what was found wrong.
struct Node {
    invariants: Vec<Box<dyn placement_simulations::invariants::Invariant + Send>>,
    states: Vec<State>,
    wrong: Wrong,
}

fn request(sequence: u64, answered_below: u64) -> Option<RequestId> {
    Some(RequestId {
        origin: 1,
        boot: 1,
        sequence,
        answered_below,
    })
}

fn create(name: &str, at: i64, request: Option<RequestId>) -> Stamped {
    let uuid = ProviderUuid(Uuid::from_u128(name.bytes().map(u128::from).sum()));
    Stamped {
        partition: PartitionId::DEFAULT,
        routes: 0,
        at: Timestamp(at),
        request,
        command: Command::CreateProvider(CreateProvider {
            uuid,
            name: ProviderName::try_from(name.to_owned()).unwrap(),
            parent: None,
        }),
    }
}

impl Node {
    fn new() -> Self {
        Self {
            invariants: all(),
            states: vec![State::default(); 4],
            wrong: Wrong::default(),
        }
    }

    /// Node `node` applies a command, as the rules say.
    fn applies(&mut self, node: u64, index: u64, stamped: &Stamped) {
        let (outcome, changes) =
            placement_model::apply(&self.states[usize::try_from(node).unwrap()], stamped);
        self.decides(node, index, stamped, &outcome, &changes);
    }

    /// Node `node` applies a command, as is said.
    fn decides(
        &mut self,
        node: u64,
        index: u64,
        stamped: &Stamped,
        outcome: &Outcome,
        changes: &Changes,
    ) {
        let state = &mut self.states[usize::try_from(node).unwrap()];
        let before = state.clone();
        state.commit(changes);
        let applied = Applied {
            node,
            start: 1,
            index,
            partition: PartitionId::DEFAULT,
            before: &before,
            after: state,
            digest: state.digest(),
            stamped,
            outcome,
            changes,
        };
        for invariant in &mut self.invariants {
            let found = invariant.applied(&applied);
            self.wrong.note(invariant.name(), found);
        }
    }
}

#[test]
fn commands_that_are_applied_in_their_order_on_all_nodes_are_right() {
    let mut node = Node::new();
    for who in 1..=3 {
        node.applies(who, 1, &create("a", 10, request(0, 0)));
        node.applies(who, 2, &create("b", 11, request(1, 1)));
        // Refused, and repeated.
        node.applies(who, 3, &create("b", 12, request(2, 2)));
        node.applies(who, 4, &create("b", 13, request(2, 2)));
    }
    node.wrong.is_right();
}

#[test]
fn an_entry_is_applied_once_in_each_start() {
    let mut node = Node::new();
    node.applies(1, 1, &create("a", 10, None));
    node.applies(1, 2, &create("b", 11, None));
    node.applies(1, 2, &create("c", 11, None));
    node.wrong.breaks(applied_never_falls::NAME);
    node.wrong.breaks(commit_immutable::NAME);
}

#[test]
fn two_nodes_that_come_to_other_states_have_other_digests() {
    let mut node = Node::new();
    let stamped = create("a", 10, None);
    node.applies(1, 1, &stamped);
    node.decides(2, 1, &stamped, &Outcome::Done(Reply::Done), &Vec::new());
    node.wrong.breaks(equal_digest::NAME);
}

#[test]
fn stamps_that_stand_still_are_wrong() {
    let mut node = Node::new();
    node.applies(1, 1, &create("a", 10, None));
    node.applies(1, 2, &create("b", 10, None));
    node.wrong.breaks(stamps_rise::NAME);
}

#[test]
fn a_write_id_that_comes_back_with_another_command_is_wrong() {
    let mut node = Node::new();
    node.applies(1, 1, &create("a", 10, request(0, 0)));
    node.applies(1, 2, &create("b", 11, request(0, 0)));
    node.wrong.breaks(one_command_per_write_id::NAME);

    let mut node = Node::new();
    node.applies(1, 1, &create("a", 10, request(0, 1)));
    node.wrong.breaks(one_command_per_write_id::NAME);
}

#[test]
fn a_repeated_write_changes_nothing_and_gets_the_first_answer() {
    let first = create("a", 10, request(0, 0));
    let again = create("a", 11, request(0, 0));
    let outcomes = [
        (Outcome::AnsweredBefore, Vec::new()),
        (Outcome::Done(Reply::Done), Vec::new()),
    ];
    for (outcome, changes) in outcomes {
        let mut node = Node::new();
        node.applies(1, 1, &first);
        node.decides(1, 2, &again, &outcome, &changes);
        node.wrong.breaks(carried_out_once::NAME);
    }
    let mut node = Node::new();
    node.applies(1, 1, &first);
    let (outcome, _) = placement_model::apply(&State::default(), &first);
    let state = &node.states[1];
    let class = state
        .rows()
        .find(|row| matches!(row, Change::PutProvider(..)));
    node.decides(1, 2, &again, &outcome, &class.into_iter().collect());
    node.wrong.breaks(carried_out_once::NAME);
    // Never decided, and called answered.
    let mut node = Node::new();
    node.decides(1, 1, &first, &Outcome::AnsweredBefore, &Vec::new());
    node.wrong.breaks(carried_out_once::NAME);
}

#[test]
fn a_refusal_that_leaves_something_is_wrong() {
    let mut node = Node::new();
    node.applies(1, 1, &create("a", 10, None));
    let (outcome, _) = placement_model::apply(&node.states[1], &create("a", 11, None));
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    let other = create("b", 11, None);
    let (_, changes) = placement_model::apply(&node.states[1], &other);
    node.decides(1, 2, &create("a", 11, None), &outcome, &changes);
    node.wrong.breaks(refusals_change_nothing::NAME);
}

#[test]
fn a_generation_that_falls_is_wrong() {
    let mut node = Node::new();
    node.applies(1, 1, &create("a", 10, None));
    let row = node.states[1].rows().find_map(|row| match row {
        Change::PutProvider(id, mut row) => {
            row.generation.0 -= 1;
            Some(Change::PutProvider(id, row))
        }
        _ => None,
    });
    let changes = row.into_iter().collect();
    let done = Outcome::Done(Reply::Done);
    node.decides(1, 2, &create("a", 11, None), &done, &changes);
    node.wrong.breaks(generations_rise::NAME);
}

#[test]
fn stale_indexes_are_noticed_when_a_node_goes_on() {
    use placement_simulations::invariants::Invariant;

    let row = |state: &State| {
        let rows = state.rows().map(|row| match row {
            Change::PutProvider(id, _) => vec![
                row.clone(),
                Change::PutProviderAggregates(id, ["aggregate".into()].into()),
            ],
            row => vec![row],
        });
        rows.flatten().collect::<Vec<_>>()
    };
    let stamped = create("a", 10, None);
    let mut state = State::default();
    state.commit(&placement_model::apply(&state, &stamped).1);
    let mut state = State::load(row(&state)).unwrap();
    let looked = |state: &State| {
        indexes_agree::IndexesAgree::default().applied(&Applied {
            node: 1,
            start: 1,
            index: 7,
            partition: PartitionId::DEFAULT,
            before: state,
            after: state,
            digest: state.digest(),
            stamped: &stamped,
            outcome: &Outcome::Done(Reply::Done),
            changes: &Vec::new(),
        })
    };
    looked(&state).unwrap();
    let renamed = state.rows().find_map(|row| match row {
        Change::PutProvider(id, mut row) => {
            row.name = ProviderName::try_from("b".to_owned()).unwrap();
            Some(Change::PutProvider(id, row))
        }
        _ => None,
    });
    let _injection = inject("name-stays-found");
    state.commit(&[renamed.unwrap()]);
    looked(&state).unwrap_err();
}

#[test]
fn readers_never_see_less_than_before() {
    let role = |start, applied| Role {
        node: 1,
        start,
        vote: Vote::new(1, 1),
        leads: false,
        applied: Some(applied),
    };
    let mut leadership = Leadership::default();
    leadership.observe(role(1, 7)).unwrap();
    leadership.observe(role(2, 5)).unwrap();
    let wrong = leadership.observe(role(2, 4)).unwrap_err();
    assert!(wrong.starts_with(applied_never_falls::NAME), "{wrong}");
}

fn answered(history: &mut History, span: (u64, u64), status: u16, index: u64, age: Option<u64>) {
    let (sent, ended) = (Duration::from_millis(span.0), Duration::from_millis(span.1));
    let operation = Operation::Read(Asked::Allocations(Uuid::nil()).newest(), Level::Local);
    let event = history.begin(0, 1, operation, sent);
    let answer = Answer {
        status,
        index: Some(Token { epoch: 1, index }),
        node: Some(1),
        known_leader: None,
        staleness: age.map(Duration::from_millis),
        effective: None,
        body: String::new(),
    };
    history.end(event, ended, End::Answer(answer));
}

#[test]
fn an_answer_is_not_older_than_it_says() {
    for (age, right) in [(500, true), (300, false)] {
        let mut history = History::default();
        answered(&mut history, (10, 600), 200, 9, None);
        answered(&mut history, (1000, 1010), 200, 8, Some(age));
        let wrong = staleness::check(&history);
        assert_eq!(wrong.is_empty(), right, "{wrong:?}");
        assert!(wrong.iter().all(|one| one.starts_with(staleness::NAME)));
    }
}

#[test]
fn nobody_is_turned_away_in_the_calm() {
    let mut history = History::default();
    answered(&mut history, (10, 20), 503, 1, None);
    answered(&mut history, (30, 40), 200, 1, None);
    let since = |ms| Some(Duration::from_millis(ms));
    assert_eq!(no_503_without_a_fault::check(&history, None).len(), 0);
    assert_eq!(no_503_without_a_fault::check(&history, since(25)).len(), 0);
    let wrong = no_503_without_a_fault::check(&history, since(5));
    assert!(
        wrong[0].starts_with(no_503_without_a_fault::NAME),
        "{wrong:?}"
    );
}

#[test]
fn what_was_found_before_a_check_panicked_is_told() {
    let ledger = SharedLedger::new();
    let checking = ledger.clone();
    let check = std::thread::spawn(move || {
        let mut held = checking.lock();
        held.violations.push("before".to_owned());
        panic!("a check that cannot go on");
    });
    assert!(check.join().is_err());
    assert_eq!(ledger.lock().violations, ["before"]);
}
