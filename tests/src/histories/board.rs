//! State that the clients of one round share: contended names, nodes to ask, and the history of
//! their requests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use placement_witness::client::Venue;
use placement_witness::history::{Answer, History};
use placement_witness::http::ask;
use placement_witness::operation::{Operation, Token};
use placement_witness::workload::{Choices, Names};
use tokio::net::TcpStream;

/// Phase of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Faults are injected while clients work.
    Faults,
    /// All faults are repaired: every client must complete writes.
    Recovery,
    /// Clients send no more requests.
    Over,
}

/// Timeout of a client's request: longer than a node waits for a leader.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) struct RoundContext {
    pub(super) choices: Choices,
    pub(super) names: Names,
    pub(super) history: RefCell<History>,
    pub(super) phase: Cell<Phase>,
    /// API address of each node.
    pub(super) nodes: RefCell<BTreeMap<u64, String>>,
    /// Clients that have finished the recovery phase.
    pub(super) content: Cell<usize>,
    begun: Instant,
}

impl RoundContext {
    pub(super) fn new(choices: Choices, nodes: BTreeMap<u64, String>) -> Self {
        Self {
            choices,
            names: Names::new(&choices),
            history: RefCell::default(),
            phase: Cell::new(Phase::Faults),
            nodes: RefCell::new(nodes),
            content: Cell::new(0),
            begun: Instant::now(),
        }
    }

    /// Time since the round began.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The leader named by the most recent answer.
    pub(super) fn leader(&self) -> Option<u64> {
        let history = self.history.borrow();
        let answers = (history.events.iter().rev()).filter_map(|event| event.answer());
        let mut good = answers.filter(|answer| answer.status < 500);
        good.find_map(|answer| answer.known_leader)
    }
}

impl Venue for RoundContext {
    fn names(&self) -> &Names {
        &self.names
    }

    fn nodes(&self) -> Vec<u64> {
        self.nodes.borrow().keys().copied().collect()
    }

    fn furthest(&self) -> Option<Token> {
        self.history.borrow().furthest
    }

    async fn perform(&self, client: usize, node: u64, operation: Operation) -> Option<Answer> {
        let request = operation.request();
        // A node that was removed in the meantime no longer listens.
        let address = self.nodes.borrow().get(&node).cloned()?;
        let sent = self.elapsed();
        let event = (self.history.borrow_mut()).begin(client, node, operation, sent);
        let end = ask(TcpStream::connect(address), &request, PATIENCE).await;
        let answer = end.answer().cloned();
        self.history.borrow_mut().end(event, self.elapsed(), end);
        answer
    }
}
