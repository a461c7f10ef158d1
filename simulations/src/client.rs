//! Simulated clients: they contend for few units of few providers through random nodes, believe
//! what they last saw, and write everything down.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use uuid::Uuid;

use crate::history::{Answer, End, History};
use crate::http::call;
use crate::operation::{Belief, Claim, Level, Operation, Question, Token, Write};
use crate::outside::uuid_from;
use crate::parameters::Parameters;

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The cluster forms; the first providers are made.
    Setup,
    /// Faults.
    Storm,
    /// All is mended: every request must succeed again before long.
    Calm,
    /// Everything is read once more, from every node.
    Scan,
    /// Over.
    Done,
}

/// What the clients of one run share.
pub struct Shared {
    /// The choices of the run.
    pub parameters: Parameters,
    /// What everybody saw.
    pub history: RefCell<History>,
    /// Where the run is.
    pub phase: Cell<Phase>,
    /// Providers that surely exist, with inventory.
    pub providers: RefCell<Vec<Uuid>>,
    /// Consumers that contend.
    pub consumers: Vec<Uuid>,
    /// Projects that are charged.
    pub projects: Vec<String>,
    /// Nodes that answer, as far as the run wants them to.
    pub nodes: RefCell<Vec<u64>>,
    /// Clients that have done their part in the calm.
    pub content: Cell<usize>,
    /// The furthest place in the log that anybody was told.
    pub furthest: Cell<Option<Token>>,
}

/// Writes that each client must get through after the storm.
const CALM_WRITES: usize = 4;

impl Shared {
    /// What the clients of a run begin with.
    pub fn new(parameters: Parameters) -> Rc<Self> {
        let random = &mut parameters.seed.stream("names");
        let consumers = (0..parameters.consumers)
            .map(|_| uuid_from(random))
            .collect();
        let nodes = (1..=parameters.nodes).collect();
        Rc::new(Self {
            parameters,
            history: RefCell::default(),
            phase: Cell::new(Phase::Setup),
            providers: RefCell::default(),
            consumers,
            projects: vec!["red".to_owned(), "blue".to_owned()],
            nodes: RefCell::new(nodes),
            content: Cell::new(0),
            furthest: Cell::new(None),
        })
    }

    /// Sends an operation to a node and writes down what came of it.
    async fn perform(&self, client: usize, node: u64, operation: Operation) -> Option<Answer> {
        let request = operation.request();
        let event = self
            .history
            .borrow_mut()
            .begin(client, node, operation, now());
        let end = call(node, &request, self.parameters.patience).await;
        let answer = match &end {
            End::Answer(answer) => Some(answer.clone()),
            _ => None,
        };
        self.history.borrow_mut().end(event, now(), end);
        if let Some(index) = answer
            .as_ref()
            .filter(|one| one.status < 500)
            .and_then(|one| one.index)
        {
            self.furthest.set(self.furthest.get().max(Some(index)));
        }
        answer
    }

    /// Waits until the run is in `phase` or further.
    async fn until(&self, phase: Phase) {
        while self.phase.get() < phase {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn now() -> Duration {
    turmoil::sim_elapsed().unwrap_or_default()
}

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

/// Reads everything from every node once all is calm: what was acknowledged must be there.
pub async fn scan(shared: Rc<Shared>) -> turmoil::Result {
    shared.until(Phase::Scan).await;
    let scanner = shared.parameters.clients;
    let mut questions: Vec<Question> = Vec::new();
    for provider in shared.providers.borrow().iter() {
        questions.push(Question::Inventories(*provider));
        questions.push(Question::ProviderUsages(*provider));
        questions.push(Question::ProviderAllocations(*provider));
    }
    questions.extend(
        shared
            .consumers
            .iter()
            .map(|consumer| Question::Allocations(*consumer)),
    );
    questions.extend(
        shared
            .projects
            .iter()
            .map(|one| Question::ProjectUsages(one.clone())),
    );
    let nodes = shared.nodes.borrow().clone();
    for node in nodes {
        for question in &questions {
            let level = match shared.furthest.get() {
                Some(token) => Level::Session(token),
                None => Level::Linearizable,
            };
            loop {
                let operation = Operation::Read(question.clone(), level.clone());
                let answer = shared.perform(scanner, node, operation).await;
                if answer.is_some_and(|answer| answer.status < 500) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let fresh = Operation::Read(questions[0].clone(), Level::Linearizable);
        while !shared
            .perform(scanner, node, fresh.clone())
            .await
            .is_some_and(|answer| answer.status < 500)
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    shared.phase.set(Phase::Done);
    Ok(())
}
