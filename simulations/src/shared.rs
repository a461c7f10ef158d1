//! State shared by the clients of one run: the phase, the names that they contend for, and their
//! common history.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use placement_witness::client::Venue;

use crate::history::{Answer, ChangeLogRange, End, Event, History};
use crate::mutant::{Mutant, Proxy};
use crate::operation::{Operation, Question, Token};
use crate::parameters::Parameters;
use crate::workload::Names;

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The cluster forms, and the first providers are created.
    Setup,
    /// The planned faults happen.
    Faults,
    /// All faults have ended: every request must succeed again within a limit.
    Recovery,
    /// Clients continue for a while in the healthy cluster, where no request may be refused.
    Further,
    /// Clients wait for their last answers.
    Answered,
    /// The scanner reads everything from every node.
    Scan,
    /// The run is over.
    Done,
}

/// The number of a node's start and the range of its change log, if it runs.
pub(crate) type ChangeLogReader = Box<dyn Fn() -> Option<(u64, ChangeLogRange)>>;

/// State shared by the clients of one run.
pub struct Shared {
    /// Parameters of the run.
    pub parameters: Parameters,
    /// Requests and answers of all clients.
    pub history: RefCell<History>,
    /// Requests and answers of the neighbour's clients.
    pub neighbours: RefCell<History>,
    /// Number of requests recorded before the cluster was lost.
    before: Cell<usize>,
    /// Number of requests in flight at that time: the restored cluster may execute requests that
    /// reach a node late.
    under_way: Cell<usize>,
    /// Current phase of the run.
    pub phase: Cell<Phase>,
    /// Names that the clients contend for.
    pub names: Names,
    /// Nodes to send requests to.
    pub nodes: RefCell<Vec<u64>>,
    /// Shows the change log of each node.
    pub(crate) change_logs: RefCell<BTreeMap<u64, ChangeLogReader>>,
    /// The start of the node that each request in flight was sent to, by event.
    starts: RefCell<BTreeMap<usize, u64>>,
    /// Questions of the final scan, for the clients' partition and for the neighbour's.
    pub questions: RefCell<[Vec<Question>; 2]>,
    /// Number of times that a client has completed a phase after the faults: once for the recovery
    /// phase, once for the further phase.
    pub content: Cell<usize>,
    /// Whether the watchers have seen all changes.
    pub watched: Cell<bool>,
    /// Number of events that watchers received.
    pub events: Cell<usize>,
    /// Number of earlier moments that watchers compared.
    pub looked_back: Cell<usize>,
    proxy: Proxy,
}

impl Shared {
    /// The state before the first request.
    pub fn new(parameters: Parameters, mutant: Option<Mutant>) -> Rc<Self> {
        let names = Names::new(&parameters.choices());
        let nodes = (1..=parameters.nodes).collect();
        let history = |partition| {
            RefCell::new(History {
                partition,
                ..History::default()
            })
        };
        let (clouds, watchers) = (parameters.clouds, parameters.watchers);
        Rc::new(Self {
            parameters,
            history: history(clouds.partition()),
            neighbours: history(clouds.neighbour().unwrap_or_default()),
            before: Cell::new(0),
            under_way: Cell::new(0),
            phase: Cell::new(Phase::Setup),
            names,
            nodes: RefCell::new(nodes),
            change_logs: RefCell::default(),
            starts: RefCell::default(),
            questions: RefCell::default(),
            content: Cell::new(0),
            watched: Cell::new(watchers == 0),
            events: Cell::new(0),
            looked_back: Cell::new(0),
            proxy: Proxy::new(mutant),
        })
    }

    fn change_log(&self, node: u64) -> Option<(u64, ChangeLogRange)> {
        self.change_logs.borrow().get(&node)?()
    }

    /// Records that a request is sent.
    pub(crate) fn begin(&self, client: usize, node: u64, operation: Operation) -> usize {
        let mut history = self.history.borrow_mut();
        let event = history.begin(client, node, operation, now());
        let event = self.before.get() + event - self.under_way.get();
        let start = self.change_log(node).map(|(start, _)| (event, start));
        self.starts.borrow_mut().extend(start);
        event
    }

    /// Records the end of a request.
    pub(crate) fn end(&self, event: usize, end: End) {
        let start = self.starts.borrow_mut().remove(&event);
        // Answers from a lost cluster are ignored.
        if let Some(event) = event.checked_sub(self.before.get()) {
            let event = event + self.under_way.get();
            let mut history = self.history.borrow_mut();
            history.end(event, now(), end);
            let event = &mut history.events[event];
            let range = self.change_log(event.node);
            let range = range.filter(|(now, _)| Some(*now) == start);
            event.change_log = range.map(|(_, range)| range);
        }
    }

    /// Starts a new history after the loss of all entries after `behind`. Returns the old one.
    pub(crate) fn begin_again(&self, behind: u64) -> History {
        let open = |event: &&Event| event.end == End::Open;
        let under_way: Vec<Event> = {
            let history = self.history.borrow();
            history.events.iter().filter(open).cloned().collect()
        };
        let count = under_way.len();
        let again = History {
            partition: self.parameters.clouds.partition(),
            behind,
            events: under_way,
            ..History::default()
        };
        let before = self.history.replace(again);
        let numbered = before.events.len() - self.under_way.replace(count);
        self.before.set(self.before.get() + numbered);
        before
    }

    /// Waits until the run reaches `phase`.
    pub(crate) async fn wait_for_phase(&self, phase: Phase) {
        while self.phase.get() < phase {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Venue for Shared {
    fn names(&self) -> &Names {
        &self.names
    }

    fn nodes(&self) -> Vec<u64> {
        self.nodes.borrow().clone()
    }

    fn furthest(&self) -> Option<Token> {
        self.history.borrow().furthest
    }

    async fn perform(&self, client: usize, node: u64, operation: Operation) -> Option<Answer> {
        let event = self.begin(client, node, operation.clone());
        let patience = self.parameters.patience;
        let end = self.proxy.call(node, &operation, patience).await;
        let answer = end.answer().cloned();
        self.end(event, end);
        answer
    }
}

pub(crate) fn now() -> Duration {
    turmoil::sim_elapsed().unwrap_or_default()
}
