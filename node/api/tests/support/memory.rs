//! The backend over a state in memory: the model's own apply and commit, no Raft, no disk.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, pending, ready};
use placement_api::backend::{
    Consistency, PlacementIndex, Position, ReadBackend, Readiness, Unavailable, View, WriteBackend,
    Written,
};
use placement_api::fork::Fork;
use placement_api::world::RealWorld;
use placement_model::{Cluster, Command, standard};

/// The epoch of the one history there is.
pub(crate) const EPOCH: u64 = 1;

/// A state that answers as a cluster does.
pub(crate) struct Memory {
    inner: Mutex<Inner>,
}

struct Inner {
    state: Fork,
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
                state: empty(0),
                down: None,
                hangs: false,
            }),
        };
        memory.forget();
        memory
    }

    /// Makes reads and writes answer this, or work again.
    #[allow(dead_code, reason = "not every test makes it unavailable")]
    pub(crate) fn set_down(&self, down: Option<Unavailable>) {
        self.inner.lock().unwrap().down = down;
    }

    /// Forgets all but the standard resource classes and traits.
    pub(crate) fn forget(&self) {
        let mut inner = self.inner.lock().unwrap();
        let stands = inner.state.now().position.index;
        inner.state = empty(stands.map_or(0, |stands| stands.index));
        inner.state.write(standard::sync());
    }

    /// Makes reads and writes wait forever.
    #[allow(dead_code, reason = "not every test has the patience")]
    pub(crate) fn hang(&self) {
        self.inner.lock().unwrap().hangs = true;
    }
}

/// Nothing, after so many commands.
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
    Fork::of(view, Arc::new(RealWorld::default()))
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
        let write = || self.inner.lock().unwrap().state.write(command);
        ready(down.map_or_else(|| Ok(write()), Err)).boxed()
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
        let view = inner.state.now();
        let result = match (&inner.down, consistency) {
            (Some(down), _) => Err(down.clone()),
            (None, Consistency::Session(token)) if token.epoch != EPOCH => {
                Err(Unavailable::ForeignIndex(EPOCH))
            }
            (None, Consistency::Session(token)) if Some(token) > view.position.index => {
                let stands = view.position.index.map_or(0, |stands| stands.index);
                let reason = format!("this node stands at {stands}");
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
