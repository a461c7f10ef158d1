//! A temporary, writable copy of a state. It applies commands with the code of the model, without
//! Raft or disk.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, ready};
use parking_lot::Mutex;
use placement_model::ledger::LedgerEntry;
use placement_model::{Command, Stamped};

use placement_base::backend::{
    AppliedWrite, Consistency, Position, ReadBackend, Unavailable, View, WriteBackend,
    uuid_of_request,
};
use placement_base::world::{Clock, micros};

/// A writable copy of the partition that a view shows.
pub struct Fork {
    view: Mutex<View>,
    clock: Arc<dyn Clock>,
}

impl Fork {
    /// Copies the state of `view`.
    pub fn new(view: View, clock: Arc<dyn Clock>) -> Self {
        Self {
            view: Mutex::new(view),
            clock,
        }
    }

    /// The current state of the fork.
    pub fn now(&self) -> View {
        self.view.lock().clone()
    }

    /// Applies a command as the cluster would. Returns its result and the ledger entries.
    pub fn write(&self, command: Command, request_id: &str) -> (AppliedWrite, Vec<LedgerEntry>) {
        let mut view = self.view.lock();
        let destination = view.destination();
        let next = view.position.index.unwrap_or_default().index + 1;
        let stamped = Stamped {
            at: micros(self.clock.now()),
            write_id: None,
            command,
            partition: destination.partition,
            routes: destination.routes,
            request_id: uuid_of_request(request_id),
        };
        let (outcome, changed) = view.state.apply(next, &stamped);
        let index = view.position.index.get_or_insert_default();
        index.index = next;
        let written = AppliedWrite {
            outcome,
            index: *index,
            term: 0,
            view: view.clone(),
        };
        (written, changed)
    }
}

impl WriteBackend for Fork {
    fn submit(
        &self,
        command: Command,
        request_id: String,
    ) -> BoxFuture<'_, Result<AppliedWrite, Unavailable>> {
        ready(Ok(self.write(command, &request_id).0)).boxed()
    }
}

impl ReadBackend for Fork {
    fn view(&self, _consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        ready(Ok(self.now())).boxed()
    }

    fn position(&self) -> Position {
        Position {
            staleness: Some(Duration::ZERO),
            ..self.now().position
        }
    }
}
