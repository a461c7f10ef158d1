//! Clients that contend for few names through random nodes.

use std::rc::Rc;
use std::time::Duration;

use placement_witness::beliefs::Beliefs;
use placement_witness::history::Answer;
use placement_witness::operation::{Level, Operation, Question, Write};
use placement_witness::workload::Workload;
use rand::Rng;
use rand::seq::IteratorRandom;
use tokio::time::sleep;

use super::board::{Board, Phase};

/// Longest pause between two requests.
const PAUSE_MAX: Duration = Duration::from_millis(90);
const WRITES_PERCENT: u32 = 60;
/// Writes that each client must get through after the storm.
const CALM_WRITES: usize = 4;
const CALM_WRITES_PERCENT: u32 = 80;
/// Units of each provider at the beginning.
const TOTAL: u32 = 8;

/// A client with its own choices.
pub(super) struct Client {
    number: usize,
    board: Rc<Board>,
    workload: Workload,
    beliefs: Beliefs,
}

impl Client {
    pub(super) fn new(number: usize, board: Rc<Board>) -> Self {
        Self {
            number,
            workload: Workload::new(number, &board.choices),
            beliefs: Beliefs::default(),
            board,
        }
    }

    /// Makes the first providers.
    pub(super) async fn set_up(&mut self) {
        let board = self.board.clone();
        for write in self.workload.set_up(&board.names, TOTAL) {
            self.insist(write).await;
        }
    }

    /// Works through storm and calm.
    pub(super) async fn work(mut self) {
        while self.board.phase.get() == Phase::Storm {
            self.step(WRITES_PERCENT).await;
        }
        let mut written = 0;
        while written < CALM_WRITES && self.board.phase.get() == Phase::Calm {
            written += usize::from(self.step(CALM_WRITES_PERCENT).await);
        }
        self.board.content.set(self.board.content.get() + 1);
    }

    /// Asks one node everything once the storm is over.
    pub(super) async fn read_all(self, node: u64, questions: Rc<Vec<Question>>) {
        let furthest = self.board.furthest.get();
        for question in questions.iter() {
            let level = furthest.map_or(Level::Linearizable, Level::Session);
            let read = Operation::Read(question.clone(), level);
            while !self.is_answered(node, read.clone()).await {
                sleep(Duration::from_millis(50)).await;
            }
        }
    }

    async fn is_answered(&self, node: u64, operation: Operation) -> bool {
        let answer = self.board.perform(self.number, node, operation).await;
        answer.is_some_and(|answer| answer.status < 500)
    }

    /// Repeats a write until it is done; a conflict then means that an earlier try was.
    async fn insist(&mut self, write: Write) {
        loop {
            let node = self.node();
            if (self.is_answered(node, Operation::Write(write.clone()))).await {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn node(&mut self) -> u64 {
        let nodes = self.board.nodes.borrow();
        let chosen = nodes.keys().copied().choose(&mut self.workload.random);
        chosen.expect("a cluster has nodes")
    }

    /// One request, sometimes with a look before it. True if it was a write and it was answered.
    async fn step(&mut self, writes_percent: u32) -> bool {
        let part = self.workload.random.random_range(0.0..1.0);
        sleep(PAUSE_MAX.mul_f64(part)).await;
        let board = self.board.clone();
        let node = self.node();
        if !self.workload.percent(writes_percent) {
            let question = self.workload.question(&board.names);
            let level = self.workload.level(self.beliefs.token);
            self.perform(node, Operation::Read(question, level)).await;
            return false;
        }
        let (kind, providers) = self.workload.kind(&board.names);
        for look in self.workload.looks(kind, &providers) {
            self.perform(node, look).await;
        }
        let write = (self.workload).write(kind, &providers, &board.names, &self.beliefs);
        let Some(write) = write else {
            return false;
        };
        let answer = self.perform(node, Operation::Write(write)).await;
        answer.is_some_and(|answer| answer.status < 500)
    }

    async fn perform(&mut self, node: u64, operation: Operation) -> Option<Answer> {
        let asked = operation.clone();
        let answer = self.board.perform(self.number, node, operation).await;
        if let Some(answer) = &answer {
            self.beliefs.learn(&asked, answer);
        }
        answer
    }
}
