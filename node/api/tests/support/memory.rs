//! A backend over a state in memory: the model's own apply and commit, without Raft and disk.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, pending, ready};
use placement_api::fork::Fork;
use placement_base::backend::{
    AppliedWrite, Consistency, Floor, LedgerBackend, LedgerUnavailable, PlacementIndex, Position,
    ReadBackend, Readiness, Unavailable, View, WriteBackend,
};
use placement_base::world::RealWorld;
use placement_model::ledger::LedgerEntry;
use placement_model::types::Timestamp;
use placement_model::{Cluster, Command, Outcome, standard};
use tokio::sync::watch;

/// The epoch of the only history.
pub(crate) const EPOCH: u64 = 1;

/// A state in memory that answers like a cluster.
pub(crate) struct Memory {
    inner: Mutex<Inner>,
    ledger: Mutex<Ledger>,
    /// Index of the last applied entry; `None` once the node shuts down.
    applied: watch::Sender<Option<u64>>,
}

/// The entries after the floor.
struct Ledger {
    floor: Floor,
    entries: Vec<Arc<LedgerEntry>>,
    /// The floor after the next backward read.
    next_floor: Option<u64>,
}

impl Ledger {
    fn keep_after(&mut self, index: u64) {
        let gone = self.entries.iter().rfind(|entry| entry.index <= index);
        let at = gone.map_or(self.floor.at, |entry| entry.at);
        self.floor = Floor { index, at };
        self.entries.retain(|entry| entry.index > index);
    }
}

struct Inner {
    state: Fork,
    /// The error of all requests, while the backend is down.
    down: Option<Unavailable>,
    /// Whether requests hang forever.
    hangs: bool,
    /// The write of another client that is applied before the next write.
    before_next: Option<Command>,
    /// The node's own state, while it is behind the cluster.
    behind: Option<View>,
}

impl Memory {
    /// A state with the standard resource classes and traits.
    pub(crate) fn new() -> Self {
        let memory = Self {
            inner: Mutex::new(Inner {
                state: empty(0),
                down: None,
                hangs: false,
                before_next: None,
                behind: None,
            }),
            ledger: Mutex::new(Ledger {
                floor: Floor {
                    index: 0,
                    at: Timestamp(i64::MIN),
                },
                entries: Vec::new(),
                next_floor: None,
            }),
            applied: watch::Sender::new(Some(0)),
        };
        memory.forget();
        memory
    }

    /// Applies a command and keeps its changes.
    fn write(&self, command: Command, request_id: &str) -> AppliedWrite {
        let inner = self.inner.lock().unwrap();
        let (written, changed) = inner.state.write(command, request_id);
        let changed = changed.into_iter().map(Arc::new);
        self.ledger.lock().unwrap().entries.extend(changed);
        // A node that shuts down applies nothing more.
        self.applied.send_if_modified(|applied| {
            let goes_on = applied.is_some();
            *applied = applied.map(|_| written.index.index);
            goes_on
        });
        written
    }

    fn until(
        &self,
        holds: impl Fn(Option<u64>) -> bool + Send + Sync + 'static,
    ) -> BoxFuture<'_, ()> {
        let mut applied = self.applied.subscribe();
        Box::pin(async move {
            applied.wait_for(|applied| holds(*applied)).await.unwrap();
        })
    }

    /// Applies the write of another client before the next write.
    pub(crate) fn before_next_write(&self, command: Command) {
        self.inner.lock().unwrap().before_next = Some(command);
    }

    /// Keeps the current state as the node's own, while the cluster goes on.
    pub(crate) fn stay_behind(&self) {
        let mut inner = self.inner.lock().unwrap();
        inner.behind = Some(inner.state.now());
    }

    /// Begins the shutdown of the node.
    pub(crate) fn leave(&self) {
        self.applied.send_replace(None);
    }

    /// Drops the changes up to this entry.
    pub(crate) fn keep_after(&self, index: u64) {
        self.ledger.lock().unwrap().keep_after(index);
    }

    /// Drops the changes up to this entry during a backward read, after its next page.
    pub(crate) fn keep_after_next_page(&self, index: u64) {
        self.ledger.lock().unwrap().next_floor = Some(index);
    }

    /// Makes reads and writes fail with this error, or succeed again if `None`.
    pub(crate) fn set_down(&self, down: Option<Unavailable>) {
        self.inner.lock().unwrap().down = down;
    }

    /// Drops everything except the standard resource classes and traits.
    pub(crate) fn forget(&self) {
        let index = {
            let mut inner = self.inner.lock().unwrap();
            let stands = inner.state.now().position.index;
            let index = stands.map_or(0, |stands| stands.index);
            inner.state = empty(index);
            index
        };
        self.keep_after(index);
        self.write(standard::sync(), "standards");
    }

    /// Makes reads and writes hang forever.
    pub(crate) fn hang(&self) {
        self.inner.lock().unwrap().hangs = true;
    }
}

/// An empty state at this index.
fn empty(index: u64) -> Fork {
    let view = View {
        state: Arc::new(Cluster::default()).into(),
        position: Position {
            index: Some(PlacementIndex {
                epoch: EPOCH,
                index,
            }),
            node: 1,
            known_leader: Some(1),
            staleness: Some(Duration::ZERO),
        },
    };
    Fork::new(view, Arc::new(RealWorld::default()))
}

impl WriteBackend for Memory {
    fn has_room(&self) -> Result<(), Unavailable> {
        match &self.inner.lock().unwrap().down {
            Some(Unavailable::Busy(why)) => Err(Unavailable::Busy(why.clone())),
            _ => Ok(()),
        }
    }

    fn submit(
        &self,
        command: Command,
        request_id: String,
    ) -> BoxFuture<'_, Result<AppliedWrite, Unavailable>> {
        let (down, hangs) = {
            let mut inner = self.inner.lock().unwrap();
            if let Some(other) = inner.before_next.take() {
                let (written, _) = inner.state.write(other, "other");
                assert!(matches!(written.outcome, Outcome::Done(_)), "{written:?}");
            }
            (inner.down.clone(), inner.hangs)
        };
        if hangs {
            return pending().boxed();
        }
        ready(down.map_or_else(|| Ok(self.write(command, &request_id)), Err)).boxed()
    }
}

impl Readiness for Memory {
    fn why_not(&self) -> BoxFuture<'_, Option<String>> {
        let down = self.inner.lock().unwrap().down.clone();
        ready(down.map(|down| down.to_string())).boxed()
    }
}

impl ReadBackend for Memory {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        let inner = self.inner.lock().unwrap();
        if inner.hangs {
            return pending().boxed();
        }
        let view = match &inner.behind {
            Some(behind) if consistency == Consistency::Local => behind.clone(),
            _ => inner.state.now(),
        };
        let result = match (&inner.down, consistency) {
            (Some(down), _) => Err(down.clone()),
            (None, Consistency::Session(token)) if token.epoch != EPOCH => {
                Err(Unavailable::ForeignIndex(EPOCH))
            }
            (None, Consistency::Session(token)) if Some(token) > view.position.index => {
                let stands = view.position.index.map_or(0, |stands| stands.index);
                let reason = format!("this node has applied index {stands}");
                Err(Unavailable::nothing_committed(reason))
            }
            _ => Ok(view),
        };
        ready(result).boxed()
    }

    fn position(&self) -> Position {
        self.inner.lock().unwrap().state.now().position
    }
}

impl LedgerBackend for Memory {
    fn floor(&self) -> Floor {
        self.ledger.lock().unwrap().floor
    }

    fn forward(
        &self,
        after: u64,
        up_to: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable> {
        let ledger = self.ledger.lock().unwrap();
        if after < ledger.floor.index {
            return Err(LedgerUnavailable::Gone(ledger.floor));
        }
        let asked = ledger
            .entries
            .iter()
            .filter(|entry| entry.index > after && entry.index <= up_to);
        Ok(page(asked, at_most_bytes))
    }

    fn backward(
        &self,
        from: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable> {
        let mut ledger = self.ledger.lock().unwrap();
        let next_floor = ledger.next_floor.take();
        let asked = ledger
            .entries
            .iter()
            .rev()
            .filter(|entry| entry.index <= from);
        let page = page(asked, next_floor.map_or(at_most_bytes, |_| 1));
        if let Some(index) = next_floor {
            ledger.keep_after(index);
        }
        Ok(page)
    }

    fn applied_after(&self, index: u64) -> BoxFuture<'_, ()> {
        self.until(move |applied| applied > Some(index))
    }

    fn shutdown_begun(&self) -> BoxFuture<'_, ()> {
        self.until(|applied| applied.is_none())
    }
}

fn page<'a>(
    entries: impl Iterator<Item = &'a Arc<LedgerEntry>>,
    at_most_bytes: usize,
) -> Vec<Arc<LedgerEntry>> {
    let mut left = at_most_bytes;
    let mut page = Vec::new();
    for entry in entries {
        if left == 0 {
            break;
        }
        left = left.saturating_sub(entry.rows.len() * 200);
        page.push(entry.clone());
    }
    page
}
