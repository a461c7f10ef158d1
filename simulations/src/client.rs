//! Simulated clients: they contend for few names through random nodes, believe what they last saw,
//! and write everything down.

use std::rc::Rc;
use std::time::Duration;

use rand::Rng;
use rand::seq::IndexedRandom;

use crate::beliefs::Beliefs;
use crate::history::Answer;
use crate::library::Library;
use crate::mutant::Mutant;
use crate::operation::{Operation, Write};
use crate::parameters::OurClient;
use crate::shared::{Phase, Shared};
use crate::workload::Workload;

/// Writes that each client must get through after the storm.
const CALM_WRITES: usize = 4;
/// Writes among 100 requests after the storm: little time is left then.
const CALM_WRITES_PERCENT: u32 = 80;

/// A client with its own choices.
pub struct Client {
    number: usize,
    shared: Rc<Shared>,
    workload: Workload,
    beliefs: Beliefs,
    mutant: Option<Mutant>,
    /// Our own client, if this is it.
    library: Option<Library>,
}

/// Which client is our own, if it is among them.
const OURS: usize = 1;

impl Client {
    /// The client with this number, from 0.
    pub fn new(number: usize, shared: Rc<Shared>, mutant: Option<Mutant>) -> Self {
        let workload = Workload::new(number, &shared.parameters.choices());
        Self {
            number,
            shared,
            workload,
            beliefs: Beliefs::default(),
            mutant,
            library: None,
        }
    }

    /// Makes the first providers, then works through storm and calm.
    pub async fn work(mut self) -> turmoil::Result {
        if self.number == OURS && self.shared.parameters.our_client != OurClient::Absent {
            let lies = self.mutant == Some(Mutant::LostAsNotSent);
            self.library = Some(Library::new(self.number, &self.shared, lies));
        }
        if self.number == 0 {
            self.set_up().await;
            self.shared.phase.set(Phase::Storm);
        }
        self.shared.until(Phase::Storm).await;
        while self.shared.phase.get() == Phase::Storm {
            self.step(self.shared.parameters.writes_percent).await;
        }
        let mut written = 0;
        while written < CALM_WRITES && self.shared.phase.get() == Phase::Calm {
            written += usize::from(self.step(CALM_WRITES_PERCENT).await);
        }
        self.shared.content.set(self.shared.content.get() + 1);
        Ok(())
    }

    async fn set_up(&mut self) {
        let total = self.shared.parameters.total;
        for write in self.workload.set_up(&self.shared.names, total) {
            self.insist(write).await;
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

    fn node(&mut self) -> u64 {
        *self
            .shared
            .nodes
            .borrow()
            .choose(&mut self.workload.random)
            .expect("some node is up")
    }

    /// One request, sometimes with a look before it. True if it was a write and it was answered.
    async fn step(&mut self, writes_percent: u32) -> bool {
        let pause = self.shared.parameters.pause_max;
        let part = self.workload.random.random_range(0.0..1.0);
        tokio::time::sleep(pause.mul_f64(part)).await;
        let node = self.node();
        if self.workload.percent(writes_percent) {
            let (kind, providers) = self.workload.kind(&self.shared.names);
            for look in self.workload.looks(kind, &providers) {
                self.perform(node, look).await;
            }
            let write = (self.workload).write(kind, &providers, &self.shared.names, &self.beliefs);
            let Some(write) = write else {
                return false;
            };
            let answer = self.perform(node, Operation::Write(write)).await;
            return answer.is_some_and(|answer| answer.status < 500);
        }
        let question = self.workload.question(&self.shared.names);
        let level = self.workload.level(self.beliefs.token);
        self.perform(node, Operation::Read(question, level)).await;
        false
    }

    async fn perform(&mut self, node: u64, operation: Operation) -> Option<Answer> {
        let asked = operation.clone();
        let answer = match &self.library {
            Some(library) => library.perform(operation).await,
            None => self.shared.perform(self.number, node, operation).await,
        };
        if let Some(answer) = &answer {
            self.beliefs.learn(&asked, answer);
        }
        answer
    }
}
