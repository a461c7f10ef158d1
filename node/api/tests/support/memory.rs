//! The backend over a state in memory: the model's own apply and commit, no Raft, no disk.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::{BoxFuture, FutureExt, pending, ready};
use placement_api::backend::{
    Consistency, PlacementIndex, Position, ReadBackend, Readiness, Unavailable, View, WriteBackend,
    Written,
};
use placement_model::types::{PartitionId, Timestamp};
use placement_model::{Cluster, Command, Stamped, State, apply, standard};

/// The epoch of the one history there is.
pub(crate) const EPOCH: u64 = 1;

/// A state and how many commands made it.
pub(crate) struct Memory {
    inner: Mutex<Inner>,
}

struct Inner {
    state: State,
    index: u64,
    /// What it answers instead, while somebody wants to see how that looks.
    down: Option<Unavailable>,
    /// Whether nothing is ever answered.
    hangs: bool,
}

impl Memory {
    /// A state with the standard resource classes and traits.
    pub(crate) fn new() -> Self {
        let memory = Self {
            inner: Mutex::new(Inner {
                state: State::default(),
                index: 0,
                down: None,
                hangs: false,
            }),
        };
        memory.write(standard::sync());
        memory
    }

    /// Makes reads and writes answer this, or work again.
    #[allow(dead_code, reason = "not every test makes it unavailable")]
    pub(crate) fn set_down(&self, down: Option<Unavailable>) {
        self.inner.lock().unwrap().down = down;
    }

    /// Forgets all but the standard resource classes and traits.
    #[allow(dead_code, reason = "not every test begins again")]
    pub(crate) fn forget(&self) {
        self.inner.lock().unwrap().state = State::default();
        self.write(standard::sync());
    }

    /// Makes reads and writes wait forever.
    #[allow(dead_code, reason = "not every test has the patience")]
    pub(crate) fn hang(&self) {
        self.inner.lock().unwrap().hangs = true;
    }

    fn write(&self, command: Command) -> Written {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let at = Timestamp(now.as_micros() as i64);
        let stamped = Stamped {
            partition: PartitionId::DEFAULT,
            routes: 0,
            at,
            write_id: None,
            command,
        };
        let mut inner = self.inner.lock().unwrap();
        let (outcome, changes) = apply(&inner.state, &stamped);
        inner.state.commit(&changes);
        inner.index += 1;
        let view = inner.view();
        Written {
            outcome,
            index: view.position.index.expect("a state stands somewhere"),
            term: 1,
            view,
        }
    }
}

impl Inner {
    fn view(&self) -> View {
        View {
            state: Arc::new(Cluster::from(self.state.clone())).into(),
            position: self.position(),
        }
    }

    fn position(&self) -> Position {
        Position {
            index: Some(PlacementIndex {
                epoch: EPOCH,
                index: self.index,
            }),
            node: 1,
            known_leader: Some(1),
            staleness: Some(Duration::ZERO),
        }
    }
}

impl WriteBackend for Memory {
    fn submit(
        &self,
        command: Command,
        _request_id: String,
    ) -> BoxFuture<'_, Result<Written, Unavailable>> {
        let (down, hangs) = {
            let inner = self.inner.lock().unwrap();
            (inner.down.clone(), inner.hangs)
        };
        if hangs {
            return pending().boxed();
        }
        ready(down.map_or_else(|| Ok(self.write(command)), Err)).boxed()
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
        let result = match (&inner.down, consistency) {
            (Some(down), _) => Err(down.clone()),
            (None, Consistency::Session(token)) if token.epoch != EPOCH => {
                Err(Unavailable::ForeignIndex(EPOCH))
            }
            (None, Consistency::Session(token)) if token.index > inner.index => {
                let reason = format!("this node stands at {}", inner.index);
                Err(Unavailable::nothing_committed(reason))
            }
            _ => Ok(inner.view()),
        };
        ready(result).boxed()
    }

    fn position(&self) -> Position {
        self.inner.lock().unwrap().position()
    }
}
