//! Small handwritten histories for invariants and checks that no mutant covers (`tests/mutants.rs`
//! has the others): correct histories are accepted and wrong ones are not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use placement_model::Stamped;
use placement_model::command::{
    CapacityRule, Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate,
    CreateProvider, DeleteAllocations, EnsureTrait, ProviderAmounts, ReplaceAllocations,
    ReplaceInventories, SyncStandards, WriteId,
};
use placement_model::types::{Generation, Inventory, PartitionId, ProviderUuid, Timestamp};
use placement_raft_store::Vote;
use placement_simulations::history::{Answer, ChangeLogRange, End, History};
use placement_simulations::invariants::members_change_as_ordered::{self, Change, OrderedChanges};
use placement_simulations::invariants::{
    Leadership, LogInvariant, LogObservation, Role, applied_never_falls, commit_on_a_quorum,
    from_history, log_invariants, votes_rise,
};
use placement_simulations::ledger::SharedLedger;
use placement_simulations::logs::{EntryId, LogChange, Logs, WrittenEntry};
use placement_simulations::operation::{Level, Operation, QuestionKind, Token, Write};
use placement_simulations::witness::Finding;
use placement_simulations::{wgl, witness};
use uuid::Uuid;

/// Voters 1, 2 and 3, and the violations in their logs.
struct Cluster {
    logs: Logs,
    ordered: OrderedChanges,
    invariants: Vec<Box<dyn LogInvariant + Send>>,
    wrong: Vec<String>,
}

impl Cluster {
    fn new() -> Self {
        let ordered = OrderedChanges::default();
        let mut cluster = Self {
            logs: Logs::default(),
            invariants: log_invariants(&ordered),
            ordered,
            wrong: Vec::new(),
        };
        for node in 1..=3 {
            cluster.notes(node, LogChange::Opened(None, Vec::new()));
            cluster.notes(node, LogChange::VoteSynced(Vote::new(1, 1)));
        }
        let three = [1, 2, 3].map(|node| (node, true));
        cluster.takes(&[1, 2, 3], &members(0, &three));
        cluster
    }

    fn notes(&mut self, node: u64, happened: LogChange) {
        let committed = self.logs.note(node, &happened);
        let hint = LogObservation {
            node,
            happened: &happened,
            committed,
        };
        for invariant in &mut self.invariants {
            if let Err(wrong) = invariant.check_change(&self.logs, &hint) {
                self.wrong.push(format!("{}: {wrong}", invariant.name()));
            }
        }
    }

    fn takes(&mut self, nodes: &[u64], written: &WrittenEntry) {
        for node in nodes {
            self.notes(*node, LogChange::Appended(written.clone()));
            self.notes(*node, LogChange::Synced(Some(written.id)));
        }
    }

    fn breaks(&self, promise: &str) -> bool {
        let is_it = |wrong: &String| wrong.starts_with(&format!("{promise}: "));
        self.wrong.iter().any(is_it)
    }
}

/// A membership entry of node 1; each member is paired with whether it is a voter.
fn members(index: u64, members: &[(u64, bool)]) -> WrittenEntry {
    let voters = members.iter().filter(|(_, votes)| *votes);
    WrittenEntry {
        id: EntryId {
            leader: (1, 1),
            index,
        },
        digest: 1,
        voters: Some(vec![voters.map(|(node, _)| *node).collect()]),
        members: Some(members.iter().copied().collect()),
    }
}

#[test]
fn membership_changes_one_node_at_a_time_as_ordered() {
    let three = [(1, true), (2, true), (3, true)];
    let (learner, voter, other) = ((4, false), (4, true), (5, false));
    for (last, right) in [
        (vec![voter, other], true),
        (vec![other], false),
        (vec![learner], false),
    ] {
        let mut cluster = Cluster::new();
        let joins = [(4, Change::Joins), (5, Change::Joins)];
        let votes = [(4, Change::GetsVote), (4, Change::LosesVote)];
        cluster.ordered.begin(&[joins, votes].concat());
        cluster.ordered.end(&votes[1..]);
        for (index, more) in (1..).zip([vec![], vec![learner], vec![voter], last]) {
            assert_eq!(cluster.wrong, Vec::<String>::new());
            let written = members(index, &[three.to_vec(), more].concat());
            cluster.takes(&[1, 2, 3], &written);
            cluster.notes(1, LogChange::Committed(written.id));
        }
        assert_ne!(cluster.breaks(members_change_as_ordered::NAME), right);
    }
}

#[test]
fn joint_membership_commits_on_a_majority_of_both_sets() {
    for (there, right) in [(vec![1, 2, 4, 5], true), (vec![1, 2, 4], false)] {
        let mut cluster = Cluster::new();
        let joint = WrittenEntry {
            voters: Some(vec![BTreeSet::from([1, 2, 3]), BTreeSet::from([3, 4, 5])]),
            members: None,
            ..members(1, &[])
        };
        cluster.takes(&there, &joint);
        cluster.notes(1, LogChange::Committed(joint.id));
        assert_eq!(cluster.wrong.is_empty(), right, "{:?}", cluster.wrong);
        assert_ne!(cluster.breaks(commit_on_a_quorum::NAME), right);
    }
}

/// Checks a sequence of roles that node 1 reports.
fn observed(roles: &[(u64, Vote, u64)]) -> Result<(), String> {
    let mut leadership = Leadership::default();
    roles.iter().try_for_each(|(start, vote, applied)| {
        leadership.observe(Role {
            node: 1,
            start: *start,
            vote: *vote,
            leads: false,
            applied: Some(*applied),
        })
    })
}

#[test]
fn vote_does_not_fall_while_a_node_runs() {
    let (low, high) = (Vote::new(3, 2), Vote::new(3, 4));
    let granted = Vote::new_committed(3, 2);
    for (before, after) in [(low, Vote::new(2, 3)), (high, low), (granted, low)] {
        let wrong = observed(&[(1, before, 0), (1, after, 0)]).unwrap_err();
        assert!(wrong.contains(votes_rise::NAME), "{wrong}");
    }
    observed(&[(1, low, 0), (1, granted, 0), (1, high, 0)]).unwrap();
}

#[test]
fn readers_do_not_see_less_than_before_within_one_start() {
    let vote = Vote::new(1, 1);
    observed(&[(1, vote, 7), (2, vote, 5)]).unwrap();
    let wrong = observed(&[(2, vote, 5), (2, vote, 4)]).unwrap_err();
    assert!(wrong.starts_with(applied_never_falls::NAME), "{wrong}");
}

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn happens(history: &mut History, (sent, ended): (u64, u64), operation: Operation, end: End) {
    let event = history.begin(0, 1, operation, ms(sent));
    history.end(event, ms(ended), end);
}

fn answer(status: u16, index: u64, body: &str) -> End {
    End::Answer(Answer {
        status,
        index: Some(Token { epoch: 1, index }),
        node: Some(1),
        known_leader: Some(1),
        staleness: None,
        effective: Some("linearizable".to_owned()),
        body: body.to_owned(),
    })
}

fn lost() -> End {
    End::Lost("no answer in time".to_owned())
}

/// The second checker (`wgl`) does not use log indexes.
#[test]
fn stale_read_of_a_consumer_is_not_linearizable() {
    const ALICE: Uuid = Uuid::from_u128(0xb);
    let claim = ConsumerAllocations {
        consumer: ALICE.to_string().into(),
        allocations: Vec::new(),
        project: "red".into(),
        user: "u1".into(),
        generation: ConsumerGeneration::New,
        consumer_type: ConsumerTypeUpdate::Keep,
    };
    let read = || {
        Operation::Read(
            QuestionKind::Allocations(ALICE).newest(),
            Level::Linearizable,
        )
    };
    let held = r#"{"consumer_generation":1,"user_id":"u1"}"#;
    let linearizable = |sent, body| {
        let mut history = History::default();
        let mut claim = claim.clone();
        claim
            .allocations
            .push(placement_model::command::ProviderAmounts {
                provider: Uuid::from_u128(0xa).to_string().into(),
                resources: BTreeMap::from([("VCPU".into(), 1)]),
            });
        let command = Command::ReplaceAllocations(ReplaceAllocations {
            consumers: vec![claim],
        });
        let write = Operation::Write(Write {
            command,
            minor: 39,
            request_id: None,
        });
        happens(&mut history, (10, 20), write, answer(204, 5, ""));
        happens(&mut history, (sent, 40), read(), answer(200, 5, body));
        wgl::check(&history, &Finding::default())
            .violations
            .is_empty()
    };
    assert!(linearizable(30, held));
    assert!(linearizable(15, "{}"), "the read overlaps the write");
    assert!(!linearizable(30, "{}"));
}

/// A log of identical writes, and the history of the clients that sent them.
#[derive(Default)]
struct Alike {
    history: History,
    log: BTreeMap<u64, Stamped>,
}

impl Alike {
    fn write() -> Write {
        let name = "CUSTOM_X".parse().unwrap();
        Write {
            command: Command::EnsureTrait(EnsureTrait { name }),
            minor: 39,
            request_id: None,
        }
    }

    fn committed(&mut self, index: u64, sequence: u64) {
        let stamped = Stamped {
            partition: PartitionId::DEFAULT,
            routes: 0,
            at: Timestamp(0),
            write_id: Some(WriteId {
                origin: 1,
                boot: 1,
                sequence,
                answered_below: 0,
            }),
            command: Self::write().command,
            request_id: None,
        };
        self.log.insert(index, stamped);
    }

    fn asked(&mut self, span: (u64, u64), end: End) {
        happens(
            &mut self.history,
            span,
            Operation::Write(Self::write()),
            end,
        );
    }

    fn wrong(&self) -> Vec<String> {
        witness::check(&self.history, &self.log).violations
    }
}

#[test]
fn log_entry_answers_one_request_only() {
    let mut alike = Alike::default();
    alike.committed(1, 1);
    alike.committed(2, 2);
    alike.asked((10, 20), answer(201, 1, ""));
    alike.asked((30, 40), answer(204, 2, ""));
    assert_eq!(alike.wrong(), Vec::<String>::new());
    alike.asked((31, 41), answer(204, 2, ""));
    assert!(alike.wrong()[0].contains("answers two requests"));
}

#[test]
fn identical_unanswered_writes_match_the_log_in_the_order_of_sending() {
    let mut alike = Alike::default();
    alike.committed(1, 1);
    alike.asked((10, 20), answer(201, 1, ""));
    alike.asked((25, 30), lost());
    alike.asked((50, 55), lost());
    for index in 2..=3 {
        alike.committed(index, index);
        let name = QuestionKind::Trait("CUSTOM_X".to_owned()).newest();
        let read = Operation::Read(name, Level::Default);
        let span = [(40, 45), (60, 65)][usize::try_from(index - 2).unwrap()];
        happens(&mut alike.history, span, read, answer(204, index, ""));
        assert_eq!(alike.wrong(), Vec::<String>::new());
    }
    alike.committed(4, 4);
    assert!(alike.wrong()[0].contains("no client asked for it"));
}

#[test]
fn write_id_issued_before_a_request_belongs_to_another_request() {
    for (sent, right) in [(25, true), (40, false)] {
        let mut alike = Alike::default();
        for (index, sequence) in [(1, 1), (2, 3), (3, 2)] {
            alike.committed(index, sequence);
        }
        alike.asked((10, 15), lost());
        alike.asked((20, 30), answer(204, 2, ""));
        alike.asked((sent, 45), lost());
        assert_eq!(alike.wrong().is_empty(), right, "{:?}", alike.wrong());
    }
}

/// A log of claims of one consumer by two requests, and the history of the clients that sent them.
struct Claims {
    history: History,
    log: BTreeMap<u64, Stamped>,
}

const FIRST: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

impl Claims {
    /// Entries 1 and 2 create a provider with two VCPUs.
    fn new() -> Self {
        let mut claims = Self {
            history: History::default(),
            log: BTreeMap::new(),
        };
        let host = ProviderUuid(Uuid::from_u128(0xa));
        let create = Command::CreateProvider(CreateProvider {
            uuid: host,
            name: "host".to_owned().try_into().unwrap(),
            parent: None,
        });
        let inventory = Inventory {
            total: 2,
            reserved: 0,
            min_unit: 1,
            max_unit: 2,
            step_size: 1,
            allocation_ratio: 1.0,
        };
        let stock = Command::ReplaceInventories(ReplaceInventories {
            provider: host,
            generation: Generation(0),
            inventories: BTreeMap::from([("VCPU".into(), inventory)]),
            capacity_rule: CapacityRule::NotNegative,
        });
        let standards = SyncStandards::from_this_binary();
        let commands = [Command::SyncStandards(standards), create, stock];
        for (sequence, command) in (1..).zip(commands) {
            claims.log(sequence, command, None);
        }
        claims
    }

    fn log(&mut self, index: u64, command: Command, request_id: Option<Uuid>) {
        let stamped = Stamped {
            partition: PartitionId::DEFAULT,
            routes: 0,
            at: Timestamp(i64::try_from(index).unwrap()),
            write_id: Some(WriteId {
                origin: 1,
                boot: 1,
                sequence: index,
                answered_below: 0,
            }),
            command,
            request_id,
        };
        self.log.insert(index, stamped);
    }

    fn claim(request_id: Uuid) -> Write {
        let claim = ConsumerAllocations {
            consumer: Uuid::from_u128(0xc).to_string().into(),
            allocations: vec![ProviderAmounts {
                provider: Uuid::from_u128(0xa).to_string().into(),
                resources: BTreeMap::from([("VCPU".into(), 1)]),
            }],
            project: "red".into(),
            user: "u1".into(),
            generation: ConsumerGeneration::New,
            consumer_type: ConsumerTypeUpdate::Keep,
        };
        let consumers = vec![claim];
        Write {
            command: Command::ReplaceAllocations(ReplaceAllocations { consumers }),
            minor: 30,
            request_id: Some(request_id),
        }
    }

    fn release() -> Write {
        let consumer = Uuid::from_u128(0xc).to_string().into();
        Write {
            command: Command::DeleteAllocations(DeleteAllocations { consumer }),
            minor: 30,
            request_id: Some(OTHER),
        }
    }

    /// Adds a write that is sent at the next time, with its log entry, if it has one.
    fn sent(&mut self, write: Write, entry: Option<u64>, end: End) {
        if let Some(index) = entry {
            self.log(index, write.command.clone(), write.request_id);
        }
        let sent = 10 * (1 + self.history.events.len() as u64);
        let write = Operation::Write(write);
        happens(&mut self.history, (sent, sent + 5), write, end);
    }

    /// The change log of the node at the last answer: the entries after this one.
    fn kept_after(&mut self, after: u64) {
        let last = self.log.last_key_value().map(|(index, _)| *index);
        let event = self.history.events.last_mut().unwrap();
        event.change_log = last.map(|last| ChangeLogRange { after, last });
    }

    /// The entries of the set-up are written by an earlier history.
    fn wrong(&mut self) -> Vec<String> {
        self.history.behind = 3;
        let finding = witness::check(&self.history, &self.log);
        let mut wrong = finding.violations.clone();
        wrong.extend(wgl::check(&self.history, &finding).violations);
        wrong
    }

    fn breaks(&mut self) -> bool {
        let wrong = self.wrong();
        let is_named = |one: &String| one.starts_with(from_history::REPEATED_ONCE);
        let breaks = wrong.iter().any(is_named);
        assert!(breaks || wrong.is_empty(), "{wrong:#?}");
        breaks
    }
}

fn conflict(index: u64) -> End {
    let body = r#"{"errors": [{"code": "placement.concurrent_update"}]}"#;
    answer(409, index, body)
}

#[test]
fn repeated_claim_is_done_once() {
    let mut claims = Claims::new();
    claims.sent(Claims::claim(FIRST), Some(4), lost());
    claims.sent(Claims::claim(FIRST), Some(5), answer(204, 5, ""));
    claims.kept_after(0);
    assert!(!claims.breaks());
}

#[test]
fn conflict_with_the_own_first_attempt_is_wrong_unless_its_change_is_forgotten() {
    for (after, right) in [(0, false), (3, false), (4, true)] {
        let mut claims = Claims::new();
        claims.sent(Claims::claim(FIRST), Some(4), lost());
        claims.sent(Claims::claim(FIRST), Some(5), conflict(5));
        claims.kept_after(after);
        assert_ne!(claims.breaks(), right, "{after}");
    }
}

#[test]
fn equal_claim_of_another_request_is_no_repetition() {
    for (end, right) in [(answer(204, 5, ""), false), (conflict(5), true)] {
        let mut claims = Claims::new();
        claims.sent(Claims::claim(FIRST), Some(4), lost());
        claims.sent(Claims::claim(OTHER), Some(5), end);
        claims.kept_after(0);
        assert_ne!(claims.breaks(), right);
    }
}

/// The consumer is as the first attempt left it, but another request has recreated it.
#[test]
fn claim_is_no_repetition_after_another_change_of_its_consumer() {
    for (end, right) in [(answer(204, 7, ""), false), (conflict(7), true)] {
        let mut claims = Claims::new();
        claims.sent(Claims::claim(FIRST), Some(4), lost());
        claims.sent(Claims::release(), Some(5), answer(204, 5, ""));
        claims.sent(Claims::claim(OTHER), Some(6), answer(204, 6, ""));
        claims.sent(Claims::claim(FIRST), Some(7), end);
        claims.kept_after(0);
        assert_ne!(claims.breaks(), right);
    }
}

/// An answer that names an earlier entry is not justified by a later entry of the same request.
#[test]
fn first_attempt_precedes_its_repetition() {
    let mut claims = Claims::new();
    claims.sent(Claims::claim(OTHER), Some(4), answer(204, 4, ""));
    claims.sent(Claims::claim(FIRST), Some(7), lost());
    claims.sent(Claims::claim(FIRST), Some(5), answer(204, 5, ""));
    claims.sent(Claims::release(), Some(6), answer(204, 6, ""));
    assert!(claims.breaks());
}

#[test]
fn violations_found_before_a_panic_are_kept() {
    let ledger = SharedLedger::new();
    let checking = ledger.clone();
    let check = std::thread::spawn(move || {
        let mut held = checking.lock();
        held.violations.push("before".to_owned());
        panic!("a failing check");
    });
    assert!(check.join().is_err());
    assert_eq!(ledger.lock().violations, ["before"]);
}
