//! What the clients of one round share: what is there to contend for, who can be asked, and the history
//! that they write together.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use placement_witness::history::{Answer, End, History};
use placement_witness::http::ask;
use placement_witness::operation::{Operation, Token};
use placement_witness::workload::{Choices, Names};
use tokio::net::TcpStream;

/// Where a round is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Faults.
    Storm,
    /// All is mended: every client must get writes through.
    Calm,
    /// No client asks anything more.
    Over,
}

/// How long a client waits for an answer: longer than a node waits for a leader.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) struct Board {
    pub(super) choices: Choices,
    pub(super) names: Names,
    pub(super) history: RefCell<History>,
    pub(super) phase: Cell<Phase>,
    /// Where each node is asked.
    pub(super) nodes: RefCell<BTreeMap<u64, String>>,
    /// Clients that have done their part in the calm.
    pub(super) content: Cell<usize>,
    /// The furthest place in the log that anybody was told.
    pub(super) furthest: Cell<Option<Token>>,
    /// The leader that was named last.
    pub(super) leader: Cell<Option<u64>>,
    begun: Instant,
}

impl Board {
    pub(super) fn new(choices: Choices, nodes: BTreeMap<u64, String>) -> Self {
        Self {
            choices,
            names: Names::new(&choices),
            history: RefCell::default(),
            phase: Cell::new(Phase::Storm),
            nodes: RefCell::new(nodes),
            content: Cell::new(0),
            furthest: Cell::new(None),
            leader: Cell::new(None),
            begun: Instant::now(),
        }
    }

    /// Since the round began.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Sends an operation to a node and writes down what came of it.
    pub(super) async fn perform(
        &self,
        client: usize,
        node: u64,
        operation: Operation,
    ) -> Option<Answer> {
        let request = operation.request();
        // One that was taken out meanwhile listens no more.
        let address = self.nodes.borrow().get(&node).cloned()?;
        let sent = self.elapsed();
        let event = (self.history.borrow_mut()).begin(client, node, operation, sent);
        let end = ask(TcpStream::connect(address), &request, PATIENCE).await;
        let answer = match &end {
            End::Answer(answer) => Some(answer.clone()),
            _ => None,
        };
        self.history.borrow_mut().end(event, self.elapsed(), end);
        if let Some(answer) = answer.as_ref().filter(|answer| answer.status < 500) {
            self.furthest.set(self.furthest.get().max(answer.index));
            self.leader.set(answer.known_leader.or(self.leader.get()));
        }
        answer
    }
}
