//! Simulated clients: they contend for few units of few providers through random nodes, believe
//! what they last saw, and write everything down.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use uuid::Uuid;

use crate::history::Answer;
use crate::operation::{Belief, Claim, Level, Operation, Question, Token, Write};
use crate::outside::uuid_from;
use crate::shared::{Phase, Shared};

/// Writes that each client must get through after the storm.
const CALM_WRITES: usize = 4;

/// A client with its own choices.
pub struct Client {
    number: usize,
    shared: Rc<Shared>,
    random: SmallRng,
    /// Generations as last seen; `None`: no such consumer.
    beliefs: BTreeMap<Uuid, Option<i64>>,
    /// The last place in the log that this client was told.
    token: Option<Token>,
    marks: u32,
}

impl Client {
    /// The client with this number, from 0.
    pub fn new(number: usize, shared: Rc<Shared>) -> Self {
        let random = shared.parameters.seed.stream(&format!("workload {number}"));
        Self {
            number,
            shared,
            random,
            beliefs: BTreeMap::new(),
            token: None,
            marks: 0,
        }
    }

    /// Makes the first providers, then works through storm and calm.
    pub async fn work(mut self) -> turmoil::Result {
        if self.number == 0 {
            self.set_up().await;
            self.shared.phase.set(Phase::Storm);
        }
        self.shared.until(Phase::Storm).await;
        while self.shared.phase.get() == Phase::Storm {
            self.step().await;
        }
        let mut written = 0;
        while written < CALM_WRITES && self.shared.phase.get() == Phase::Calm {
            written += usize::from(self.step().await);
        }
        self.shared.content.set(self.shared.content.get() + 1);
        Ok(())
    }

    async fn set_up(&mut self) {
        for number in 0..self.shared.parameters.providers {
            let provider = uuid_from(&mut self.random);
            let name = format!("host{number}");
            let create = Write::CreateProvider { provider, name };
            self.insist(create).await;
            let stock = Write::SetInventory {
                provider,
                generation: 0,
                total: self.shared.parameters.total,
                max_unit: self.mark(),
            };
            self.insist(stock).await;
            self.shared.providers.borrow_mut().push(provider);
        }
    }

    /// Repeats a write until it is done; a conflict then means that an earlier try was.
    async fn insist(&mut self, write: Write) {
        loop {
            let node = self.node();
            let operation = Operation::Write(write.clone());
            let answer = self.shared.perform(self.number, node, operation).await;
            if answer.is_some_and(|answer| answer.status < 500) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// A number that no other write carries, fit for `max_unit`.
    fn mark(&mut self) -> u32 {
        self.marks += 1;
        1_000_000 * (u32::try_from(self.number).expect("few clients") + 1) + self.marks
    }

    fn node(&mut self) -> u64 {
        *self
            .shared
            .nodes
            .borrow()
            .choose(&mut self.random)
            .expect("some node is up")
    }

    /// One request. True if it was a write and it was answered.
    async fn step(&mut self) -> bool {
        let pause = self.shared.parameters.pause_max;
        tokio::time::sleep(pause.mul_f64(self.random.random_range(0.0..1.0))).await;
        let node = self.node();
        let Some(operation) = self.choose(node).await else {
            return false;
        };
        let is_write = matches!(operation, Operation::Write(_));
        let answer = self
            .shared
            .perform(self.number, node, operation.clone())
            .await;
        self.learn(&operation, answer.as_ref());
        is_write && answer.is_some_and(|answer| answer.status < 500)
    }

    async fn choose(&mut self, node: u64) -> Option<Operation> {
        if self.random.random_range(0..100) >= self.shared.parameters.writes_percent {
            return Some(self.choose_read());
        }
        match self.random.random_range(0..100) {
            0..60 => Some(self.choose_claims(1)),
            60..72 => {
                let most = self.shared.consumers.len().min(3);
                Some(self.choose_claims(most))
            }
            72..86 => {
                let consumer = self.consumer();
                Some(Operation::Write(Write::Release { consumer }))
            }
            86..95 => self.choose_growth(node).await,
            _ => {
                let name = format!("made-{}", self.mark());
                let provider = uuid_from(&mut self.random);
                Some(Operation::Write(Write::CreateProvider { provider, name }))
            }
        }
    }

    fn consumer(&mut self) -> Uuid {
        *self
            .shared
            .consumers
            .choose(&mut self.random)
            .expect("there are consumers")
    }

    fn choose_read(&mut self) -> Operation {
        let provider = *self
            .shared
            .providers
            .borrow()
            .choose(&mut self.random)
            .expect("the setup made providers");
        let question = match self.random.random_range(0..10) {
            0..4 => Question::Allocations(self.consumer()),
            4..6 => Question::ProviderUsages(provider),
            6..8 => Question::ProviderAllocations(provider),
            8 => Question::Inventories(provider),
            _ => {
                let project = self.shared.projects.choose(&mut self.random);
                Question::ProjectUsages(project.expect("there are projects").clone())
            }
        };
        let level = match (self.random.random_range(0..100), self.token) {
            (0..30, _) => Level::Default,
            (30..60, _) => Level::Linearizable,
            (60..75, Some(token)) => Level::Session(token),
            (75..85, _) => Level::Bounded(self.random.random_range(100..2000)),
            _ => Level::Local,
        };
        Operation::Read(question, level)
    }

    /// Claims for up to `most` consumers; with one, sometimes an empty one.
    fn choose_claims(&mut self, most: usize) -> Operation {
        let unchecked = self.random.random_range(0..100) < self.shared.parameters.unchecked_percent;
        let mut consumers: Vec<Uuid> = self
            .shared
            .consumers
            .choose_multiple(&mut self.random, most)
            .copied()
            .collect();
        consumers.sort();
        let user = format!("user{}", self.mark());
        let claims = consumers
            .into_iter()
            .map(|consumer| {
                let belief = match (unchecked, self.beliefs.get(&consumer)) {
                    (true, _) => Belief::Unchecked,
                    (false, Some(Some(generation))) => Belief::At(*generation),
                    (false, _) => Belief::New,
                };
                let give_back = matches!(belief, Belief::At(_)) && self.random.random_bool(0.1);
                let amounts = if give_back {
                    BTreeMap::new()
                } else {
                    self.amounts()
                };
                let project = self.shared.projects.choose(&mut self.random);
                let project = project.expect("there are projects").clone();
                Claim {
                    consumer,
                    project,
                    user: user.clone(),
                    belief,
                    amounts,
                }
            })
            .collect();
        Operation::Write(Write::Allocate(claims))
    }

    fn amounts(&mut self) -> BTreeMap<Uuid, u64> {
        let providers = self.shared.providers.borrow();
        let count = if self.random.random_bool(0.25) { 2 } else { 1 };
        let chosen: Vec<Uuid> = providers
            .choose_multiple(&mut self.random, count)
            .copied()
            .collect();
        chosen
            .into_iter()
            .map(|provider| (provider, self.random.random_range(1..=3)))
            .collect()
    }

    /// One unit more for a provider, on top of what a fresh look shows. Inventories never shrink.
    async fn choose_growth(&mut self, node: u64) -> Option<Operation> {
        let provider = *self.shared.providers.borrow().choose(&mut self.random)?;
        let look = Operation::Read(Question::Inventories(provider), Level::Local);
        let answer = self.shared.perform(self.number, node, look).await?;
        let body = answer.json();
        let generation = body["resource_provider_generation"].as_i64()?;
        let total = body["inventories"][crate::operation::CLASS]["total"].as_u64()?;
        Some(Operation::Write(Write::SetInventory {
            provider,
            generation,
            total: u32::try_from(total).ok()? + 1,
            max_unit: self.mark(),
        }))
    }

    fn learn(&mut self, operation: &Operation, answer: Option<&Answer>) {
        let status = answer.map_or(0, |answer| answer.status);
        if let Some(index) = answer
            .filter(|_| status < 500)
            .and_then(|answer| answer.index)
        {
            self.token = Some(index);
        }
        match operation {
            Operation::Read(Question::Allocations(consumer), _) if status == 200 => {
                let body = answer.map(Answer::json).unwrap_or_default();
                self.beliefs
                    .insert(*consumer, body["consumer_generation"].as_i64());
            }
            Operation::Write(Write::Allocate(claims)) => {
                for claim in claims {
                    match (status, claim.belief) {
                        (204, _) if claim.amounts.is_empty() => {
                            self.beliefs.insert(claim.consumer, None)
                        }
                        (204, Belief::New) => self.beliefs.insert(claim.consumer, Some(1)),
                        (204, Belief::At(was)) => {
                            self.beliefs.insert(claim.consumer, Some(was + 1))
                        }
                        // A belief that proved wrong is replaced by a guess, which a read corrects.
                        (409, Belief::New) => self.beliefs.insert(claim.consumer, Some(1)),
                        (409, Belief::At(_)) => self.beliefs.remove(&claim.consumer),
                        _ => None,
                    };
                }
            }
            Operation::Write(Write::Release { consumer }) if status == 204 || status == 404 => {
                self.beliefs.insert(*consumer, None);
            }
            _ => {}
        }
    }
}
