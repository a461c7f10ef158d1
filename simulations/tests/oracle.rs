//! Clients whose requests the oracle answers, without a cluster, send every kind of write and
//! question, and receive every kind of refusal.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::standard::sync;
use placement_model::types::{PartitionId, Timestamp};
use placement_model::{Outcome, Stamped};
use placement_simulations::beliefs::Beliefs;
use placement_simulations::history::Answer;
use placement_simulations::operation::{Level, Operation, QuestionKind, Write};
use placement_simulations::oracle::Oracle;
use placement_simulations::parameters::Parameters;
use placement_simulations::seed::Seed;
use placement_simulations::workload::{Kind, Names, Workload};
use serde_json::Value;

/// A client whose requests the oracle answers.
struct Client {
    oracle: Oracle,
    names: Names,
    workload: Workload,
    beliefs: Beliefs,
    now: i64,
}

impl Client {
    fn new(seed: u64) -> Self {
        let parameters = Parameters::from_seed(Seed(seed));
        let mut client = Self {
            oracle: Oracle::default(),
            names: Names::new(&parameters.choices()),
            workload: Workload::new(0, &parameters.choices()),
            beliefs: Beliefs::default(),
            now: 0,
        };
        let standards = Stamped {
            partition: PartitionId::DEFAULT,
            routes: 0,
            at: Timestamp(0),
            write_id: None,
            command: sync(),
            request_id: None,
        };
        client.oracle.entry(&standards);
        for write in client
            .workload
            .set_up(&client.names.clone(), parameters.total)
        {
            client.write(&write);
        }
        client
    }

    fn write(&mut self, write: &Write) -> Outcome {
        self.now += 1;
        self.oracle.entry(&Stamped {
            partition: PartitionId::DEFAULT,
            routes: 0,
            at: Timestamp(self.now),
            write_id: None,
            command: write.command.clone(),
            request_id: None,
        })
    }

    fn next(&mut self) -> Option<Write> {
        let (kind, providers) = self.workload.kind(&self.names);
        if kind != Kind::Grow || self.workload_looks() {
            for uuid in &providers {
                self.look(QuestionKind::Inventories(*uuid));
            }
        }
        for consumer in self.names.consumers.clone() {
            self.look(QuestionKind::Allocations(consumer));
        }
        self.workload
            .write(kind, &providers, &self.names, &self.beliefs)
    }

    fn workload_looks(&mut self) -> bool {
        matches!(
            self.workload.level(None),
            Level::Default | Level::Linearizable
        )
    }

    fn look(&mut self, asked: QuestionKind) {
        let question = asked.newest();
        let right = self.oracle.answer(&question);
        let body = right.body.as_ref().map(Value::to_string);
        let answer = Answer {
            status: right.status,
            index: None,
            node: None,
            known_leader: None,
            staleness: None,
            effective: None,
            body: body.unwrap_or_default(),
        };
        self.beliefs
            .learn(&Operation::Read(question, Level::Local), &answer);
    }
}

/// Counts executed writes by kind and refused writes by reason.
#[test]
fn clients_send_every_write_and_meet_every_refusal() {
    let (mut done, mut refusals) = (BTreeMap::new(), BTreeMap::new());
    for seed in 0..80 {
        let mut client = Client::new(seed);
        for _ in 0..150 {
            let Some(write) = client.next() else { continue };
            let name = write.command.name();
            match client.write(&write) {
                Outcome::Done(_) => *done.entry(name).or_insert(0) += 1,
                Outcome::Refused(refusal) => {
                    let debug = format!("{refusal:?}");
                    let end = debug.find(|c: char| !c.is_ascii_alphanumeric());
                    let kind = debug[..end.unwrap_or(debug.len())].to_owned();
                    *refusals.entry(kind).or_insert(0) += 1;
                }
                Outcome::AnsweredBefore => panic!("nothing was repeated"),
            }
        }
    }
    // All commands that requests of clients cause; the others are written by the cluster itself.
    assert_eq!(done.len(), 23, "{done:?}");
    // Rare: a client must find a hold with a due time.
    refusals.remove("HoldIsDue");
    // All others except `IdsExhausted` and `TooManyHolds`.
    assert_eq!(refusals.len(), 34, "{refusals:?}");
    let rare = |counts: &BTreeMap<_, _>| counts.values().any(|count: &i32| *count < 5);
    assert!(!rare(
        &done.into_iter().map(|(k, n)| (k.to_owned(), n)).collect()
    ));
    assert!(!rare(&refusals), "{refusals:?}");
}

#[test]
fn clients_ask_every_question_at_every_microversion() {
    let parameters = Parameters::from_seed(Seed(1));
    let names = Names::new(&parameters.choices());
    let mut workload = Workload::new(0, &parameters.choices());
    let questions: Vec<_> = (0..3000).map(|_| workload.question(&names)).collect();
    let kinds: BTreeSet<&str> = questions.iter().map(|one| one.asked.kind()).collect();
    assert_eq!(kinds, BTreeSet::from(QuestionKind::KINDS));
    let minors: BTreeSet<u8> = questions.iter().map(|one| one.minor).collect();
    assert_eq!(minors, (0..=39).collect());
}
