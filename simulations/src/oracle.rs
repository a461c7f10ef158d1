//! A small, obvious model that says what every request must return. It knows only what the
//! simulated clients ask for, and shares no code with the product.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::RequestId;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::operation::{Belief, CLASS, CONSUMER_TYPE, Claim, Question, Write};

/// The state that the log says the cluster must be in.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    providers: BTreeMap<Uuid, Provider>,
    consumers: BTreeMap<Uuid, Consumer>,
    sessions: BTreeMap<u64, Session>,
}

#[derive(Debug, Clone)]
struct Provider {
    name: String,
    generation: i64,
    inventory: Option<(u32, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Consumer {
    generation: i64,
    project: String,
    user: String,
    typed: bool,
    holds: BTreeMap<Uuid, u64>,
}

#[derive(Debug, Clone, Default)]
struct Session {
    boot: u64,
    answered_below: u64,
    answers: BTreeMap<u64, Verdict>,
}

/// What a write must answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// HTTP status.
    pub status: u16,
    /// Error code of the body, if it is an error.
    pub code: Option<&'static str>,
}

/// What an entry of the log comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It was carried out or refused, here and now.
    Decided(Verdict),
    /// A repetition: nothing happens, the first verdict holds.
    Repeated(Verdict),
    /// A straggler that nobody waits for any more: nothing happens.
    Straggler,
}

const DONE: fn(u16) -> Verdict = |status| Verdict { status, code: None };
const CONCURRENT: Verdict = Verdict {
    status: 409,
    code: Some("placement.concurrent_update"),
};
const UNDEFINED: Verdict = Verdict {
    status: 409,
    code: Some("placement.undefined_code"),
};

impl Oracle {
    /// Carries out an entry of the log, unless it repeats an earlier one.
    pub fn entry(&mut self, request: Option<RequestId>, write: &Write) -> Effect {
        let Some(request) = request else {
            return Effect::Decided(self.write(write));
        };
        let session = self.sessions.entry(request.origin).or_default();
        if request.boot < session.boot {
            return Effect::Straggler;
        }
        if request.boot > session.boot {
            *session = Session {
                boot: request.boot,
                ..Session::default()
            };
        }
        if let Some(verdict) = session.answers.get(&request.sequence) {
            return Effect::Repeated(*verdict);
        }
        if request.sequence < session.answered_below {
            return Effect::Straggler;
        }
        session.answered_below = session.answered_below.max(request.answered_below);
        let verdict = self.write(write);
        let session = self.sessions.entry(request.origin).or_default();
        session.answers.insert(request.sequence, verdict);
        Effect::Decided(verdict)
    }

    /// Carries out a write and says what it must answer.
    pub fn write(&mut self, write: &Write) -> Verdict {
        match write {
            Write::Housekeeping => DONE(204),
            Write::CreateProvider { provider, name } => self.create_provider(*provider, name),
            Write::SetInventory {
                provider,
                generation,
                total,
                max_unit,
            } => self.set_inventory(*provider, *generation, (*total, *max_unit)),
            Write::Allocate(claims) => self.allocate(claims),
            Write::Release { consumer } => match self.consumers.remove(consumer) {
                Some(_) => DONE(204),
                None => Verdict {
                    status: 404,
                    code: Some("placement.undefined_code"),
                },
            },
        }
    }

    fn create_provider(&mut self, uuid: Uuid, name: &str) -> Verdict {
        let taken = self.providers.contains_key(&uuid)
            || self.providers.values().any(|other| other.name == name);
        if taken {
            return Verdict {
                status: 409,
                code: Some("placement.duplicate_name"),
            };
        }
        let provider = Provider {
            name: name.to_owned(),
            generation: 0,
            inventory: None,
        };
        self.providers.insert(uuid, provider);
        DONE(200)
    }

    fn set_inventory(&mut self, uuid: Uuid, generation: i64, inventory: (u32, u32)) -> Verdict {
        let Some(provider) = self.providers.get_mut(&uuid) else {
            return Verdict {
                status: 404,
                code: Some("placement.undefined_code"),
            };
        };
        if provider.generation != generation {
            return CONCURRENT;
        }
        provider.generation += 1;
        provider.inventory = Some(inventory);
        DONE(200)
    }

    fn allocate(&mut self, claims: &[Claim]) -> Verdict {
        let at = |claim: &Claim| {
            self.consumers
                .get(&claim.consumer)
                .map(|one| one.generation)
        };
        let believed = claims.iter().all(|claim| match claim.belief {
            Belief::Unchecked => true,
            Belief::New => at(claim).is_none(),
            Belief::At(generation) => at(claim) == Some(generation),
        });
        if !believed {
            return CONCURRENT;
        }
        let touched: BTreeSet<Uuid> = claims
            .iter()
            .flat_map(|claim| claim.amounts.keys().copied())
            .collect();
        for provider in &touched {
            if !self.has_room(*provider, claims) {
                return UNDEFINED;
            }
        }
        let mut raised = touched;
        for claim in claims {
            raised.extend(self.give(claim));
        }
        for provider in raised {
            if let Some(provider) = self.providers.get_mut(&provider) {
                provider.generation += 1;
            }
        }
        DONE(204)
    }

    /// Whether the claims fit beside what all other consumers hold.
    fn has_room(&self, provider: Uuid, claims: &[Claim]) -> bool {
        let Some((total, max_unit)) = self.providers.get(&provider).and_then(|one| one.inventory)
        else {
            return false;
        };
        let claimed = claims
            .iter()
            .filter_map(|claim| claim.amounts.get(&provider));
        let others = self
            .consumers
            .iter()
            .filter(|(consumer, _)| claims.iter().all(|claim| claim.consumer != **consumer))
            .filter_map(|(_, consumer)| consumer.holds.get(&provider));
        claimed.clone().all(|amount| *amount <= u64::from(max_unit))
            && claimed.chain(others).sum::<u64>() <= u64::from(total)
    }

    /// Gives one consumer what it claims. Returns the providers of a consumer that gave back all.
    fn give(&mut self, claim: &Claim) -> Vec<Uuid> {
        let before = self.consumers.remove(&claim.consumer);
        if claim.amounts.is_empty() {
            return before
                .map(|one| one.holds.into_keys().collect())
                .unwrap_or_default();
        }
        let typed = match claim.belief {
            Belief::Unchecked => before.as_ref().is_some_and(|one| one.typed),
            Belief::New | Belief::At(_) => true,
        };
        let consumer = Consumer {
            generation: before.map_or(0, |one| one.generation) + 1,
            project: claim.project.clone(),
            user: claim.user.clone(),
            typed,
            holds: claim.amounts.clone(),
        };
        self.consumers.insert(claim.consumer, consumer);
        Vec::new()
    }

    /// What a question must answer: status and, for 200, the body.
    pub fn answer(&self, question: &Question) -> (u16, Value) {
        match question {
            Question::Inventories(uuid) => self.of_provider(uuid, |provider| {
                let inventories = provider
                    .inventory
                    .map_or_else(Map::new, |(total, max_unit)| {
                        let record = json!({
                            "total": total, "reserved": 0, "min_unit": 1, "max_unit": max_unit,
                            "step_size": 1, "allocation_ratio": 1.0,
                        });
                        Map::from_iter([(CLASS.to_owned(), record)])
                    });
                json!({
                    "resource_provider_generation": provider.generation,
                    "inventories": inventories,
                })
            }),
            Question::ProviderUsages(uuid) => self.of_provider(uuid, |provider| {
                let used: u64 = self
                    .consumers
                    .values()
                    .filter_map(|one| one.holds.get(uuid))
                    .sum();
                let usages = match provider.inventory {
                    Some(_) => json!({ CLASS: used }),
                    None => json!({}),
                };
                json!({ "resource_provider_generation": provider.generation, "usages": usages })
            }),
            Question::ProviderAllocations(uuid) => self.of_provider(uuid, |provider| {
                let allocations: Map<String, Value> = self
                    .consumers
                    .iter()
                    .filter_map(|(consumer, one)| {
                        let amount = one.holds.get(uuid)?;
                        let held = json!({
                            "resources": { CLASS: amount },
                            "consumer_generation": one.generation,
                        });
                        Some((consumer.to_string(), held))
                    })
                    .collect();
                json!({
                    "resource_provider_generation": provider.generation,
                    "allocations": allocations,
                })
            }),
            Question::Allocations(consumer) => (200, self.consumer_body(consumer)),
            Question::ProjectUsages(project) => (200, self.project_body(project)),
        }
    }

    fn of_provider(&self, uuid: &Uuid, body: impl Fn(&Provider) -> Value) -> (u16, Value) {
        self.providers
            .get(uuid)
            .map_or((404, Value::Null), |provider| (200, body(provider)))
    }

    fn consumer_body(&self, uuid: &Uuid) -> Value {
        let Some(consumer) = self.consumers.get(uuid) else {
            return json!({ "allocations": {} });
        };
        let allocations: Map<String, Value> = consumer
            .holds
            .iter()
            .map(|(provider, amount)| {
                let generation = self.providers.get(provider).map(|one| one.generation);
                let held = json!({ "generation": generation, "resources": { CLASS: amount } });
                (provider.to_string(), held)
            })
            .collect();
        json!({
            "allocations": allocations,
            "project_id": consumer.project,
            "user_id": consumer.user,
            "consumer_generation": consumer.generation,
            "consumer_type": if consumer.typed { CONSUMER_TYPE } else { "unknown" },
        })
    }

    fn project_body(&self, project: &str) -> Value {
        let mut usages = Map::new();
        for typed in [true, false] {
            let of_type: Vec<&Consumer> = self
                .consumers
                .values()
                .filter(|one| one.project == project && one.typed == typed)
                .collect();
            if !of_type.is_empty() {
                let used: u64 = of_type.iter().flat_map(|one| one.holds.values()).sum();
                let name = if typed { CONSUMER_TYPE } else { "unknown" };
                let usage = json!({ CLASS: used, "consumer_count": of_type.len() });
                usages.insert(name.to_owned(), usage);
            }
        }
        json!({ "usages": usages })
    }

    /// Every question that can be asked of the final state.
    pub fn every_question(&self) -> Vec<Question> {
        let projects: BTreeSet<&String> = self
            .consumers
            .values()
            .map(|consumer| &consumer.project)
            .collect();
        let providers = self.providers.keys().flat_map(|uuid| {
            [
                Question::Inventories(*uuid),
                Question::ProviderUsages(*uuid),
                Question::ProviderAllocations(*uuid),
            ]
        });
        providers
            .chain(
                self.consumers
                    .keys()
                    .map(|uuid| Question::Allocations(*uuid)),
            )
            .chain(
                projects
                    .into_iter()
                    .map(|one| Question::ProjectUsages(one.clone())),
            )
            .collect()
    }
}
