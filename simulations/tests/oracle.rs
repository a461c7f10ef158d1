//! The oracle and the product's model agree on what simulated clients write, with repetitions,
//! without any cluster between them; and clients write and ask for everything.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::RequestId;
use placement_model::standard::sync;
use placement_model::types::{ConsumerUuid, PartitionId, ProjectId, ProviderUuid, Timestamp};
use placement_model::{Outcome, Stamped, State, apply};
use placement_simulations::beliefs::Beliefs;
use placement_simulations::history::Answer;
use placement_simulations::operation::{Asked, Level, Operation, Write};
use placement_simulations::oracle::Oracle;
use placement_simulations::parameters::Parameters;
use placement_simulations::seed::Seed;
use placement_simulations::workload::{Kind, Names, Workload};
use rand::Rng;
use serde_json::Value;

/// The model and the oracle side by side, and a client that believes what it is answered.
struct Pair {
    state: State,
    oracle: Oracle,
    names: Names,
    workload: Workload,
    beliefs: Beliefs,
    now: i64,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let parameters = Parameters::from_seed(Seed(seed));
        let mut pair = Self {
            state: State::default(),
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
            request: None,
            command: sync(),
        };
        pair.entry(&standards);
        for write in pair.workload.set_up(&pair.names.clone(), parameters.total) {
            pair.write(None, &write);
        }
        pair
    }

    fn entry(&mut self, stamped: &Stamped) -> Outcome {
        let (outcome, changes) = apply(&self.state, stamped);
        self.state.commit(&changes);
        assert_eq!(self.oracle.entry(stamped), outcome, "{stamped:?}");
        outcome
    }

    fn write(&mut self, request: Option<RequestId>, write: &Write) -> Outcome {
        self.now += 1;
        let outcome = self.entry(&Stamped {
            partition: PartitionId::DEFAULT,
            routes: 0,
            at: Timestamp(self.now),
            request,
            command: write.command.clone(),
        });
        self.states_agree();
        outcome
    }

    fn next(&mut self) -> Option<Write> {
        let (kind, providers) = self.workload.kind(&self.names);
        if kind != Kind::Grow || self.workload_looks() {
            for uuid in &providers {
                self.look(Asked::Inventories(*uuid));
            }
        }
        for consumer in self.names.consumers.clone() {
            self.look(Asked::Allocations(consumer));
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

    fn look(&mut self, asked: Asked) {
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

    fn states_agree(&self) {
        let asked = |asked: Asked| {
            let right = self.oracle.answer(&asked.newest());
            right.body.filter(|_| right.status == 200)
        };
        for uuid in self.names.core.iter().chain(&self.names.field) {
            let model = self.state.provider_usages(&ProviderUuid(*uuid));
            let shown = asked(Asked::ProviderUsages(*uuid));
            assert_eq!(shown.is_some(), model.is_some());
            let (Some(shown), Some(model)) = (shown, model) else {
                continue;
            };
            assert_eq!(shown["resource_provider_generation"], model.generation.0);
            let used: BTreeMap<String, u64> =
                serde_json::from_value(shown["usages"].clone()).unwrap();
            let model = model.usages.iter();
            assert_eq!(
                used,
                model
                    .map(|(class, used)| (class.to_string(), *used))
                    .collect()
            );
        }
        for uuid in &self.names.consumers {
            let shown = asked(Asked::Allocations(*uuid)).unwrap();
            let model = self.state.consumer(&ConsumerUuid::from(uuid.to_string()));
            let model = model.filter(|one| !one.allocations.is_empty());
            let generation = model.as_ref().map(|one| one.generation.0);
            assert_eq!(shown["consumer_generation"].as_i64(), generation);
            let user = model.as_ref().map(|one| one.user.as_str());
            assert_eq!(shown["user_id"].as_str(), user);
        }
        for project in &self.names.projects {
            let usages = Asked::Usages {
                project: project.clone(),
                user: None,
                consumer_type: None,
            };
            let shown = asked(usages).unwrap();
            let by_type = shown["usages"].as_object().unwrap();
            let model = self.state.usages(&ProjectId::from(project.as_str()), None);
            assert_eq!(by_type.len(), model.len(), "{shown} {model:?}");
            for (kind, usage) in model {
                let name = kind.map_or_else(|| "unknown".to_owned(), |kind| kind.to_string());
                let count = by_type[&name]["consumer_count"].as_u64();
                assert_eq!(count, Some(usage.consumer_count));
                for (class, used) in usage.usages {
                    assert_eq!(by_type[&name][class.as_str()].as_u64(), Some(used));
                }
            }
        }
    }
}

/// One in four commands is sent again later, under the same name.
#[test]
fn on_what_clients_write_with_repetitions() {
    let mut repeated = 0;
    for seed in 0..60 {
        let mut pair = Pair::new(seed);
        let random = &mut Seed(seed).stream("commands");
        let mut sent: Vec<(RequestId, Write, Outcome)> = Vec::new();
        for step in 0_u64..150 {
            if sent.is_empty() || random.random_bool(0.75) {
                let Some(write) = pair.next() else { continue };
                let request = RequestId {
                    origin: 1 + step % 2,
                    boot: 1 + step / 60,
                    sequence: step,
                    answered_below: step.saturating_sub(10),
                };
                let outcome = pair.write(Some(request), &write);
                sent.push((request, write, outcome));
            } else {
                let place = random.random_range(0..sent.len());
                let (request, write, first) = sent[place].clone();
                let again = pair.write(Some(request), &write);
                // The product forgets an answer once nobody can ask for it.
                if again != Outcome::AnsweredBefore {
                    assert_eq!(again, first);
                    repeated += 1;
                }
            }
        }
        assert!(pair.state.agrees_with_recount());
    }
    assert!(repeated > 500, "only {repeated} repetitions");
}

/// Kinds of writes that were carried out, and reasons for which some were refused.
#[test]
fn clients_write_everything_and_are_refused_for_everything() {
    let (mut done, mut refusals) = (BTreeMap::new(), BTreeMap::new());
    for seed in 0..80 {
        let mut pair = Pair::new(seed);
        for _ in 0..150 {
            let Some(write) = pair.next() else { continue };
            let name = write.command.name();
            match pair.write(None, &write) {
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
    // All that clients can cause, that is without what a cluster writes on its own account.
    assert_eq!(done.len(), 20, "{done:?}");
    // All but `IdsExhausted`.
    assert_eq!(refusals.len(), 28, "{refusals:?}");
    let rare = |counts: &BTreeMap<_, _>| counts.values().any(|count: &i32| *count < 5);
    assert!(!rare(
        &done.into_iter().map(|(k, n)| (k.to_owned(), n)).collect()
    ));
    assert!(!rare(&refusals), "{refusals:?}");
}

#[test]
fn clients_ask_everything() {
    let parameters = Parameters::from_seed(Seed(1));
    let names = Names::new(&parameters.choices());
    let mut workload = Workload::new(0, &parameters.choices());
    let questions: Vec<_> = (0..3000).map(|_| workload.question(&names)).collect();
    let kinds: BTreeSet<&str> = questions.iter().map(|one| one.asked.kind()).collect();
    assert_eq!(kinds, BTreeSet::from(Asked::KINDS));
    let minors: BTreeSet<u8> = questions.iter().map(|one| one.minor).collect();
    assert_eq!(minors, (0..=39).collect());
}
