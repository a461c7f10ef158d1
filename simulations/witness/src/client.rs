//! Clients that contend for few names through random nodes, and assume the state that they last
//! saw.

use std::rc::Rc;
use std::time::Duration;

use rand::Rng;
use rand::seq::IndexedRandom;
use tokio::time::sleep;

use crate::beliefs::Beliefs;
use crate::history::Answer;
use crate::operation::{Level, Operation, Question, Token, Write};
use crate::workload::{Choices, Names, Workload};

/// Writes that each client must complete after the faults.
const RECOVERY_WRITES: usize = 4;
/// Percentage of writes among the requests after the faults; high, as little time remains.
const RECOVERY_WRITES_PERCENT: u32 = 80;

/// Number of times that a client repeats a write, and its first pause before a repetition, which
/// doubles each time.
const REPEATS: u32 = 3;
const REPEAT_PAUSE: Duration = Duration::from_millis(100);

/// Where clients send requests: a simulated cluster, or one of processes.
pub trait Venue {
    /// The names that clients contend for.
    fn names(&self) -> &Names;

    /// The nodes that may get requests; at least one.
    fn nodes(&self) -> Vec<u64>;

    /// The highest index that any client was shown.
    fn furthest(&self) -> Option<Token>;

    /// Sends an operation of a client to a node, and records the outcome.
    fn perform(
        &self,
        client: usize,
        node: u64,
        operation: Operation,
    ) -> impl Future<Output = Option<Answer>>;
}

impl<V: Venue> Venue for Rc<V> {
    fn names(&self) -> &Names {
        (**self).names()
    }

    fn nodes(&self) -> Vec<u64> {
        (**self).nodes()
    }

    fn furthest(&self) -> Option<Token> {
        (**self).furthest()
    }

    async fn perform(&self, client: usize, node: u64, operation: Operation) -> Option<Answer> {
        (**self).perform(client, node, operation).await
    }
}

/// A client with its own random choices.
pub struct Client<V> {
    number: usize,
    venue: V,
    workload: Workload,
    beliefs: Beliefs,
    pause_max: Duration,
}

impl<V: Venue> Client<V> {
    /// Client `number`, from 0, with a pause of up to `pause_max` before each request.
    pub fn new(number: usize, venue: V, choices: &Choices, pause_max: Duration) -> Self {
        Self {
            number,
            venue,
            workload: Workload::new(number, choices),
            beliefs: Beliefs::default(),
            pause_max,
        }
    }

    /// Creates the first providers, with `total` units each.
    pub async fn set_up(&mut self, total: u32) {
        for write in self.workload.set_up(self.venue.names(), total) {
            self.repeat_until_answered(write).await;
        }
    }

    /// Repeats a write until it is answered; a conflict means that an earlier attempt succeeded.
    async fn repeat_until_answered(&mut self, write: Write) {
        let operation = Operation::Write(write);
        loop {
            let node = self.node();
            if is_answered(&self.venue, self.number, node, &operation).await {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn node(&mut self) -> u64 {
        let nodes = self.venue.nodes();
        let chosen = nodes.choose(&mut self.workload.random);
        *chosen.expect("some node is up")
    }

    /// Sends one request, a write sometimes after some reads. Returns true for an answered write.
    pub async fn step(&mut self, writes_percent: u32) -> bool {
        let part = self.workload.random.random_range(0.0..1.0);
        sleep(self.pause_max.mul_f64(part)).await;
        let node = self.node();
        if !self.workload.percent(writes_percent) {
            let question = self.workload.question(self.venue.names());
            // Tokens of another cluster are invalid in this one.
            let furthest = self.venue.furthest().map(|token| token.epoch);
            let token = self.beliefs.token;
            let token = token.filter(|token| Some(token.epoch) == furthest);
            let level = self.workload.level(token);
            self.perform(node, Operation::Read(question, level)).await;
            return false;
        }
        let (kind, providers) = self.workload.kind(self.venue.names());
        for look in self.workload.looks(kind, &providers) {
            self.perform(node, look).await;
        }
        let names = self.venue.names();
        let Some(write) = self.workload.write(kind, &providers, names, &self.beliefs) else {
            return false;
        };
        let repeats = if self.workload.is_repeated(&write) {
            REPEATS
        } else {
            0
        };
        let operation = Operation::Write(write);
        let mut answer = self.perform(node, operation.clone()).await;
        for nth in 0..repeats {
            if !is_failure(answer.as_ref()) {
                break;
            }
            sleep(REPEAT_PAUSE * 2_u32.pow(nth)).await;
            let node = self.workload.node_for_repetition(&self.venue.nodes());
            answer = self.perform(node, operation.clone()).await;
        }
        answer.is_some_and(|answer| answer.status < 500)
    }

    /// After the faults: sends requests until `RECOVERY_WRITES` writes have been answered, or until
    /// `may` returns false.
    pub async fn be_content(&mut self, may: impl Fn() -> bool) {
        let mut written = 0;
        while written < RECOVERY_WRITES && may() {
            written += usize::from(self.step(RECOVERY_WRITES_PERCENT).await);
        }
    }

    async fn perform(&mut self, node: u64, operation: Operation) -> Option<Answer> {
        let asked = operation.clone();
        let answer = self.venue.perform(self.number, node, operation).await;
        if let Some(answer) = &answer {
            self.beliefs.learn(&asked, answer);
        }
        answer
    }
}

/// Whether keystoneauth repeats a request after this answer: a failed connection or 503.
fn is_failure(answer: Option<&Answer>) -> bool {
    answer.is_none_or(|answer| answer.status == 503)
}

/// Asks one node all questions; the witness then checks that it has all acknowledged writes.
pub async fn read_all(venue: &impl Venue, client: usize, node: u64, questions: &[Question]) {
    let session = || venue.furthest().map_or(Level::Linearizable, Level::Session);
    for question in questions {
        read(venue, client, node, question, session()).await;
    }
    if let Some(first) = questions.first() {
        read(venue, client, node, first, Level::Linearizable).await;
    }
}

/// Repeats a read until it is answered.
async fn read(venue: &impl Venue, client: usize, node: u64, question: &Question, level: Level) {
    let operation = Operation::Read(question.clone(), level);
    while !is_answered(venue, client, node, &operation).await {
        sleep(Duration::from_millis(50)).await;
    }
}

async fn is_answered(venue: &impl Venue, client: usize, node: u64, operation: &Operation) -> bool {
    let answer = venue.perform(client, node, operation.clone()).await;
    answer.is_some_and(|answer| answer.status < 500)
}
