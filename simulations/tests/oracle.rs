//! The oracle and the product's model agree on random commands, without any cluster between them.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::command;
use placement_model::command::{RequestId, SyncStandards};
use placement_model::types::{ConsumerUuid, ProviderUuid, Timestamp};
use placement_model::{Command, Outcome, Refusal, Stamped, State, apply};
use placement_simulations::operation::{Belief, CLASS, Claim, Question, Write};
use placement_simulations::oracle::{Effect, Oracle, Verdict};
use placement_simulations::seed::Seed;
use rand::Rng;
use rand::rngs::SmallRng;
use uuid::Uuid;

/// The classes that a new cluster gives itself.
fn standards() -> Command {
    let resource_classes = vec![CLASS.parse().expect("a standard class")];
    Command::SyncStandards(SyncStandards {
        resource_classes,
        traits: BTreeSet::new(),
    })
}

fn provider(number: u32) -> Uuid {
    Uuid::from_u128(0xa00 + u128::from(number))
}

fn consumer(number: u32) -> Uuid {
    Uuid::from_u128(0xc00 + u128::from(number))
}

fn random_claim(random: &mut SmallRng, consumer: Uuid, mark: u32) -> Claim {
    let belief = match random.random_range(0..4) {
        0 => Belief::Unchecked,
        1 => Belief::New,
        _ => Belief::At(random.random_range(1..5)),
    };
    let mut amounts = BTreeMap::new();
    let empty = matches!(belief, Belief::At(_)) && random.random_bool(0.2);
    for number in 0..3 {
        if !empty && (amounts.is_empty() && number == 2 || random.random_bool(0.4)) {
            amounts.insert(provider(number), random.random_range(1..4));
        }
    }
    let project = format!("project{}", random.random_range(0..2));
    Claim {
        consumer,
        project,
        user: format!("user{mark}"),
        belief,
        amounts,
    }
}

fn random_write(random: &mut SmallRng, mark: u32) -> Write {
    match random.random_range(0..10) {
        0 => Write::SetInventory {
            provider: provider(random.random_range(0..4)),
            generation: random.random_range(0..12),
            // Inventories never shrink.
            total: 5 + mark / 20,
            max_unit: 1_000_000 + mark,
        },
        1 | 2 => Write::Release {
            consumer: consumer(random.random_range(0..4)),
        },
        3 | 4 => {
            let first = random.random_range(0..3);
            Write::Allocate(
                (first..first + 2)
                    .map(|one| random_claim(random, consumer(one), mark))
                    .collect(),
            )
        }
        _ => {
            let consumer = consumer(random.random_range(0..4));
            Write::Allocate(vec![random_claim(random, consumer, mark)])
        }
    }
}

fn verdict(outcome: &Outcome) -> Option<(u16, Option<&'static str>)> {
    let conflict = Some("placement.concurrent_update");
    Some(match outcome {
        Outcome::Done(_) => (200, None),
        Outcome::AnsweredBefore => return None,
        Outcome::Refused(refusal) => match refusal {
            Refusal::ProviderNotFound(_) | Refusal::ConsumerHasNoAllocations(_) => (404, None),
            Refusal::ConsumerGenerationConflict { .. }
            | Refusal::ProviderGenerationConflict { .. } => (409, conflict),
            Refusal::DuplicateProviderUuid(_) => (409, Some("placement.duplicate_name")),
            Refusal::AllocationCapacity { .. } | Refusal::AllocationWithoutInventory { .. } => {
                (409, Some("placement.undefined_code"))
            }
            other => panic!("no simulated client is refused for {other}"),
        },
    })
}

fn same(verdict: Verdict, model: Option<(u16, Option<&'static str>)>) -> bool {
    match model {
        None => false,
        Some((200, _)) => verdict.status < 300,
        Some((404, _)) => verdict.status == 404,
        Some((status, code)) => verdict.status == status && verdict.code == code,
    }
}

fn states_agree(state: &State, oracle: &Oracle) {
    for number in 0..4 {
        let uuid = provider(number);
        let (status, shown) = oracle.answer(&Question::ProviderUsages(uuid));
        let usages = state.provider_usages(&ProviderUuid(uuid));
        assert_eq!(status == 200, usages.is_some());
        if let Some(usages) = usages {
            assert_eq!(shown["resource_provider_generation"], usages.generation.0);
            let used = usages.usages.values().next().copied();
            assert_eq!(shown["usages"]["VCPU"].as_u64(), used);
        }
        let uuid = consumer(number);
        let (_, shown) = oracle.answer(&Question::Allocations(uuid));
        let kept = state.consumer(&ConsumerUuid::from(uuid.to_string()));
        let generation = kept.as_ref().map(|one| one.generation.0);
        assert_eq!(shown["consumer_generation"].as_i64(), generation);
        let user = kept.as_ref().map(|one| one.user.as_str());
        assert_eq!(shown["user_id"].as_str(), user);
    }
    for project in ["project0", "project1"] {
        let (_, shown) = oracle.answer(&Question::ProjectUsages(project.to_owned()));
        let usages = state.usages(&project.into(), None);
        let by_type = shown["usages"].as_object().cloned().unwrap_or_default();
        assert_eq!(by_type.len(), usages.len(), "{shown} {usages:?}");
        for (kind, usage) in usages {
            let name = kind.map_or_else(|| "unknown".to_owned(), |kind| kind.to_string());
            assert_eq!(
                by_type[&name]["consumer_count"].as_u64(),
                Some(usage.consumer_count)
            );
            let used = usage.usages.values().next().copied();
            assert_eq!(by_type[&name]["VCPU"].as_u64(), used);
        }
    }
}

/// One in three commands is sent again later, under the same name.
#[test]
fn on_random_commands_with_repetitions() {
    for seed in 0..60 {
        let random = &mut Seed(seed).stream("commands");
        let (mut state, mut oracle) = (State::default(), Oracle::default());
        let standards = standards();
        let (_, changes) = apply(
            &state,
            &Stamped {
                at: Timestamp(0),
                request: None,
                command: standards,
            },
        );
        state.commit(&changes);
        let mut sent: Vec<(RequestId, Write)> = Vec::new();
        for step in 0..150 {
            let (request, write) = match step < 3 || random.random_bool(0.75) {
                true => {
                    let write = match step {
                        0..3 => Write::CreateProvider {
                            provider: provider(step),
                            name: format!("host{step}"),
                        },
                        _ => random_write(random, step),
                    };
                    let sequence = u64::from(step);
                    let request = RequestId {
                        origin: 1 + sequence % 2,
                        boot: 1 + sequence / 60,
                        sequence,
                        answered_below: sequence.saturating_sub(10),
                    };
                    (request, write)
                }
                false => sent[random.random_range(0..sent.len())].clone(),
            };
            let stamped = Stamped {
                at: Timestamp(i64::from(step)),
                request: Some(request),
                command: command(&write),
            };
            let (outcome, changes) = apply(&state, &stamped);
            state.commit(&changes);
            match oracle.entry(Some(request), &write) {
                // The oracle forgets no answer; the product does, once nobody can ask for it.
                Effect::Repeated(_) if outcome == Outcome::AnsweredBefore => {}
                Effect::Decided(said) | Effect::Repeated(said) => {
                    assert!(
                        same(said, verdict(&outcome)),
                        "{said:?} {outcome:?} {stamped:?}"
                    );
                }
                Effect::Straggler => assert_eq!(outcome, Outcome::AnsweredBefore, "{stamped:?}"),
            }
            states_agree(&state, &oracle);
            sent.push((request, write));
        }
    }
}
