//! What the clients of one run share: where the run is, what is there to contend for, and the
//! history that they write together.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use placement_witness::client::Venue;

use crate::history::{Answer, End, Event, History};
use crate::mutant::{Mutant, Proxy};
use crate::operation::{Operation, Question, Token};
use crate::parameters::Parameters;
use crate::workload::Names;

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The cluster forms; the first providers are made.
    Setup,
    /// Faults.
    Faults,
    /// All is mended: every request must succeed again before long.
    Recovery,
    /// Clients go on for a while: nothing fails, so no request may be turned away.
    Further,
    /// What they have asked is answered.
    Answered,
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
    /// What the clients of the neighbour saw.
    pub neighbours: RefCell<History>,
    /// Requests were numbered up to here when the cluster was lost.
    before: Cell<usize>,
    /// So many of them were under way then: what reaches a node late is carried out by the restored
    /// cluster.
    under_way: Cell<usize>,
    /// Where the run is.
    pub phase: Cell<Phase>,
    /// The names over which the clients meet.
    pub names: Names,
    /// Nodes that answer, as far as the run wants them to.
    pub nodes: RefCell<Vec<u64>>,
    /// What the last client shall ask of every node, and what a neighbour's.
    pub questions: RefCell<[Vec<Question>; 2]>,
    /// How often a client has done its part since all was mended: in the recovery phase, and once
    /// more after it.
    pub content: Cell<usize>,
    /// Whether those who follow what is changed have all that there is.
    pub watched: Cell<bool>,
    /// Events that they took in.
    pub events: Cell<usize>,
    /// How often they compared an earlier moment.
    pub looked_back: Cell<usize>,
    proxy: Proxy,
}

impl Shared {
    /// What the clients of a run begin with.
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
            questions: RefCell::default(),
            content: Cell::new(0),
            watched: Cell::new(watchers == 0),
            events: Cell::new(0),
            looked_back: Cell::new(0),
            proxy: Proxy::new(mutant),
        })
    }

    /// Writes down that a request is being sent.
    pub(crate) fn begin(&self, client: usize, node: u64, operation: Operation) -> usize {
        let mut history = self.history.borrow_mut();
        let event = history.begin(client, node, operation, now());
        self.before.get() + event - self.under_way.get()
    }

    /// Writes down what came of a request.
    pub(crate) fn end(&self, event: usize, end: End) {
        // What was asked of a cluster that was lost is not answered any more.
        if let Some(event) = event.checked_sub(self.before.get()) {
            let event = event + self.under_way.get();
            self.history.borrow_mut().end(event, now(), end);
        }
    }

    /// All is lost that is behind a place in the log. Returns what everybody saw until now.
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

    /// Waits until the run is in `phase` or further.
    pub(crate) async fn until(&self, phase: Phase) {
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
