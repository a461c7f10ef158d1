//! The checkers themselves: they accept what is right and reject what is wrong, told in small
//! histories written by hand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::time::Duration;

use placement_model::Stamped;
use placement_model::command::{
    CapacityRule, Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate,
    CreateProvider, DeleteAllocations, ProviderAmounts, ReplaceAllocations, ReplaceInventories,
    RequestId, SyncStandards,
};
use placement_model::query::candidates::{CandidateRequest, RequestGroup};
use placement_model::standard::StandardNames;
use placement_model::types::{Generation, Given, Inventory, PartitionId, ProviderUuid, Timestamp};
use placement_raft_store::Vote;
use placement_simulations::history::{Answer, End, History};
use placement_simulations::invariants::{Leadership, Role};
use placement_simulations::operation::{Asked, Level, Operation, Token, Write};
use placement_simulations::{wgl, witness};
use serde_json::{Value, json};
use uuid::Uuid;

const HOST: Uuid = Uuid::from_u128(0xa);
const ALICE: Uuid = Uuid::from_u128(0xb);

#[derive(Default)]
struct Story {
    history: History,
    log: BTreeMap<u64, Stamped>,
    sequence: u64,
}

const NEW: ConsumerGeneration = ConsumerGeneration::New;
const UNCHECKED: ConsumerGeneration = ConsumerGeneration::Unchecked;

fn write(command: Command) -> Write {
    let minor = 39;
    Write { command, minor }
}

fn claim(user: &str, generation: ConsumerGeneration, amount: u64) -> Write {
    let resources = BTreeMap::from([(Given::from("VCPU"), amount)]);
    let minor = if generation == UNCHECKED { 27 } else { 39 };
    let consumer_type = match generation {
        ConsumerGeneration::Unchecked => ConsumerTypeUpdate::Keep,
        _ => ConsumerTypeUpdate::Set("INSTANCE".parse().unwrap()),
    };
    let consumers = vec![ConsumerAllocations {
        consumer: ALICE.to_string().into(),
        allocations: vec![ProviderAmounts {
            provider: HOST.to_string().into(),
            resources,
        }],
        project: "red".into(),
        user: user.into(),
        generation,
        consumer_type,
    }];
    let command = Command::ReplaceAllocations(ReplaceAllocations { consumers });
    Write { command, minor }
}

fn release() -> Write {
    let consumer = ALICE.to_string().into();
    write(Command::DeleteAllocations(DeleteAllocations { consumer }))
}

fn host() -> Write {
    write(Command::CreateProvider(CreateProvider {
        uuid: ProviderUuid(HOST),
        name: "host".to_owned().try_into().unwrap(),
        parent: None,
    }))
}

fn stock() -> Write {
    let inventory = Inventory {
        total: 4,
        reserved: 0,
        min_unit: 1,
        max_unit: 1_000_000,
        step_size: 1,
        allocation_ratio: 1.0,
    };
    write(Command::ReplaceInventories(ReplaceInventories {
        provider: ProviderUuid(HOST),
        generation: Generation(0),
        inventories: BTreeMap::from([(Given::from("VCPU"), inventory)]),
        capacity_rule: CapacityRule::NotNegative,
    }))
}

fn token(index: u64) -> Token {
    Token { epoch: 1, index }
}

fn body(code: Option<&str>) -> String {
    code.map_or_else(String::new, |code| {
        format!(r#"{{"errors":[{{"code":"{code}"}}]}}"#)
    })
}

impl Story {
    /// A host with four units, made at places 1 and 2 of the log.
    fn with_host() -> Self {
        let mut story = Self::default();
        let StandardNames {
            resource_classes,
            traits,
        } = StandardNames::of_this_binary();
        let standards = Command::SyncStandards(SyncStandards {
            resource_classes,
            traits,
        });
        let standards = Stamped {
            partition: PartitionId::DEFAULT,
            routes: 0,
            at: Timestamp(0),
            request: None,
            command: standards,
        };
        story.log.insert(0, standards);
        story.committed(1, &host());
        story.answered_with((1, 2), host(), 200, 1, HOST_BODY);
        story.committed(2, &stock());
        story.answered_with((3, 4), stock(), 200, 2, STOCK_BODY);
        story
    }

    fn committed(&mut self, index: u64, write: &Write) -> RequestId {
        self.sequence += 1;
        let request = RequestId {
            origin: 1,
            boot: 1,
            sequence: self.sequence,
            answered_below: 0,
        };
        self.repeated(index, write, request);
        request
    }

    fn repeated(&mut self, index: u64, write: &Write, request: RequestId) {
        let stamped = Stamped {
            partition: PartitionId::DEFAULT,
            routes: 0,
            at: Timestamp(0),
            request: Some(request),
            command: write.command.clone(),
        };
        self.log.insert(index, stamped);
    }

    fn event(&mut self, (sent, ended): (u64, u64), operation: Operation, mut end: End) {
        if let End::Answer(answer) = &mut end {
            let effective = match &operation {
                Operation::Read(_, Level::Session(_)) => "session",
                Operation::Read(_, Level::Bounded(_)) => "bounded;max=0.1",
                Operation::Read(_, Level::Local) => "local",
                _ => "linearizable",
            };
            answer.effective = Some(effective.to_owned());
        }
        let event = self
            .history
            .begin(0, 1, operation, Duration::from_millis(sent));
        self.history.end(event, Duration::from_millis(ended), end);
    }

    fn answered_with(
        &mut self,
        span: (u64, u64),
        write: Write,
        status: u16,
        index: u64,
        body: &str,
    ) {
        let answer = answer(status, index, body.to_owned());
        self.event(span, Operation::Write(write), answer);
    }

    fn answered(
        &mut self,
        span: (u64, u64),
        write: Write,
        status: u16,
        index: u64,
        code: Option<&str>,
    ) {
        self.event(
            span,
            Operation::Write(write),
            answer(status, index, body(code)),
        );
    }

    fn read(&mut self, span: (u64, u64), level: Level, index: u64, body: &str) {
        let operation = Operation::Read(Asked::Allocations(ALICE).newest(), level);
        self.event(span, operation, answer(200, index, body.to_owned()));
    }

    fn violations(&self) -> Vec<String> {
        let finding = witness::check(&self.history, &self.log);
        let opinion = wgl::check(&self.history, &finding);
        finding
            .violations
            .into_iter()
            .chain(opinion.violations)
            .collect()
    }

    fn is_right(&self) {
        assert_eq!(self.violations(), Vec::<String>::new());
    }

    fn is_wrong_because(&self, words: &str) {
        let violations = self.violations();
        assert!(
            violations.iter().any(|one| one.contains(words)),
            "{words}: {violations:#?}"
        );
    }
}

fn answer(status: u16, index: u64, body: String) -> End {
    let index = Some(token(index));
    End::Answer(Answer {
        status,
        index,
        node: Some(1),
        known_leader: Some(1),
        staleness: None,
        effective: None,
        body,
    })
}

const HOST_BODY: &str = r#"{"uuid":"00000000-0000-0000-0000-00000000000a","name":"host",
    "generation":0,"parent_provider_uuid":null,
    "root_provider_uuid":"00000000-0000-0000-0000-00000000000a","links":[
    {"rel":"self","href":"/resource_providers/00000000-0000-0000-0000-00000000000a"},
    {"rel":"inventories","href":"/resource_providers/00000000-0000-0000-0000-00000000000a/inventories"},
    {"rel":"usages","href":"/resource_providers/00000000-0000-0000-0000-00000000000a/usages"},
    {"rel":"aggregates","href":"/resource_providers/00000000-0000-0000-0000-00000000000a/aggregates"},
    {"rel":"traits","href":"/resource_providers/00000000-0000-0000-0000-00000000000a/traits"},
    {"rel":"allocations","href":"/resource_providers/00000000-0000-0000-0000-00000000000a/allocations"}]}"#;

const STOCK_BODY: &str = r#"{"resource_provider_generation":1,"inventories":{"VCPU":{"total":4,
    "reserved":0,"min_unit":1,"max_unit":1000000,"step_size":1,"allocation_ratio":1.0}}}"#;

const NOBODY: &str = r#"{"allocations":{}}"#;

fn alice_holds(amount: u64, user: &str, generations: (u64, u64)) -> String {
    format!(
        r#"{{"allocations":{{"{HOST}":{{"generation":{},"resources":{{"VCPU":{amount}}}}}}},
            "project_id":"red","user_id":"{user}","consumer_generation":{},
            "consumer_type":"INSTANCE"}}"#,
        generations.0, generations.1
    )
}

#[test]
fn a_claim_and_a_read_after_it_are_right() {
    let mut story = Story::with_host();
    let write = claim("u1", NEW, 3);
    story.committed(5, &write);
    story.answered((10, 20), write, 204, 5, None);
    story.read((30, 40), Level::Default, 7, &alice_holds(3, "u1", (2, 1)));
    story.is_right();
}

#[test]
fn a_stale_linearizable_read_is_wrong_and_a_stale_local_one_is_not() {
    for (level, right) in [
        (Level::Default, false),
        (Level::Linearizable, false),
        (Level::Local, true),
    ] {
        let mut story = Story::with_host();
        let write = claim("u1", NEW, 3);
        story.committed(5, &write);
        story.answered((10, 20), write, 204, 5, None);
        story.read((30, 40), level, 4, NOBODY);
        if right {
            story.is_right();
        } else {
            story.is_wrong_because("must not be before 5");
            story.is_wrong_because("is not linearizable");
        }
    }
}

#[test]
fn a_read_that_overlaps_the_write_may_miss_it() {
    let mut story = Story::with_host();
    let write = claim("u1", NEW, 3);
    story.committed(5, &write);
    story.answered((10, 20), write, 204, 5, None);
    story.read((15, 16), Level::Linearizable, 4, NOBODY);
    story.is_right();
}

#[test]
fn a_session_read_must_reach_its_token_and_a_bounded_one_its_bound() {
    let mut story = Story::with_host();
    let write = claim("u1", NEW, 3);
    story.committed(5, &write);
    story.answered((10, 20), write, 204, 5, None);
    story.read((30, 40), Level::Session(token(5)), 4, NOBODY);
    story.is_wrong_because("must not be before 5");

    let mut story = Story::with_host();
    let write = claim("u1", NEW, 3);
    story.committed(5, &write);
    story.answered((10, 20), write, 204, 5, None);
    story.read((119, 121), Level::Bounded(100), 4, NOBODY);
    story.is_right();
    story.read((130, 140), Level::Bounded(100), 4, NOBODY);
    story.is_wrong_because("must not be before 5");
}

#[test]
fn a_read_must_show_the_state_at_its_place() {
    let mut story = Story::with_host();
    story.read((30, 40), Level::Local, 4, &alice_holds(3, "u1", (2, 1)));
    story.is_wrong_because("another state");
}

#[test]
fn an_acknowledged_write_that_is_not_in_the_log_is_lost() {
    let mut story = Story::with_host();
    story.answered((10, 20), claim("u1", NEW, 3), 204, 5, None);
    story.is_wrong_because("acknowledged write is not at its place");
}

#[test]
fn more_than_there_is_must_be_refused() {
    let mut story = Story::with_host();
    let write = claim("u1", NEW, 5);
    story.committed(5, &write);
    story.answered((10, 20), write, 204, 5, None);
    story.is_wrong_because("409");
}

#[test]
fn an_unknown_outcome_is_looked_up_in_the_log() {
    let mut story = Story::with_host();
    let write = claim("u1", NEW, 3);
    story.committed(5, &write);
    story.event(
        (10, 20),
        Operation::Write(write),
        End::Lost("no answer in time".to_owned()),
    );
    story.read((30, 40), Level::Default, 7, &alice_holds(3, "u1", (2, 1)));
    story.is_right();
    story.read((50, 60), Level::Default, 8, NOBODY);
    story.is_wrong_because("another state");
    story.is_wrong_because("is not linearizable");
}

#[test]
fn what_was_said_not_to_be_committed_may_not_be_in_the_log() {
    let mut story = Story::with_host();
    let write = claim("u1", NEW, 3);
    story.committed(5, &write);
    let body = body(Some("placement.nothing_committed"));
    story.event((10, 20), Operation::Write(write), answer(503, 4, body));
    story.is_wrong_because("no client asked for it");
}

#[test]
fn a_repetition_counts_once() {
    let mut story = Story::with_host();
    let write = claim("u1", UNCHECKED, 3);
    let request = story.committed(5, &write);
    story.repeated(6, &write, request);
    story.answered((10, 20), write.clone(), 204, 6, None);
    story.is_right();

    // The same entry under another name is a second write that nobody asked for.
    story.committed(7, &write);
    story.is_wrong_because("applied twice");
}

#[test]
fn writes_stand_in_the_log_in_the_order_of_their_answers() {
    let mut story = Story::with_host();
    let (first, second) = (claim("u1", UNCHECKED, 1), claim("u2", UNCHECKED, 2));
    story.committed(6, &first);
    story.answered((10, 20), first, 204, 6, None);
    story.committed(5, &second);
    story.answered((30, 40), second, 204, 5, None);
    story.is_wrong_because("must not be before 6");
}

#[test]
fn a_conflict_must_be_one() {
    let mut story = Story::with_host();
    let write = claim("u1", NEW, 3);
    story.committed(5, &write);
    story.answered((10, 20), write, 409, 5, Some("placement.concurrent_update"));
    story.is_wrong_because("a write answered 409");
    story.is_wrong_because("is not linearizable");
}

#[test]
fn the_body_of_a_write_is_looked_at() {
    for (body, right) in [(HOST_BODY, true), ("{}", false), ("", false)] {
        let mut story = Story::default();
        story.committed(1, &host());
        story.answered_with((1, 2), host(), 200, 1, body);
        if right {
            story.is_right();
        } else {
            story.is_wrong_because("this body is right");
        }
    }
}

/// What a search for one `VCPU` answers: these candidates, and the host as it is.
fn candidates(candidates: &[Value], used: u64) -> String {
    let host = HOST.to_string();
    let summary = json!({
        "resources": { "VCPU": { "capacity": 4, "used": used } },
        "traits": [],
        "parent_provider_uuid": null,
        "root_provider_uuid": host,
    });
    let summaries = json!({ host: summary });
    json!({ "allocation_requests": candidates, "provider_summaries": summaries }).to_string()
}

#[test]
fn candidates_are_those_that_trying_everything_finds() {
    let host = HOST.to_string();
    let one = |amount: u64| {
        json!({
            "allocations": { &host: { "resources": { "VCPU": amount } } },
            "mappings": { "": [&host] },
        })
    };
    let request = CandidateRequest {
        groups: vec![RequestGroup {
            resources: BTreeMap::from([(Given::from("VCPU"), 1)]),
            ..RequestGroup::default()
        }],
        nested: true,
        mappings: true,
        ..CandidateRequest::default()
    };
    let question = Asked::Candidates(request).newest();
    for (body, wrong) in [
        (candidates(&[one(1)], 0), None),
        (candidates(&[], 0), Some("1 candidates are right")),
        (
            candidates(&[one(1), one(1)], 0),
            Some("1 candidates are right"),
        ),
        (
            candidates(&[one(2)], 0),
            Some("is none of these candidates"),
        ),
        (candidates(&[one(1)], 1), Some("these summaries are right")),
    ] {
        let mut story = Story::with_host();
        let operation = Operation::Read(question.clone(), Level::Local);
        story.event((30, 40), operation, answer(200, 2, body));
        match wrong {
            None => story.is_right(),
            Some(words) => story.is_wrong_because(words),
        }
    }
}

#[test]
fn one_entry_of_the_log_is_one_request() {
    let mut story = Story::with_host();
    let claim = claim("u1", NEW, 3);
    story.committed(5, &claim);
    story.answered((10, 20), claim, 204, 5, None);
    story.committed(6, &release());
    story.answered((30, 40), release(), 204, 6, None);
    story.is_right();
    story.answered((31, 41), release(), 204, 6, None);
    story.is_wrong_because("is said to be two requests");
}

#[test]
fn a_write_without_an_answer_is_not_in_the_log_before_it_was_sent() {
    let mut story = Story::with_host();
    let first = claim("u1", UNCHECKED, 1);
    story.committed(6, &first);
    story.answered((10, 20), first, 204, 6, None);
    let second = claim("u2", UNCHECKED, 2);
    story.committed(5, &second);
    let lost = End::Lost("no answer in time".to_owned());
    story.event((30, 40), Operation::Write(second), lost);
    story.is_wrong_because("must not be before 6");
}

#[test]
fn what_cannot_be_told_apart_is_taken_in_the_order_of_sending() {
    let mut story = Story::with_host();
    let claim = claim("u1", NEW, 3);
    story.committed(5, &claim);
    story.answered((10, 20), claim, 204, 5, None);
    for sent in [25, 50] {
        let lost = End::Lost("no answer in time".to_owned());
        story.event((sent, sent + 5), Operation::Write(release()), lost);
    }
    story.committed(6, &release());
    story.read((40, 45), Level::Default, 6, NOBODY);
    story.is_right();
    story.committed(7, &release());
    story.is_right();
    story.committed(8, &release());
    story.is_wrong_because("no client asked for it");
}

/// What a node says of itself.
fn role(node: u64, start: u64, vote: Vote, leads: bool) -> Role {
    Role {
        node,
        start,
        vote,
        leads,
        applied: None,
    }
}

/// The first thing that is wrong with what nodes said, one after the other.
fn first_wrong(said: &[Role]) -> Option<String> {
    let mut leadership = Leadership::default();
    said.iter().find_map(|role| leadership.observe(*role).err())
}

#[test]
fn a_term_may_see_two_leaders_of_whom_the_second_stands_above_the_first() {
    let (two, four) = (Vote::new_committed(3, 2), Vote::new_committed(3, 4));
    let said = [
        role(2, 1, two, true),
        role(1, 1, two, false),
        role(1, 1, four, false),
        role(4, 1, four, true),
        role(2, 1, two, true),
        role(2, 1, four, false),
    ];
    assert_eq!(first_wrong(&said), None);
    let mut leadership = Leadership::default();
    for role in said {
        leadership.observe(role).unwrap();
    }
    assert_eq!(leadership.elections(), 2);
}

#[test]
fn a_vote_may_not_fall_while_a_node_runs() {
    let falls = |before, after| {
        let said = [role(1, 1, before, false), role(1, 1, after, false)];
        first_wrong(&said).is_some_and(|wrong| wrong.contains("votes rise"))
    };
    assert!(falls(Vote::new(3, 2), Vote::new(2, 3)), "a lower term");
    assert!(
        falls(Vote::new(3, 4), Vote::new(3, 2)),
        "another node of the term"
    );
    assert!(
        falls(Vote::new_committed(3, 2), Vote::new(3, 2)),
        "no longer granted"
    );
    assert!(!falls(Vote::new(3, 2), Vote::new(3, 4)));
    assert!(!falls(Vote::new(3, 2), Vote::new_committed(3, 2)));
}

#[test]
fn a_leader_holds_its_own_vote() {
    let wrong = first_wrong(&[role(1, 1, Vote::new_committed(3, 2), true)]).unwrap();
    assert!(wrong.contains("a leader holds its own vote"), "{wrong}");
}

#[test]
fn a_leader_that_was_started_again_leads_in_a_higher_term_or_not_at_all() {
    let vote = |term| Vote::new_committed(term, 1);
    let before = role(1, 1, vote(3), true);
    assert_eq!(first_wrong(&[before, role(1, 2, vote(4), true)]), None);
    let wrong = first_wrong(&[before, role(1, 2, vote(3), true)]).unwrap();
    assert!(wrong.contains("one start per leader"), "{wrong}");
}
